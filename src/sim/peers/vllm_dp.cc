// SPDX-License-Identifier: Apache-2.0
// vLLM's own balance over data-parallel ranks: the least 4 · waiting + running, the first of equals
// from the client's own start; each choice counts as one more waiting until the next statistics.
// Source: vllm-project/vllm vllm/v1/engine/core_client.py, DPLBAsyncMPClient.
// get_core_engine_for_request, and coordinator.py: statistics every 100 ms. One API server: the
// start is rank 0, the count grows by one.
#include <vector>

#include "sim/peers/rules.h"

namespace signalbox::peers {
namespace {

constexpr int kWaitingWeight = 4;

class VllmDp : public Rule {
 public:
  Traits traits() const override {
    Traits traits;
    traits.look_every = std::chrono::milliseconds(100);
    traits.look_lag_max = std::chrono::milliseconds(1);  // between processes of one host
    return traits;
  }
  void joined(Slot slot, Fleet fleet) override {
    if (ranks_.size() < fleet.size()) ranks_.resize(fleet.size());
    ranks_[slot] = {};
  }
  void looked(Slot slot, Fleet fleet, Instant) override {
    ranks_[slot] = {fleet[slot].state.waiting, fleet[slot].state.running};
  }

  Choice choose(const Query&, std::span<const Slot> candidates, Fleet, Instant, Rng&) override {
    const auto score = [&](Slot slot) {
      return kWaitingWeight * ranks_[slot].waiting + ranks_[slot].running;
    };
    return {Choice::Kind::Place, least(candidates, score), 0};
  }
  void sent(const Query&, const Choice& choice, Fleet, Instant) override {
    ++ranks_[choice.slot].waiting;
  }

 private:
  struct Rank {
    int waiting = 0;
    int running = 0;
  };
  std::vector<Rank> ranks_;
};

}  // namespace

std::unique_ptr<Rule> vllm_dp() { return std::make_unique<VllmDp>(); }

}  // namespace signalbox::peers
