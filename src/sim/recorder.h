// SPDX-License-Identifier: Apache-2.0
// What went into a core and a digest of what came out, in order: enough to do it again. The
// simulator's own event log, in the same bytes as the server's.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/time.h"
#include "core/flow/flow.h"
#include "core/model/event.h"

namespace signalbox::sim {

class Recorder {
 public:
  // `keep`: whether the inputs are kept, or only the digest.
  Recorder(const flow::Config& config, std::uint64_t seed, bool keep)
      : config_(config), seed_(seed), keep_(keep) {}

  // Before the core sees the input.
  void applied(const flow::Setup& setup, Instant now);
  void event(const model::Event& event, Instant now);
  // What the input led to.
  void actions(const flow::Actions& actions);

  std::uint64_t digest() const { return digest_; }
  std::uint64_t events() const { return events_; }

  // INV-11: hands everything to a fresh core. Says where it first acted otherwise; nothing when it
  // acted the same.
  std::optional<std::string> replay() const;

 private:
  struct Entry {
    Instant at{};
    std::string event;                   // encoded; unused when a setup was applied
    std::shared_ptr<flow::Setup> setup;
    std::uint64_t digest = 0;            // of all actions up to and with this input's
  };

  static std::uint64_t fold(std::uint64_t digest, Instant at, const flow::Actions& actions,
                            std::string& scratch);

  flow::Config config_;
  std::uint64_t seed_;
  bool keep_;
  std::vector<Entry> entries_;
  Instant at_{};
  std::string scratch_;
  std::uint64_t digest_ = 0xCBF29CE484222325ull;
  std::uint64_t events_ = 0;
};

}  // namespace signalbox::sim
