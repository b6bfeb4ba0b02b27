// SPDX-License-Identifier: Apache-2.0
// Records inputs, folds actions, replays.
#include "sim/recorder.h"

#include <utility>

#include "core/model/codec.h"

namespace signalbox::sim {

// FNV-1a over the encoded actions, with the time of the event that led to them.
std::uint64_t Recorder::fold(std::uint64_t digest, Instant at, const flow::Actions& actions,
                             std::string& scratch) {
  constexpr std::uint64_t kPrime = 0x100000001B3ull;
  if (actions.empty()) return digest;
  scratch.clear();
  for (const model::OwnedAction& action : actions) model::encode(action, scratch);
  digest = (digest ^ static_cast<std::uint64_t>(at.time_since_epoch().count())) * kPrime;
  for (const char c : scratch) digest = (digest ^ static_cast<unsigned char>(c)) * kPrime;
  return digest;
}

void Recorder::applied(const flow::Setup& setup, Instant now) {
  at_ = now;
  if (keep_) entries_.push_back({now, {}, std::make_shared<flow::Setup>(setup), 0});
}

void Recorder::event(const model::Event& event, Instant now) {
  at_ = now;
  ++events_;
  if (!keep_) return;
  scratch_.clear();
  model::encode(event, scratch_);
  entries_.push_back({now, scratch_, nullptr, 0});
}

void Recorder::actions(const flow::Actions& actions) {
  digest_ = fold(digest_, at_, actions, scratch_);
  if (keep_) entries_.back().digest = digest_;
}

std::optional<std::string> Recorder::replay() const {
  flow::Flow core(config_, seed_);
  flow::Actions actions;
  std::string scratch;
  std::uint64_t digest = 0xCBF29CE484222325ull;
  std::size_t number = 0;
  for (const Entry& entry : entries_) {
    ++number;
    actions.clear();
    if (entry.setup != nullptr) {
      core.apply(*entry.setup, entry.at, actions);
    } else {
      Result<model::Event> event = model::decode_event(entry.event);
      if (!event) return "input " + std::to_string(number) + ": " + event.error().message;
      core.handle(std::move(*event), entry.at, actions);
    }
    digest = fold(digest, entry.at, actions, scratch);
    if (digest != entry.digest) {
      return "the actions after input " + std::to_string(number) + " at " +
             std::to_string(to_seconds(entry.at.time_since_epoch())) + " s differ";
    }
  }
  return std::nullopt;
}

}  // namespace signalbox::sim
