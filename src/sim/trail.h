// SPDX-License-Identifier: Apache-2.0
// The last events and actions, for the report of a violation. Notes are cheap; text is made only
// when somebody asks.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "base/time.h"
#include "core/model/action.h"
#include "core/model/event.h"

namespace signalbox::sim {

class Trail {
 public:
  static constexpr std::size_t kKept = 20;

  void note(Instant at, const model::Event& event);
  void note(Instant at, const model::Action& action);

  // One line each, oldest first.
  std::string text() const;
  // The event handed in last.
  std::string last_event() const { return line(event_); }

 private:
  struct Note {
    Instant at{};
    const char* what = "";
    std::uint64_t subject = 0;  // request, or endpoint
    std::uint64_t attempt = 0;
    std::int64_t detail = 0;
  };
  static std::string line(const Note& note);
  void keep(const Note& note) { notes_[count_++ % kKept] = note; }

  std::array<Note, kKept> notes_{};
  std::size_t count_ = 0;
  Note event_;
};

}  // namespace signalbox::sim
