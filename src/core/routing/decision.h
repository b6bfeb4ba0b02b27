// SPDX-License-Identifier: Apache-2.0
// Where a request goes, and what was known when that was decided: compact enough to keep ten
// thousand of them. explanation.h takes one apart.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "core/model/ids.h"
#include "core/routing/score.h"

namespace signalbox::routing {

// Why an endpoint of the asked pools could not serve. In order of precedence: one is counted once.
enum class Reason : std::uint8_t {
  Role,         // does not do this part of the work
  Tenant,       // not open to this tenant
  Lora,         // has not loaded the adapter
  OtherModel,   // says itself that it has not got the model
  Draining,     // gets no new requests
  Asleep,       // would accept and not serve
  Ejected,      // taken out by recovery
  Full,         // at its concurrency limit
  Memory,       // prompt and output exceed its KV cache or its context
  AlreadyTried, // failed this very request
};
inline constexpr int kReasons = 10;
std::string_view label(Reason reason);

struct Refusals {
  std::uint32_t count = 0;
  model::EndpointId example;  // one of them; 0: none is known
};

struct Decision {
  static constexpr int kCandidatesMax = 16;

  enum class Kind : std::uint8_t {
    Place,  // send it to `endpoint`
    Wait,   // places exist, all are full: keep it in our queue
    None,   // no place exists; `refusals` says why
  };

  Kind kind = Kind::None;
  bool objective_missed = false;  // no place meets the objectives: the least violation was taken
  bool retried = false;           // only endpoints that it had tried already were left
  bool ejected = false;           // only ejected endpoints were left
  std::uint8_t count = 0;         // candidates kept
  std::uint8_t chosen = 0;        // index of the choice among them; 0 unless drawn from near-ties
  std::uint8_t near_ties = 0;     // leading candidates within the tie band
  model::EndpointId endpoint;     // 0 unless Place
  std::uint32_t evaluated = 0;    // places scored exactly
  std::uint32_t bounded = 0;      // nodes of eight bounded from below
  Ask ask;
  std::array<Refusals, kReasons> refusals{};
  // The best places, best first; entries from `count` on are meaningless.
  std::array<Inputs, kCandidatesMax> candidates;
};
static_assert(sizeof(Decision) < 2048);

}  // namespace signalbox::routing
