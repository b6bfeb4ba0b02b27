// SPDX-License-Identifier: Apache-2.0
// Faults begin and end; all of them heal.
#include "sim/world.h"

namespace signalbox::sim {
namespace {

constexpr int kConcurrencyCut = 2;

}  // namespace

// The engine that holds this number now: who joined last.
std::uint32_t World::host_of(const Fault& fault) const {
  std::size_t engines = 0;
  for (const EngineGroup& group : scenario_.groups) {
    engines += static_cast<std::size_t>(group.count);
  }
  const std::size_t number = fault.engine % engines;
  std::uint32_t found = 0;
  for (std::uint32_t i = 0; i < hosts_.size(); ++i) {
    if (hosts_[i].number == number) found = i;
  }
  return found;
}

void World::begin(const Fault& fault) {
  pay();
  const std::uint32_t number = host_of(fault);
  Host& host = hosts_[number];
  using Kind = Fault::Kind;
  at(now_ + fault.lasts, Due::FaultEnds, 0,
     static_cast<std::uint64_t>(&fault - scenario_.faults.data()));
  switch (fault.kind) {
    case Kind::Die: return die(number);
    case Kind::Slow: return host.engine->slow(fault.amount);
    case Kind::Stall:
      catch_up(host);
      host.engine->stall_until(now_ + fault.lasts);
      return rearm(number);
    case Kind::Fail: host.fail = fault.amount; return;
    case Kind::Throttle: host.throttle = fault.amount; return;
    case Kind::Cut: host.cut = fault.amount; return;
    case Kind::Freeze: host.frozen = host.last_seen.running >= 0; return;
    case Kind::Forget:
      host.engine->drop_cache();
      return tell_cache(number);
    case Kind::Leave: host.declared = false; return apply();
    case Kind::Unlist: host.serves = false; return apply();
    case Kind::Reprice:
      price_factor_ *= fault.amount;
      limit_cut_ += kConcurrencyCut;
      return apply();
    case Kind::Drain:
      draining_ = true;
      return feed(model::DrainOver{});
  }
}

void World::end(const Fault& fault) {
  --faults_open_;
  pay();
  Host& host = hosts_[host_of(fault)];
  using Kind = Fault::Kind;
  switch (fault.kind) {
    case Kind::Die: host.down = false; return;
    case Kind::Slow: return host.engine->slow(1);
    case Kind::Fail: host.fail = 0; return;
    case Kind::Throttle: host.throttle = 0; return;
    case Kind::Cut: host.cut = 0; return;
    case Kind::Freeze: host.frozen = false; return;
    case Kind::Leave:
      // Two may have left it to the same number; one newcomer is enough.
      if (host.declared) return;
      add_host(host.group, host.number);
      return apply();
    case Kind::Unlist: host.serves = true; return apply();
    case Kind::Reprice:
      price_factor_ /= fault.amount;
      limit_cut_ -= kConcurrencyCut;
      return apply();
    case Kind::Stall:
    case Kind::Forget:
    case Kind::Drain: return;
  }
}

void World::die(std::uint32_t number) {
  Host& host = hosts_[number];
  catch_up(host);
  host.down = true;
  const truth::Counters& c = host.engine->counters();
  host.past.prompt_tokens += c.prompt_tokens;
  host.past.cached_tokens += c.cached_tokens;
  host.past.generated_tokens += c.generated_tokens;
  host.past.preemptions += c.preemptions;
  host.past.finished += c.finished;
  host.past.busy_seconds += c.busy_seconds;
  std::vector<truth::SequenceId> lost;
  host.engine->restart(lost);
  host.armed = kNever;
  tell_cache(number);
  for (const truth::SequenceId id : lost) {
    const auto flight = flights_.find(id);
    if (flight == flights_.end()) continue;
    const bool begun = flight->second.tokens > 0;
    end_flight(id, begun ? model::AttemptResult::Truncated : model::AttemptResult::Reset,
               begun ? 200 : 0, scenario_.network);
  }
}

}  // namespace signalbox::sim
