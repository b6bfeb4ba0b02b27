// SPDX-License-Identifier: Apache-2.0
// Faults begin and end; all of them heal.
#include <utility>

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
    case Kind::Slow:
      catch_up(host);
      host.engine->slow(fault.amount);
      return rearm(number);
    case Kind::Stall:
      catch_up(host);
      host.engine->stall_until(now_ + fault.lasts);
      return rearm(number);
    case Kind::Fail: host.fail = fault.amount; return;
    case Kind::Throttle: host.throttle = fault.amount; return;
    case Kind::Cut: host.cut = fault.amount; return;
    case Kind::Freeze: host.frozen = host.last_seen.front().running >= 0; return;
    case Kind::Forget:
      catch_up(host);
      host.engine->drop_cache();
      return tell_cache(number);
    case Kind::Reclaim:
      host.given_notice = true;
      host.declared = false;
      return apply();
    case Kind::Leave: host.declared = false; return apply();
    case Kind::Reassign:
      ++reassigned_[host.group];
      return apply();
    case Kind::Sever:
      catch_up(host);
      read_all_progress(number);
      host.severed = true;
      return;
    case Kind::Delay: host.delay = fault.amount; return;
    case Kind::Drop: host.drop = fault.amount; return;
    case Kind::Sleep: return fall_asleep(number);
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
  const std::uint32_t number = host_of(fault);
  Host& host = hosts_[number];
  using Kind = Fault::Kind;
  switch (fault.kind) {
    case Kind::Die: return start(number, truth::StartFrom::Node);
    case Kind::Slow:
      catch_up(host);
      host.engine->slow(1);
      return rearm(number);
    case Kind::Fail: host.fail = 0; return;
    case Kind::Throttle: host.throttle = 0; return;
    case Kind::Cut: host.cut = 0; return;
    case Kind::Freeze: host.frozen = false; return;
    case Kind::Leave: return join_again(number);
    case Kind::Reclaim:
      if (!host.given_notice) return;  // two of one node: this one has come in its place
      if (!host.gone) die(number);
      host.gone = true;
      return join_again(number);
    case Kind::Sever: return mend_link(number);
    case Kind::Delay: host.delay = 1; return;
    case Kind::Drop: host.drop = 0; return;
    case Kind::Sleep: return wake_up(number);
    case Kind::Unlist: host.serves = true; return apply();
    case Kind::Reassign:
      --reassigned_[host.group];
      return apply();
    case Kind::Reprice:
      price_factor_ /= fault.amount;
      limit_cut_ -= kConcurrencyCut;
      return apply();
    case Kind::Stall:
    case Kind::Forget:
    case Kind::Drain: return;
  }
}

// Two may have left it to the same number; one newcomer is enough.
void World::join_again(std::uint32_t number) {
  Host& host = hosts_[number];
  if (host.declared || host.replaced) return;
  host.replaced = true;
  start(number, truth::StartFrom::Nothing);
}

// What was told meanwhile comes now.
void World::mend_link(std::uint32_t number) {
  hosts_[number].severed = false;
  const std::vector<truth::Output> held = std::exchange(hosts_[number].held, {});
  for (const truth::Output& output : held) take_output(number, output);
  tell_cache(number);
}

}  // namespace signalbox::sim
