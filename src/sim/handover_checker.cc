// SPDX-License-Identifier: Apache-2.0
// Compares arrivals with the least time that each may take.
#include "sim/handover_checker.h"

#include <algorithm>

namespace signalbox::sim {
namespace {

constexpr Duration kRounding = std::chrono::nanoseconds(2);

}  // namespace

void HandoverChecker::prefilled(truth::SequenceId id, std::uint32_t from, Instant now) {
  open_[id] = {from, now};
}

std::optional<std::string> HandoverChecker::arrived(truth::SequenceId id, const Link& link,
                                                    double bytes, Instant now) {
  const auto at = open_.find(id);
  if (at == open_.end()) return "KV arrived of a prompt that nobody has computed";
  const Open open = at->second;
  open_.erase(at);
  const Duration busy = from_seconds(bytes * 8 / (link.gbps * 1e9));
  if (now - open.since + kRounding < busy + link.latency) {
    return "KV arrived sooner than its link allows";
  }
  const auto [last, first] = last_.try_emplace(open.from, now);
  if (!first && now - last->second + kRounding < busy) {
    return "a link carried two transfers at a time";
  }
  last->second = now;
  return std::nullopt;
}

}  // namespace signalbox::sim
