// SPDX-License-Identifier: Apache-2.0
// The I/O threads: they carry out actions, relay what engines say, and count.
#include <algorithm>
#include <utility>

#include "sim/world.h"

namespace signalbox::sim {
namespace {

constexpr Duration kThreadHop = std::chrono::microseconds(300);  // mean of what is late

}  // namespace

// Actions for one thread are carried out in order; some wait for the thread to turn to them.
void World::carry(const model::OwnedAction& action) {
  Instant& busy_until = thread_busy_until_[action.owner];
  if (rng_.chance(scenario_.disorder.action_late)) {
    const Duration hop = from_seconds(rng_.exponential(to_seconds(kThreadHop)));
    busy_until = std::max(busy_until, now_ + hop);
  }
  if (busy_until <= now_) return carry_out(action.action);
  late_actions_.emplace(++parked_, action);
  at(busy_until, Due::Carry, action.owner, parked_);
}

void World::carry_out(const model::Action& action) {
  if (const auto* a = std::get_if<model::Dispatch>(&action)) dispatch(*a);
  if (const auto* a = std::get_if<model::Abort>(&action)) abort(*a);
  if (const auto* a = std::get_if<model::Conclude>(&action)) conclude(*a);
}

void World::dispatch(const model::Dispatch& action) {
  Client& client = clients_.at(action.request);
  // Stale: the client left, and the core will hear of it.
  if (client.gone) return;
  const Seat& seat = seats_.at(action.endpoint.value() - 1);
  const truth::SequenceId id = ++sequences_;
  Flight flight;
  flight.request = action.request;
  flight.attempt = action.attempt;
  flight.owner = client.owner;
  flight.host = flight.runs_on = seat.host;
  flight.rank = seat.rank;
  flight.stream = client.ask.stream;
  flight.prompt_tokens = tokens_of(client.ask.session.history);
  flight.sent = flight.latest = now_;
  client.flight = id;
  flights_.emplace(id, flight);
  at(now_ + way(hosts_[flight.host]), Due::Reach, flight.host, id);
}

void World::abort(const model::Abort& action) {
  const auto client = clients_.find(action.request);
  if (client == clients_.end()) return;
  const truth::SequenceId id = client->second.flight;
  const auto flight = flights_.find(id);
  // Stale: the attempt has just ended by itself.
  if (flight == flights_.end() || flight->second.attempt != action.attempt) return;
  catch_up(hosts_[flight->second.runs_on]);
  read_progress(flight->second);
  close_upstream(id);
  if (rng_.chance(0.5)) {
    end_flight(id, model::AttemptResult::Aborted, 0, scenario_.network);
  } else {
    flights_.erase(flight);
  }
}

bool World::drains_on_abort(truth::SequenceId id) const {
  const auto flight = flights_.find(id);
  return flight != flights_.end() &&
         scenario_.groups[hosts_[flight->second.host].group].drain_on_abort;
}

void World::close_upstream(truth::SequenceId id) {
  const Flight& flight = flights_.at(id);
  handovers_.dropped(id);
  if (flight.reached) at(now_ + way(hosts_[flight.host]), Due::Close, flight.runs_on, id);
}

// The attempt is over for its thread; the core hears of it after `delay`.
void World::end_flight(truth::SequenceId id, model::AttemptResult result, int status,
                       Duration delay) {
  const bool drains = drains_on_abort(id);
  const auto found = flights_.find(id);
  const Flight flight = found->second;
  flights_.erase(found);
  model::AttemptEnded event;
  if (const auto client = clients_.find(flight.request);
      client != clients_.end() && client->second.flight == id) {
    event.client_left = drains && client->second.gone;
    client->second.flight = 0;
    client->second.tokens = flight.tokens;
  }
  const Dialect& dialect = scenario_.groups[hosts_[flight.host].group].dialect;
  event.request = flight.request;
  event.attempt = flight.attempt;
  event.result = result;
  event.status = status;
  event.delivered = flight.stream && flight.tokens > 0;
  event.tokens = flight.tokens;
  if (result == model::AttemptResult::Throttled) event.retry_after = std::chrono::seconds(2);
  if (result == model::AttemptResult::Ok && dialect.usage) {
    event.usage.prompt_tokens = flight.prompt_tokens;
    event.usage.completion_tokens = flight.tokens;
    if (dialect.cached) event.usage.cached_tokens = flight.cached_tokens;
  }
  if (result == model::AttemptResult::Ok && dialect.timings) {
    event.timings.queue = flight.admitted - flight.at_engine;
    event.timings.prefill = flight.first - flight.admitted;
    event.timings.decode = flight.latest - flight.first;
    event.timings.prefill_tokens = flight.prompt_tokens - flight.cached_tokens;
  }
  send(std::move(event), delay);
}

// What moved since the last digest of this thread, and who has been silent for too long.
void World::digest(std::uint32_t thread) {
  model::Progress progress;
  std::vector<std::pair<truth::SequenceId, model::AttemptResult>> silent;
  catch_up_all();
  for (auto& [id, flight] : flights_) {
    if (flight.owner != thread) continue;
    read_progress(flight);
    if (flight.tokens > flight.reported) {
      flight.reported = flight.tokens;
      progress.entries.push_back({flight.request, flight.attempt, flight.tokens});
    }
    if (flight.tokens == 0 && now_ - flight.sent > scenario_.first_token_timeout) {
      silent.emplace_back(id, model::AttemptResult::FirstTokenTimeout);
    } else if (flight.tokens > 0 && now_ - flight.latest > scenario_.idle_timeout) {
      silent.emplace_back(id, model::AttemptResult::IdleTimeout);
    }
  }
  for (const auto& [id, result] : silent) {
    close_upstream(id);
    end_flight(id, result, 0, Duration::zero());
  }
  if (!progress.entries.empty()) send(std::move(progress), Duration::zero());
  at(now_ + scenario_.digest_interval, Due::Digest, thread);
}

}  // namespace signalbox::sim
