// SPDX-License-Identifier: Apache-2.0
// A restart is noticed from a look; what was found out before it is then asked anew.
#include "io/observe/conversation.h"

#include <utility>

namespace signalbox::observe {

Conversation::Conversation(model::EngineKind declared) : declared_(declared) {
  detector_.emplace(declared_);
}

void Conversation::set_ranks(std::vector<int> ranks) {
  ranks_ = std::move(ranks);
  states_.clear();
}

std::string_view Conversation::path() const {
  return detector_ ? detector_->next() : looker_->path();
}

Conversation::Step Conversation::answer(const engine::Answer& answer) {
  return detector_ ? discover(answer) : look(answer);
}

Conversation::Step Conversation::discover(const engine::Answer& answer) {
  detector_->feed(answer);
  Step step;
  if (!detector_->next().empty()) {
    step.ask_again = true;
    return step;
  }
  engine::Discovery found = detector_->result();
  if (!found.ready) {
    detector_.emplace(declared_);
    step.down = true;
    return step;
  }
  detector_.reset();
  if (!looker_ || looker_->kind() != found.kind) looker_.emplace(found.kind);
  looker_->begin_again();
  discovery_ = std::move(found);
  fresh_ = true;
  step.discovered = step.ask_again = true;
  return step;
}

Conversation::Step Conversation::look(const engine::Answer& answer) {
  Step step;
  std::vector<model::EngineState> states;
  engine::Look got = looker_->feed(answer.status, answer.body, ranks_, states);
  if (got == engine::Look::Elsewhere) {
    step.ask_again = true;
    return step;
  }
  if (got == engine::Look::Down) {
    step.down = true;
    return step;
  }
  bool told = got == engine::Look::Told;
  if (!told) states.assign(ranks_.size(), {});
  std::uint64_t before = incarnation_.current();
  std::uint64_t now = incarnation_.observe(told ? looker_->start_time() : -1,
                                           told ? looker_->whole() : model::EngineState{});
  for (std::size_t i = 0; i < states.size(); ++i) {
    states[i].incarnation = now;
    engine::complete(states[i], discovery_.facts, ranks_[i]);
  }
  states_ = std::move(states);
  step.told = true;
  if (before != 0 && now != before && !fresh_) {
    // Another process than the one that was found out: it may be of another kind, or tell its load
    // elsewhere.
    looker_.reset();
    refresh();
    step.ask_again = true;
  }
  fresh_ = false;
  return step;
}

bool Conversation::failed(bool refused) {
  if (refused) {
    incarnation_.refused();
    looker_.reset();
    detector_.emplace(declared_);
    return false;
  }
  if (!detector_) return looker_->unanswered();
  detector_.emplace(declared_);
  return false;
}

void Conversation::refresh() { detector_.emplace(declared_); }

}  // namespace signalbox::observe
