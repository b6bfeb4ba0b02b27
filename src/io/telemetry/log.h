// SPDX-License-Identifier: Apache-2.0
// The operator's log on standard error: a sentence and key=value fields. From any thread. For what
// happens rarely; per-request facts go to the access log. Never secrets, never prompts.
//
//   log_warn("an endpoint does not answer", {{"endpoint", address}, {"for", elapsed}});
#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <variant>

#include "base/time.h"

namespace signalbox::telemetry {

enum class Level : std::uint8_t { Debug, Info, Warn, Error, Off };

// A key with a value. Texts are viewed, not copied: fields live as long as the call.
class Field {
 public:
  Field(std::string_view key, std::string_view value) : key_(key), value_(value) {}
  Field(std::string_view key, const char* value) : key_(key), value_(std::string_view(value)) {}
  Field(std::string_view key, const std::string& value)
      : key_(key), value_(std::string_view(value)) {}
  Field(std::string_view key, bool value) : key_(key), value_(value) {}
  Field(std::string_view key, double value) : key_(key), value_(value) {}
  Field(std::string_view key, Duration value) : key_(key), value_(value) {}
  Field(std::string_view key, std::integral auto value)
      : key_(key), value_(static_cast<std::int64_t>(value)) {}

  void append_to(std::string& out) const;  // ` key=value`, quoted where needed

 private:
  std::string_view key_;
  std::variant<std::string_view, bool, double, Duration, std::int64_t> value_;
};
using Fields = std::initializer_list<Field>;

// Lines below `level` are not written. Info at the start.
void set_log_level(Level level);
bool log_enabled(Level level);

void log(Level level, std::string_view message, Fields fields = {});
inline void log_debug(std::string_view m, Fields f = {}) { log(Level::Debug, m, f); }
inline void log_info(std::string_view m, Fields f = {}) { log(Level::Info, m, f); }
inline void log_warn(std::string_view m, Fields f = {}) { log(Level::Warn, m, f); }
inline void log_error(std::string_view m, Fields f = {}) { log(Level::Error, m, f); }

// What log() writes behind time and level.
std::string log_text(std::string_view message, Fields fields);

}  // namespace signalbox::telemetry
