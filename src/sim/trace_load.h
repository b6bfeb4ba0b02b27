// SPDX-License-Identifier: Apache-2.0
// Recorded traffic, played: calls at their times, or sessions whose calls wait for answers.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "sim/arrivals.h"
#include "sim/load.h"

namespace signalbox::sim {

// Each call comes at its time, whatever happens to others; those of one conversation are of one
// tenant, for one model. Needs a trace without sessions.
class OpenLoopLoad : public LoadSource {
 public:
  OpenLoopLoad(const Load& load, std::uint64_t seed, const Surroundings& surroundings);

  Instant next() const override;
  Ask take() override;
  void ended(const Ask&, Ending, Instant) override {}

 private:
  void pass_over();

  Load load_;
  std::uint64_t seed_;
  Surroundings surroundings_;
  std::size_t index_ = 0;  // of the next call
};

// Sessions begin at their recorded starts; where there are none, by the load's arrivals, or so that
// always as many run; then each comes once, in an order that the seed draws, and all again with new
// content. With as many always, the first ones begin somewhere in their middle, so that the run
// need not wait for hours until it is as it will be. A call that fails ends its session.
class ClosedLoopLoad : public LoadSource {
 public:
  ClosedLoopLoad(const Load& load, std::uint64_t seed, const Surroundings& surroundings);

  Instant next() const override;
  Ask take() override;
  void ended(const Ask& ask, Ending how, Instant now) override;

 private:
  // A session that is being played.
  struct Run {
    Session session;          // without history
    std::uint64_t copy = 0;
    std::int64_t open = 0;    // calls under way or to come
  };
  struct Coming {
    std::uint64_t run = 0;
    std::int32_t call = 0;
  };
  enum class From : std::uint8_t { Start, Middle };

  const trace::Trace& trace() const { return *load_.trace; }
  const trace::Session& choose();
  bool begin(const trace::Session& session, From from, Instant at);
  bool begin_another(From from, Instant at);
  void draw_start();
  void await(std::uint64_t run, std::int32_t call, Instant at);

  Load load_;
  std::uint64_t seed_;
  Surroundings surroundings_;
  ArrivalProcess arrivals_;
  Rng order_rng_;
  std::vector<std::int32_t> first_waiting_;  // per call: the first that waits for it; -1: none
  std::vector<std::int32_t> next_waiting_;   // per call: the next that waits for the same
  bool recorded_ = false;                    // the trace knows when sessions start
  std::vector<std::int32_t> order_;          // of this pass over the sessions
  std::size_t chosen_ = 0;                   // of them
  std::uint64_t pass_ = 0;
  Instant next_start_ = kNever;              // by arrivals: of the session begun last
  std::map<std::pair<Instant, std::uint64_t>, Coming> coming_;
  std::uint64_t parked_ = 0;
  std::map<std::uint64_t, Run> runs_;
  std::uint64_t begun_ = 0;
};

}  // namespace signalbox::sim
