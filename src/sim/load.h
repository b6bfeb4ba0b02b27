// SPDX-License-Identifier: Apache-2.0
// Clients: sessions, their prompts, and how patient they are. Draws from its own stream, so that
// what the gateway decides does not change who comes.
#pragma once

#include <cstdint>
#include <vector>

#include "base/rng.h"
#include "core/model/event.h"
#include "sim/content.h"
#include "sim/scenario.h"

namespace signalbox::sim {

struct Session {
  model::TenantId tenant;
  model::RouteId route;
  std::uint64_t lora = 0;     // 0: none
  std::vector<Span> history;  // the prompt of the present turn
  std::uint64_t turns = 0;
};

// One request as its client means it.
struct Ask {
  Session session;
  std::int64_t answer_tokens = 1;  // that the model will generate, if nobody stops it
  std::int64_t output_max = 0;
  bool stream = true;
  model::Api api = model::Api::ChatCompletions;
  Duration leaves_after{-1};       // negative: stays
};

class LoadSource {
 public:
  // `routes` and `loras` are what clients may ask for; `context` bounds prompt and answer.
  LoadSource(const Load& load, std::uint64_t seed, std::uint32_t routes,
             std::vector<std::uint64_t> loras, std::int64_t context);

  Duration until_next_session();
  Ask first_turn();
  // The turn after a completed one, if the client goes on.
  bool goes_on();
  Duration thinks();
  Ask next_turn(const Ask& done);

 private:
  std::int64_t draw(const Lengths& lengths);
  std::size_t popular();
  Ask turn(Session session);

  Load load_;
  Rng rng_;
  std::uint32_t routes_;
  std::vector<std::uint64_t> loras_;
  std::int64_t context_;
  std::vector<Span> systems_;
  std::vector<double> popularity_;  // cumulated
  std::uint64_t contents_ = 0;      // names given so far
};

}  // namespace signalbox::sim
