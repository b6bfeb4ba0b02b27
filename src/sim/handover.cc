// SPDX-License-Identifier: Apache-2.0
// From an engine that prefills to one that decodes: the KV of a prompt travels over the former's
// link, one transfer after the other. The core places whole requests as yet, so who decodes is
// chosen here, as a router between such engines would: who has least to do.
#include <algorithm>
#include <utility>

#include "sim/world.h"

namespace signalbox::sim {
namespace {

constexpr std::int64_t kWaitingWeight = 4;

}  // namespace

// The one that could take it, serves the same model and has the least 4 · waiting + running; KV on
// its way counts as waiting. Nothing: there is none.
std::optional<std::uint32_t> World::decode_host(const EngineGroup& of, std::int64_t tokens) const {
  std::optional<std::uint32_t> best;
  std::int64_t least = 0;
  for (std::uint32_t i = 0; i < hosts_.size(); ++i) {
    const Host& host = hosts_[i];
    const EngineGroup& group = scenario_.groups[host.group];
    if (group.role != model::Role::Decode || group.model != of.model) continue;
    if (!host.declared || host.down || host.asleep || !host.engine->fits(tokens)) continue;
    const truth::Gauges gauges = host.engine->gauges();
    const std::int64_t score = kWaitingWeight * (gauges.waiting + host.incoming) + gauges.running;
    if (!best || score < least) {
      best = i;
      least = score;
    }
  }
  return best;
}

// The prompt is computed; its blocks stay until they have arrived.
void World::hand_over(truth::SequenceId id) {
  Flight& flight = flights_.at(id);
  Host& from = hosts_[flight.host];
  const EngineGroup& group = scenario_.groups[from.group];
  const Ask& ask = clients_.at(flight.request).ask;
  const auto to = decode_host(group, flight.prompt_tokens + ask.answer_tokens);
  if (!to) {
    from.engine->release(id, now_);
    return end_flight(id, model::AttemptResult::ServerError, 503, way(from));
  }
  handovers_.prefilled(id, flight.host, now_);
  flight.half = Flight::Half::Travels;
  flight.decodes_at = *to;
  flight.prefilled = now_;
  ++hosts_[*to].incoming;
  const double bytes = group.kv_bytes_per_token * static_cast<double>(flight.prompt_tokens);
  from.link_free = std::max(now_, from.link_free) + from_seconds(bytes * 8 / group.link.gbps / 1e9);
  at(from.link_free + group.link.latency, Due::Arrived, *to, id);
}

// Its KV is where it will be decoded, if both ends are still there and somebody still wants it.
void World::kv_arrived(truth::SequenceId id, std::uint32_t to) {
  Host& host = hosts_[to];
  --host.incoming;
  const auto found = flights_.find(id);
  if (found == flights_.end() || found->second.half != Flight::Half::Travels) return;
  Flight& flight = found->second;
  Host& from = hosts_[flight.host];
  const EngineGroup& group = scenario_.groups[from.group];
  const double bytes = group.kv_bytes_per_token * static_cast<double>(flight.prompt_tokens);
  if (const auto wrong = handovers_.arrived(id, group.link, bytes, now_)) {
    checker_.violated(*wrong, now_);
  }
  report_.transfer.record(to_seconds(now_ - flight.prefilled));
  catch_up(from);
  from.engine->release(id, now_);
  rearm(flight.host);
  if (host.down || host.asleep) {
    return end_flight(id, model::AttemptResult::Reset, 0, way(from));
  }
  const Client& client = clients_.at(flight.request);
  truth::SequenceSpec sequence = sequence_of(id, flight, client.ask, *host.engine);
  sequence.received_tokens = flight.prompt_tokens - 1;
  flight.half = Flight::Half::Whole;
  flight.runs_on = to;
  catch_up(host);
  flight.place = host.engine->submit(std::move(sequence), now_);
  rearm(to);
}

}  // namespace signalbox::sim
