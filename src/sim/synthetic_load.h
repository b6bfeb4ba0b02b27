// SPDX-License-Identifier: Apache-2.0
// Sessions drawn from a few numbers: system prompts of unequal popularity, turns, answers.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "sim/arrivals.h"
#include "sim/load.h"

namespace signalbox::sim {

class SyntheticLoad : public LoadSource {
 public:
  SyntheticLoad(const Load& load, std::uint64_t seed, const Surroundings& surroundings);

  Instant next() const override;
  Ask take() override;
  void ended(const Ask& ask, Ending how, Instant now) override;

 private:
  Rng rng(const Session& session, std::string_view what) const;
  const Span& popular(Rng& rng) const;
  Ask first_turn();
  Ask turn(Session session) const;
  void fit(Session& session, std::int64_t room) const;

  Load load_;
  std::uint64_t seed_;
  Surroundings surroundings_;
  ArrivalProcess arrivals_;
  std::vector<Span> systems_;
  std::vector<double> popularity_;     // cumulated
  Instant next_session_{};
  std::uint64_t sessions_ = 0;         // numbers given
  std::map<std::pair<Instant, std::uint64_t>, Ask> turns_;  // to come, by time and order
  std::uint64_t turns_parked_ = 0;
};

}  // namespace signalbox::sim
