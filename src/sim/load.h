// SPDX-License-Identifier: Apache-2.0
// Where requests come from. What one session asks follows from the seed and its number alone, so
// that what the gateway decides changes when somebody comes back, never what is asked: runs of one
// seed are comparable pair by pair.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/rng.h"
#include "core/model/event.h"
#include "sim/content.h"
#include "sim/load_settings.h"

namespace signalbox::sim {

struct Session {
  model::TenantId tenant;
  model::RouteId route;
  std::uint64_t lora = 0;     // 0: none
  std::vector<Span> history;  // the prompt of the present turn
  std::uint64_t number = 0;   // from 1
  std::uint64_t turns = 0;
};

// One task as its user means it.
struct Ask {
  Session session;
  std::uint64_t answer = 0;        // name of the answer's content
  std::int64_t answer_tokens = 1;  // that the model will generate, if nobody stops it
  std::int64_t output_max = 0;
  bool stream = true;
  model::Api api = model::Api::ChatCompletions;
  Duration leaves_after{-1};       // negative: stays
  Duration presses_after{-1};      // asks a second time if no answer has begun; negative: never
  std::int32_t call = -1;          // the source's own: which of its trace
};

enum class Ending : std::uint8_t { Answered, Failed, Left };

class LoadSource {
 public:
  virtual ~LoadSource() = default;
  // When the next one comes; kNever: nobody, unless the end of what is under way brings one.
  virtual Instant next() const = 0;
  // Who comes then.
  virtual Ask take() = 0;
  // What was taken has ended. May bring next() forward; never to a time before `now`.
  virtual void ended(const Ask& ask, Ending how, Instant now) = 0;
};

// What there is to ask for, and how much prompt and answer fit every engine.
struct Surroundings {
  std::uint32_t routes = 1;
  std::vector<std::uint64_t> loras;
  std::int64_t context = 1 << 20;
};

std::unique_ptr<LoadSource> make_load(const Load& load, std::uint64_t seed,
                                      const Surroundings& surroundings);

// The parts of which every source consists.
Session new_session(const Load& load, const Surroundings& surroundings, std::uint64_t number,
                    Rng& rng);
// Streamed or not, who leaves and who asks twice.
void add_habits(const Load& load, Rng& rng, Ask& ask);

}  // namespace signalbox::sim
