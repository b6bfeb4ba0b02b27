// SPDX-License-Identifier: Apache-2.0
// A second set of books, kept from events and actions alone, and compared with the core's (INV-4):
// time and money of every endpoint, tokens, outcomes. Shares no code with core/ledger.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "core/flow/flow.h"

namespace signalbox::sim {

class Books {
 public:
  // The fleet from now on.
  void applied(const model::Fleet& fleet, Instant now);
  void started(model::EndpointId endpoint, Instant now);
  // `since`: when it started.
  void ended(model::EndpointId endpoint, const model::Usage& usage, Instant since, Instant now);

  // What does not agree; nothing when all does.
  std::optional<std::string> compare(const ledger::Ledger& ledger, Instant now) const;

  // Of all attempts that have ended, as answers told.
  std::uint64_t attempts() const { return attempts_; }
  std::int64_t prompt_tokens() const { return prompt_tokens_; }
  std::int64_t cached_tokens() const { return cached_tokens_; }
  std::int64_t completion_tokens() const { return completion_tokens_; }

 private:
  __extension__ using Wide = __int128;

  struct Line {
    Instant at{};                  // accounted for up to here
    std::int64_t hourly = 0;       // nanodollars
    Duration elapsed{};
    Wide money = 0;                // nanodollars times nanoseconds per hour
    std::multiset<Instant> running;  // since when
    bool removed = false;
    void advance(Instant now);
  };

  void close(model::EndpointId endpoint, Instant now);
  std::optional<std::string> compare_time(const ledger::Ledger& ledger, Instant now) const;
  std::optional<std::string> compare_sums(const ledger::Ledger& ledger) const;

  std::map<model::EndpointId, Line> lines_;
  Duration gone_elapsed_{};  // of endpoints that are gone
  Wide gone_nanodollars_ = 0;
  std::uint64_t attempts_ = 0;
  std::int64_t prompt_tokens_ = 0;
  std::int64_t cached_tokens_ = 0;
  std::int64_t completion_tokens_ = 0;
  std::uint32_t tenants_ = 0;      // highest ids seen
  std::uint32_t models_ = 0;
  std::uint32_t pools_ = 0;
};

}  // namespace signalbox::sim
