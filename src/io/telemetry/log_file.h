// SPDX-License-Identifier: Apache-2.0
// An append-only file that is written by a thread of its own: access log, decision log, event log.
// append() may be called from any thread, copies into a bounded buffer and never waits for the
// disk; what does not fit, or cannot be written, is dropped whole, counted, and marked where it is
// missing.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/describe.h"
#include "base/result.h"
#include "base/time.h"

namespace signalbox::telemetry {

struct LogFileConfig {
  Bytes buffer_bytes_max{Bytes{8 << 20}};              // waiting to be written
  Duration write_interval = std::chrono::milliseconds(200);  // longest wait of a record
};

template <typename Visitor>
void describe(Visitor& v, LogFileConfig& c) {
  v(c.buffer_bytes_max, "buffer_bytes_max",
    "Bytes of a log that may wait for the disk; records beyond are dropped and counted.",
    Range{65536, 1 << 30});
  v(c.write_interval, "write_interval", "A record is written at the latest after this time.",
    Range{0.001, 60});
}

class LogFile {
 public:
  // The record that stands where `lost` others are missing.
  using Gap = std::function<std::string(std::uint64_t lost)>;
  static std::string gap_line(std::uint64_t lost);  // for logs of JSON lines: {"lost_records":3}

  // Alone: whoever else opens the file for such use, here or in another process, is refused.
  enum class Use : std::uint8_t { Shared, Alone };

  // Opens or creates `path` for appending, mode 0640; `-` is standard output. Does not wait for a
  // reader of a FIFO: without one it is an error.
  static Result<std::unique_ptr<LogFile>> open(std::string path, LogFileConfig config = {},
                                               Gap gap = &gap_line, Use use = Use::Shared);
  // Whether open() would find a place for it, without making or touching anything. That another
  // process has it for its own is not seen.
  static Result<void> check(const std::string& path);
  // Writes what waits, then closes. A pipe that takes nothing is given a second.
  ~LogFile();
  LogFile(const LogFile&) = delete;
  LogFile& operator=(const LogFile&) = delete;

  // Takes a whole record (with its line feed, if it is a line), or drops it.
  void append(std::string_view record);

  // The file is opened again by its path (after it was rotated away): what was appended before goes
  // to the old file, what comes after to the new one, behind `head` if that one is empty. When
  // opening fails the old one stays in use. Not for signal handlers: call it from a loop.
  void reopen(std::string head = {});

  // Returns when all that was appended before has been handed to the system.
  void flush();

  // Records lost because the buffer was full or a write failed.
  std::uint64_t dropped() const;
  std::uint64_t bytes_written() const;

 private:
  class Writer;
  explicit LogFile(std::unique_ptr<Writer> writer);
  std::unique_ptr<Writer> writer_;
};

}  // namespace signalbox::telemetry
