// SPDX-License-Identifier: Apache-2.0
// The event log: seed, configuration and every event in lock order with its time and a digest of
// the actions that followed. What `replay` reads.
//
// A log begins with the magic line and the seed. Then records: varint length, one byte type, varint
// time (ns since the previous record, zigzag), payload, eight bytes digest of the actions.
//   'S' setup: length-prefixed fleet (core/model/codec.h), then the Gateway document as YAML
//   'E' event (core/model/codec.h)
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"
#include "core/flow/config.h"
#include "io/host/core_host.h"
#include "io/telemetry/log_file.h"

namespace signalbox::app {

class EventLog final : public host::EventSink {
 public:
  static Result<std::unique_ptr<EventLog>> open(const std::string& path, std::uint64_t seed);

  void applied(const flow::Setup& setup, Instant now,
               const std::vector<model::OwnedAction>& actions) override;
  void handled(const model::Event& event, Instant now,
               const std::vector<model::OwnedAction>& actions) override;

  telemetry::LogFile& file() { return *file_; }

 private:
  EventLog(std::unique_ptr<telemetry::LogFile> file) : file_(std::move(file)) {}
  void write(char type, std::string_view payload, Instant now,
             const std::vector<model::OwnedAction>& actions);

  std::unique_ptr<telemetry::LogFile> file_;
  Instant last_{};
  std::string payload_;
  std::string record_;
};

// FNV-1a over the encoded actions.
std::uint64_t digest(const std::vector<model::OwnedAction>& actions);

struct ReplayReport {
  std::uint64_t events = 0;
  std::uint64_t setups = 0;
  bool identical = true;
  std::uint64_t first_difference = 0;  // number of the record, from 1
  std::string difference;              // what it was
};

// Drives a fresh core with the log's bytes and compares every digest.
Result<ReplayReport> replay_log(std::string_view bytes);

}  // namespace signalbox::app
