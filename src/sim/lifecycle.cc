// SPDX-License-Identifier: Apache-2.0
// Engines die, come up stage by stage, sleep, wake and are taken away.
#include <utility>

#include "sim/world.h"

namespace signalbox::sim {

void World::die(std::uint32_t number) {
  Host& host = hosts_[number];
  catch_up(host);
  read_all_progress(number);
  host.down = true;
  host.past.add(host.engine->counters());
  std::vector<truth::SequenceId> lost;
  host.engine->restart(lost);
  host.armed = kNever;
  tell_cache(number);
  lose(lost);
}

void World::fall_asleep(std::uint32_t number) {
  Host& host = hosts_[number];
  catch_up(host);
  read_all_progress(number);
  host.asleep = true;
  std::vector<truth::SequenceId> lost;
  host.engine->suspend(lost);
  host.armed = kNever;
  tell_cache(number);
  lose(lost);
}

void World::read_all_progress(std::uint32_t number) {
  for (auto& [id, flight] : flights_) {
    if (flight.runs_on == number) read_progress(flight);
  }
}

// Their connections broke.
void World::lose(const std::vector<truth::SequenceId>& lost) {
  for (const truth::SequenceId id : lost) {
    const auto flight = flights_.find(id);
    if (flight == flights_.end()) continue;
    handovers_.dropped(id);
    const bool begun = flight->second.tokens > 0;
    end_flight(id, begun ? model::AttemptResult::Truncated : model::AttemptResult::Reset,
               begun ? 200 : 0, way(hosts_[flight->second.host]));
  }
}

// The engine of that host comes up again, or, from nothing, another one with its number.
void World::start(std::uint32_t number, truth::StartFrom from) {
  const truth::StartTimes& means = scenario_.groups[hosts_[number].group].start;
  const Duration takes = truth::total(truth::draw_start(means, from, start_rng_));
  ++starting_;
  if (takes == Duration::zero()) return started(number, from);
  at(now_ + takes, Due::Started, number, static_cast<std::uint64_t>(from));
}

void World::started(std::uint32_t number, truth::StartFrom from) {
  --starting_;
  pay();
  Host& host = hosts_[number];
  if (from == truth::StartFrom::Node) {
    host.down = host.gone;
    return;
  }
  add_host(host.group, host.number);
  apply();
}

void World::wake_up(std::uint32_t number) {
  const truth::StartTimes& means = scenario_.groups[hosts_[number].group].start;
  at(now_ + truth::draw_wake(means, start_rng_), Due::Awake, number);
}

}  // namespace signalbox::sim
