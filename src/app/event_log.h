// SPDX-License-Identifier: Apache-2.0
// The event log: seed, configuration and every event in lock order with its time and a digest of
// the actions that followed. What `replay` reads.
//
// A run begins with the line `signalbox event log 2`, the seed in eight bytes and eight bytes
// checksum of both. Then records: varint length, one byte type, varint time (ns since the previous
// record, zigzag), payload, eight bytes digest of the actions, eight bytes checksum of the record
// from its type on. A wrong checksum is damage; a wrong digest behind a right one is a difference.
//   'S' setup: length-prefixed fleet (core/model/codec.h), then the Gateway document as YAML
//   'E' event (core/model/codec.h)
//   'G' gap: varint number of records that are missing here, because the disk was slower than the
//       traffic, or full. Its time and its digest are 0
// A file that was begun when the log was rotated has the line `signalbox event log 2, continued
// after record N of FILE` and repeats the seed. A run that is appended to an older log has a NUL
// before its line.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "core/flow/config.h"
#include "core/flow/flow.h"
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

  // Goes on in a new file by the same path, after the present one was renamed. Call it where
  // nothing is handled meanwhile: under the core's lock.
  void reopen();

  telemetry::LogFile& file() { return *file_; }

 private:
  EventLog(std::unique_ptr<telemetry::LogFile> file, std::string path, std::uint64_t seed)
      : file_(std::move(file)), path_(std::move(path)), seed_(seed) {}
  void write(char type, std::string_view payload, Instant now,
             const std::vector<model::OwnedAction>& actions);

  std::unique_ptr<telemetry::LogFile> file_;
  std::string path_;
  std::uint64_t seed_;
  std::uint64_t records_ = 0;
  Instant last_{};
  std::string payload_;
  std::string record_;
  std::string sealed_;
};

// XXH3 over the encoded actions.
std::uint64_t digest(const std::vector<model::OwnedAction>& actions);

struct ReplayReport {
  std::uint64_t events = 0;
  std::uint64_t setups = 0;
  bool identical = true;
  std::uint64_t first_difference = 0;  // number of the record, from 1
  std::string difference;              // what it was
};

// One file of a log: its name for messages, its bytes.
struct LogPiece {
  std::string name;
  std::string_view bytes;
};

// The bytes of each file; an error names the one that is empty or cannot be read.
Result<std::vector<std::string>> read_log_files(const std::vector<std::string>& paths);
// Each file under its path. `bytes` must outlive what is made of it.
std::vector<LogPiece> pieces_of(const std::vector<std::string>& paths,
                                const std::vector<std::string>& bytes);

// Is told what a log holds while it is replayed.
class LogListener {
 public:
  virtual ~LogListener() = default;
  virtual void begins() = 0;  // a run: what was told before it is of another process
  virtual void applied(const flow::Setup& setup, Instant now) = 0;
  virtual void handled(const model::Event& event, Instant now) = 0;
  // The core after the run's last record, or after the last one before what cannot be read.
  virtual void ends(const flow::Flow& core) = 0;
};

// Drives a fresh core per run with the bytes of all files, oldest first, and compares every digest.
// Errors name the file and the record, counted from 1 over the whole run.
Result<ReplayReport> replay_logs(const std::vector<LogPiece>& pieces,
                                 LogListener* listener = nullptr);
// The same for one file.
Result<ReplayReport> replay_log(std::string_view bytes);

}  // namespace signalbox::app
