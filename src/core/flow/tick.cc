// SPDX-License-Identifier: Apache-2.0
// What time brings: waiting ends, ejections end, calibration is handed on, work that was too long
// for one event goes on in slices.
#include <algorithm>

#include "core/flow/core.h"

namespace signalbox::flow {
namespace {

using Answer = model::Conclude::Answer;

constexpr Duration kRefreshInterval = std::chrono::milliseconds(250);
// Endpoints of a pool whose coefficients are handed to routing in one tick.
constexpr std::size_t kRefreshSlice = 32;
constexpr std::size_t kLookSlice = 256;

}  // namespace

void Core::on(const model::Tick&, Instant now, Actions& out) {
  if (!leaving_.empty()) send_home(now, out);
  expire_waiting(now, out);
  ejector_.advance(now);
  take_health_changes();
  if (now >= refresh_at_) refresh_beliefs(now);
  if (!clearing_.empty() &&
      index_.clear_some(clearing_.back(), cache::PrefixIndex::kSlice)) {
    clearing_.pop_back();
  }
  // Readmitted and rested endpoints and expired waits may let others go as well.
  rest_over_at_ = kNever;
  for (const model::ModelId model : queue_.models()) drain_queue(model, now, out);
  std::erase_if(may_move_, [&](const model::ModelId model) { return queue_.empty(model); });
  for (auto& [id, pool] : pools_) {
    if (pool.declared.dispatch == model::DispatchMode::Auto) choose_mode(pool);
    if (pool.acting == model::DispatchMode::Shuttle) board(pool, now, out);
  }
}

Instant Core::next_wake() const {
  if (!may_move_.empty() || !clearing_.empty() || !leaving_.empty()) return Instant{};
  Instant wake = std::min({queue_.next_deadline(), ejector_.next_wake(), rest_over_at_,
                           refresh_at_});
  if (any_waits_to_depart_) {
    for (const auto& [id, pool] : pools_) wake = std::min(wake, pool.board_at);
  }
  return wake;
}

void Core::expire_waiting(Instant now, Actions& out) {
  for (int i = 0; i < 16; ++i) {
    const model::RequestId id = queue_.pop_expired(now);
    if (!id) return;
    Request* request = find(id);
    CHECK(request != nullptr);
    request->waiting = false;
    let_go(*request, now);
    conclude(*request, model::Outcome::QueueTimeout, Answer::Local, retry_after(request->model),
             out);
  }
}

void Core::refresh_beliefs(Instant now) {
  const bool prices = price_troubles(now);
  const bool speeds = refresh_coefficients(now);
  const bool more = prices || speeds;
  refresh_at_ = now + (more ? kRefreshInterval / 10 : kRefreshInterval);
}

// One slice of each pool; true: more may be to be told.
bool Core::refresh_coefficients(Instant now) {
  bool more = false;
  for (auto& [id, pool] : pools_) {
    const std::uint64_t version = pool.calibrator->version();
    const std::size_t count = pool.endpoints.size();
    std::size_t told = 0;
    const std::size_t looks = std::min(count, kLookSlice);
    for (std::size_t looked = 0; looked < looks && told < kRefreshSlice; ++looked) {
      const model::EndpointId endpoint = pool.endpoints[pool.refresh_next++ % count];
      EndpointState& state = endpoints_.at(endpoint);
      if (state.believed_version == version) continue;
      state.believed_version = version;
      const perf::Belief belief = pool.calibrator->effective(endpoint, now);
      load_.set_coefficients(endpoint, belief.coefficients,
                             std::max(belief.sigma.prefill, belief.sigma.decode));
      ++told;
    }
    more |= told == kRefreshSlice;
  }
  return more;
}

}  // namespace signalbox::flow
