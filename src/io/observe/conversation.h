// SPDX-License-Identifier: Apache-2.0
// What is asked of one address over time: first what it is, then, again and again, how it does; and
// what it is once more after a restart. Sans I/O; used by one thread.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "core/model/engine_state.h"
#include "core/model/fleet.h"
#include "io/engine/detect.h"
#include "io/engine/incarnation.h"
#include "io/engine/look.h"

namespace signalbox::observe {

class Conversation {
 public:
  explicit Conversation(model::EngineKind declared);

  // The ranks whose states are wanted; -1 is the whole server.
  void set_ranks(std::vector<int> ranks);

  // The path to GET next.
  std::string_view path() const;
  // Whether the next answer is about load: those looks keep the engine's own interval.
  bool looking() const { return !detector_; }

  struct Step {
    bool ask_again = false;   // path() is to be asked at once
    bool discovered = false;  // discovery() is new
    bool told = false;        // states() are new
    bool down = false;        // it answers and does not serve
  };
  Step answer(const engine::Answer& answer);

  // No answer came. A refused connection means that the process may have been replaced: the next
  // question is what it is. True: it may serve for all that; path() is to be asked at once.
  bool failed(bool refused);
  // Whether path() is asked because the path that tells load was not answered.
  bool asks_instead() const { return !detector_ && looker_ && looker_->instead(); }
  // The next question is what it is, and then where it tells its load.
  void refresh();

  const engine::Discovery& discovery() const { return discovery_; }
  // One for each rank of set_ranks(), in order, with incarnation and with what discovery() adds.
  const std::vector<model::EngineState>& states() const { return states_; }
  bool known() const { return looker_.has_value(); }

 private:
  Step discover(const engine::Answer& answer);
  Step look(const engine::Answer& answer);

  model::EngineKind declared_;
  std::vector<int> ranks_{-1};
  std::optional<engine::Detector> detector_;  // while it is being found out
  std::optional<engine::Looker> looker_;      // once it is known
  engine::IncarnationTracker incarnation_;
  engine::Discovery discovery_;
  bool fresh_ = false;  // discovery_ came with the answer before this one
  std::vector<model::EngineState> states_;
};

}  // namespace signalbox::observe
