// SPDX-License-Identifier: Apache-2.0
// Turns each event and action into a few numbers, and these into a line.
#include "sim/trail.h"

#include <algorithm>
#include <cstdio>
#include <variant>

namespace signalbox::sim {
namespace {

constexpr std::array kEventNames = {
    "RequestArrived", "ClientGone",          "FirstToken",   "AttemptEnded", "Progress",
    "Observed",       "EndpointUnreachable", "DrainOver", "Tick"};
constexpr std::array kActionNames = {"-> Dispatch", "-> Abort", "-> Conclude"};
static_assert(kEventNames.size() == std::variant_size_v<model::Event>);
static_assert(kActionNames.size() == std::variant_size_v<model::Action>);

}  // namespace

void Trail::note(Instant at, const model::Event& event) {
  Note note{at, kEventNames[event.index()], 0, 0, 0};
  std::visit(
      [&](const auto& e) {
        if constexpr (requires { e.request.value(); }) note.subject = e.request.value();
        if constexpr (requires { e.attempt.value(); }) note.attempt = e.attempt.value();
        if constexpr (requires { e.endpoint.value(); }) note.subject = e.endpoint.value();
        if constexpr (requires { e.result; }) note.detail = static_cast<std::int64_t>(e.result);
        if constexpr (requires { e.entries; }) {
          note.detail = static_cast<std::int64_t>(e.entries.size());
        }
      },
      event);
  event_ = note;
  keep(note);
}

void Trail::note(Instant at, const model::Action& action) {
  Note note{at, kActionNames[action.index()], 0, 0, 0};
  std::visit(
      [&](const auto& a) {
        note.subject = a.request.value();
        note.attempt = a.attempt.value();
        if constexpr (requires { a.endpoint; }) note.detail = a.endpoint.value();
        if constexpr (requires { a.outcome; }) note.detail = static_cast<std::int64_t>(a.outcome);
      },
      action);
  keep(note);
}

std::string Trail::line(const Note& note) {
  char text[128];
  std::snprintf(text, sizeof text, "%.6f s %s subject %llu attempt %llu detail %lld",
                to_seconds(note.at.time_since_epoch()), note.what,
                static_cast<unsigned long long>(note.subject),
                static_cast<unsigned long long>(note.attempt),
                static_cast<long long>(note.detail));
  return text;
}

std::string Trail::text() const {
  std::string out;
  for (std::size_t i = count_ - std::min(count_, kKept); i < count_; ++i) {
    out += "  " + line(notes_[i % kKept]) + "\n";
  }
  return out;
}

}  // namespace signalbox::sim
