// SPDX-License-Identifier: Apache-2.0
// Looks at a running engine: which path to GET, how often at most, and what the answer says. Sans
// I/O; one Looker per address, used by one thread.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/time.h"
#include "core/model/engine_state.h"
#include "core/model/fleet.h"

namespace signalbox::engine {

// How an engine likes to be looked at.
struct Manners {
  std::string_view liveness;                 // 2xx while it can serve
  std::span<const std::string_view> load;    // tried in turn until one is there; may be empty
  Duration interval_min;                     // never look more often
  Duration answer_within_min;                // it may take this long over an answer
};
const Manners& manners(model::EngineKind kind);

// What one answer was worth.
enum class Look : std::uint8_t {
  Told,       // the states say what the engine told
  Alive,      // it serves, and tells nothing
  Elsewhere,  // this path is not there, or tells nothing now; ask path() at once
  Down,       // it answers, and does not serve (5xx, loading)
};

class Looker {
 public:
  explicit Looker(model::EngineKind kind);

  // The path to GET now.
  std::string_view path() const;

  // Takes the answer. `ranks` are the data-parallel ranks wanted, -1 for the whole server; `states`
  // receives one state for each when Told, with incarnation 0.
  Look feed(int status, std::string_view body, std::span<const int> ranks,
            std::vector<model::EngineState>& states);
  // No answer came. True: it may serve for all that; ask path() at once.
  bool unanswered();
  // Whether path() asks for liveness because load, which is told elsewhere, just was not.
  bool instead() const { return instead_; }
  // Paths that were not there may be by now.
  void begin_again() { source_ = 0; }

  // Of the last page that told: when the process began (unix seconds; negative: not told), and the
  // state of the whole server, whose counters betray a restart.
  double start_time() const { return start_time_; }
  const model::EngineState& whole() const { return whole_; }

  model::EngineKind kind() const { return kind_; }

 private:
  bool asks_load() const;
  Look read(std::string_view body, std::span<const int> ranks,
            std::vector<model::EngineState>& states);

  model::EngineKind kind_;
  std::size_t source_ = 0;     // position in manners().load; its size: only liveness is left
  bool instead_ = false;
  bool records_seen_ = false;  // TensorRT-LLM: an empty list means idle only after records
  double start_time_ = -1;
  model::EngineState whole_;
};

}  // namespace signalbox::engine
