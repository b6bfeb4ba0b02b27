// SPDX-License-Identifier: Apache-2.0
// Engines behind a network: requests reach them, their steps go by, looks at them are taken.
#include <algorithm>
#include <string>
#include <utility>

#include "sim/world.h"

namespace signalbox::sim {
namespace {

constexpr truth::SequenceId kOthers = 1ull << 63;

}  // namespace

void World::add_host(std::size_t group, std::size_t number) {
  const EngineGroup& of = scenario_.groups[group];
  const auto at_host = static_cast<std::uint32_t>(hosts_.size());
  Host host;
  for (int rank = 0; rank < endpoints_of(of); ++rank) {
    seats_.push_back({at_host, endpoints_of(of) > 1 ? rank : truth::Engine::kAnyRank});
    host.endpoints.emplace_back(static_cast<std::uint32_t>(seats_.size()));
    decider_->profiled(host.endpoints.back(), of.spec);
  }
  host.last_seen.resize(host.endpoints.size());
  host.group = group;
  host.number = number;
  host.engine = std::make_unique<truth::Engine>(
      of.spec, Rng(scenario_.seed, "engine" + std::to_string(host.endpoints.front().value())));
  // Who listens to KV events hears them pass by pass.
  if (senses_.cache_events) host.engine->publish_cache();
  else host.engine->tell_less();
  hosts_.push_back(std::move(host));
  const Duration spread = from_seconds(rng_.uniform() * to_seconds(look_interval()));
  at(now_ + spread, Due::Scrape, at_host);
}

void World::reach(truth::SequenceId id) {
  const auto found = flights_.find(id);
  if (found == flights_.end()) return;
  Flight& flight = found->second;
  Host& host = hosts_[flight.host];
  if (refuse(id, host)) return;
  const Client& client = clients_.at(flight.request);
  const Ask& ask = client.ask;
  truth::SequenceSpec sequence = sequence_of(id, flight, ask, *host.engine);
  if (scenario_.groups[host.group].role == model::Role::Prefill) {
    sequence.output_tokens = 0;
    flight.half = Flight::Half::Prefills;
  }
  flight.reached = true;
  flight.at_engine = flight.admitted = now_;
  if (rng_.chance(host.cut)) {
    flight.cut_after =
        static_cast<std::int64_t>(rng_.below(static_cast<std::uint64_t>(ask.answer_tokens)));
    sequence.told_token = flight.cut_after + 1;
  }
  catch_up(host);
  flight.place = host.engine->submit(std::move(sequence), now_, flight.rank);
  rearm(flight.host);
}

truth::SequenceSpec World::sequence_of(truth::SequenceId id, const Flight& flight, const Ask& ask,
                                       const truth::Engine& engine) const {
  truth::SequenceSpec sequence;
  sequence.id = id;
  sequence.prompt_tokens = flight.prompt_tokens;
  sequence.output_tokens = ask.answer_tokens;
  std::vector<Span> spans = ask.session.history;
  spans.push_back({ask.answer, ask.answer_tokens});
  sequence.block_hashes = blocks_of(ask.session.lora, spans, engine.block_tokens());
  sequence.lora = ask.session.lora;
  if (flight.cut_after >= 0) sequence.told_token = flight.cut_after + 1;
  return sequence;
}

// From the gateway to the engine, or back.
Duration World::way(const Host& host) const {
  return host.delay == 1 ? scenario_.network
                         : from_seconds(to_seconds(scenario_.network) * host.delay);
}

// Answers that need no engine time. True: the flight is over.
bool World::refuse(truth::SequenceId id, Host& host) {
  using Result = model::AttemptResult;
  const Flight& flight = flights_.at(id);
  const Ask& ask = clients_.at(flight.request).ask;
  const auto answer = [&](Result result, int status) {
    end_flight(id, result, status, way(host));
    return true;
  };
  if (host.severed || (host.drop > 0 && rng_.chance(host.drop))) {
    end_flight(id, Result::ConnectError, 0, scenario_.connect_timeout);
    return true;
  }
  if (host.down) return answer(Result::ConnectError, 0);
  if (host.asleep) return answer(Result::ServerError, 503);
  if (rng_.chance(host.throttle)) return answer(Result::Throttled, 429);
  if (rng_.chance(host.fail)) return answer(Result::ServerError, rng_.chance(0.5) ? 500 : 503);
  if (!host.engine->fits(flight.prompt_tokens + ask.answer_tokens)) {
    return answer(Result::ClientError, 400);
  }
  return false;
}

void World::other_request() {
  if (requests_ >= static_cast<std::uint64_t>(scenario_.load.requests)) return;
  const auto at_host = static_cast<std::uint32_t>(others_rng_.below(hosts_.size()));
  Host& host = hosts_[at_host];
  truth::SequenceSpec sequence;
  sequence.id = kOthers | ++sequences_;
  sequence.prompt_tokens = static_cast<std::int64_t>(others_rng_.uniform(50, 1000));
  sequence.output_tokens = static_cast<std::int64_t>(others_rng_.uniform(10, 200));
  const std::int64_t tokens = sequence.prompt_tokens + sequence.output_tokens;
  if (!host.down && !host.asleep && host.engine->fits(tokens)) {
    catch_up(host);
    host.engine->submit(std::move(sequence), now_);
    rearm(at_host);
  }
  at(now_ + from_seconds(others_rng_.exponential(1 / scenario_.load.others_per_second)),
     Due::Other);
}

// Runs what is due before now, so that the engine may be spoken to.
void World::catch_up(Host& host) {
  if (host.engine->next_event() == now_) return;
  const bool due = host.engine->next_event() < now_;
  std::vector<truth::Output> outputs;
  host.engine->advance(now_, outputs);
  if (!due) return;
  const auto number = static_cast<std::uint32_t>(&host - hosts_.data());
  for (const truth::Output& output : outputs) take_output(number, output);
  tell_cache(number);
}

void World::catch_up_all() {
  for (Host& host : hosts_) catch_up(host);
}

// How far the engine is with it; the host has caught up.
void World::read_progress(Flight& flight) {
  // Of a prompt that is computed elsewhere, or travels, no token is there; what happens behind a
  // link that is cut is not seen.
  if (!flight.reached || flight.half != Flight::Half::Whole || hosts_[flight.host].severed) return;
  const truth::Rank::Progress progress = hosts_[flight.runs_on].engine->progress(flight.place);
  if (progress.tokens == 0) return;
  flight.tokens = progress.tokens;
  flight.latest = progress.latest;
}

void World::rearm(std::uint32_t number) {
  Host& host = hosts_[number];
  const Instant next = host.engine->next_event();
  if (next == kNever || next >= host.armed) return;
  host.armed = std::max(now_, next);
  at(host.armed, Due::Step, number);
}

void World::step(std::uint32_t number) {
  Host& host = hosts_[number];
  if (now_ != host.armed) return;
  host.armed = kNever;
  outputs_.clear();
  host.engine->advance(now_, outputs_);
  for (const truth::Output& output : outputs_) take_output(number, output);
  tell_cache(number);
  rearm(number);
}

void World::take_output(std::uint32_t number, const truth::Output& output) {
  const auto found = flights_.find(output.id);
  if (found == flights_.end()) {
    // Nobody wants it any more.
    if (output.kind != truth::Output::Kind::Prefilled) return;
    return hosts_[number].engine->release(output.id, now_);
  }
  Flight& flight = found->second;
  if (output.kind == truth::Output::Kind::Prefilled) return hand_over(output.id);
  if (output.kind == truth::Output::Kind::Admitted) {
    if (number != flight.host) return;  // it was admitted where its prompt was computed
    flight.admitted = output.at;
    flight.cached_tokens = output.cached_tokens;
    return;
  }
  const Host& host = hosts_[flight.host];
  if (host.severed) return hosts_[flight.host].held.push_back(output);
  if (flight.cut_after >= 0 && output.token > flight.cut_after) {
    flight.tokens = flight.cut_after;
    at(now_, Due::Close, flight.runs_on, output.id);
    const bool said = rng_.chance(0.3);
    const auto result = flight.tokens == 0 ? model::AttemptResult::Reset
                        : said             ? model::AttemptResult::StreamError
                                           : model::AttemptResult::Truncated;
    return end_flight(output.id, result, flight.tokens == 0 ? 0 : 200, way(host));
  }
  flight.tokens = output.token;
  flight.latest = output.at;
  if (output.first) {
    flight.first = output.at;
    if (flight.stream) {
      Client& client = clients_.at(flight.request);
      client.first = now_ + way(host);
      client.has_first = true;
    }
    if (flight.stream || scenario_.groups[host.group].dialect.asked_to_stream) {
      send(model::FirstToken{flight.request, flight.attempt}, way(host));
    }
  }
  if (output.last) end_flight(output.id, model::AttemptResult::Ok, 200, way(host));
}

// One look: taken now, told after the lag. Those who left are looked at once more.
void World::scrape(std::uint32_t number) {
  Host& host = hosts_[number];
  catch_up(host);
  Duration mean_lag = scenario_.scrape_lag;
  if (senses_.look_lag_max > Duration::zero()) mean_lag = std::min(mean_lag, senses_.look_lag_max);
  const Duration lag = from_seconds(rng_.exponential(to_seconds(mean_lag) + 1e-9));
  for (std::size_t i = 0; i < host.endpoints.size(); ++i) tell_look(host, i, lag);
  if (!host.declared) return;
  const double interval = to_seconds(look_interval()) * rng_.uniform(0.9, 1.1);
  at(now_ + from_seconds(interval), Due::Scrape, number);
}

// What the look shows of the host's endpoint of that number.
void World::tell_look(Host& host, std::size_t number, Duration lag) {
  const model::EndpointId endpoint = host.endpoints[number];
  if (host.down || host.severed) return send(model::EndpointUnreachable{endpoint, true}, lag);
  const int rank = seats_[endpoint.value() - 1].rank;
  if (!host.frozen) host.last_seen[number] = look(host, rank);
  std::optional<LoadDetails> details;
  if (senses_.load_details) details = LoadDetails{host.engine->waiting_tokens(rank)};
  send(model::EndpointObserved{endpoint, host.last_seen[number]}, lag, details);
}

Duration World::look_interval() const {
  return senses_.look_every > Duration::zero() ? senses_.look_every : scenario_.scrape_interval;
}

// KV events leave in batches, one a step, and come in order. A lost batch is noticed by the number
// of the next, and replayed before it.
void World::tell_cache(std::uint32_t number) {
  Host& host = hosts_[number];
  if (!senses_.cache_events || host.severed || rng_.chance(scenario_.cache_event_loss)) return;
  for (int rank = 0; rank < host.engine->ranks(); ++rank) {
    std::vector<truth::CacheEvent> changes = host.engine->take_cache_events(rank);
    if (changes.empty()) continue;
    cache_events_.emplace(++parked_, std::move(changes));
    const std::size_t endpoint = host.endpoints.size() > 1 ? static_cast<std::size_t>(rank) : 0;
    at(now_ + scenario_.cache_event_lag, Due::Cache, host.endpoints[endpoint].value(), parked_);
  }
}

model::EngineState World::look(const Host& host, int rank) const {
  const Dialect& dialect = scenario_.groups[host.group].dialect;
  const truth::EngineSpec& spec = scenario_.groups[host.group].spec;
  const truth::Gauges gauges = host.engine->gauges(rank);
  const truth::Counters counters = host.engine->counters(rank);
  const int ranks = rank < 0 ? spec.ranks : 1;
  model::EngineState state;
  state.running = static_cast<int>(gauges.running);
  state.waiting = static_cast<int>(gauges.waiting);
  if (dialect.slots) state.slots = static_cast<int>(spec.sequences_max) * ranks;
  if (dialect.kv) {
    state.kv_usage = gauges.kv_usage();
    state.kv_capacity_tokens = gauges.kv_blocks * spec.block_tokens;
  }
  state.asleep = host.asleep;
  if (dialect.incarnation) state.incarnation = host.engine->incarnation();
  if (!dialect.counters) return state;
  const auto told = [](const truth::SumCount& s) { return model::SumCount{s.sum, s.count}; };
  state.prompt_tokens_total = counters.prompt_tokens;
  state.cached_tokens_total = counters.cached_tokens;
  state.generated_tokens_total = counters.generated_tokens;
  state.preemptions_total = counters.preemptions;
  state.prefill_seconds = told(counters.prefill_seconds);
  state.prefill_tokens = told(counters.prefill_tokens);
  state.queue_seconds = told(counters.queue_seconds);
  return state;
}

}  // namespace signalbox::sim
