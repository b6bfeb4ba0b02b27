// SPDX-License-Identifier: Apache-2.0
// The only file that sees spdlog. Control bytes of values are escaped: one call, one line.
#include "io/telemetry/log.h"

#include <fmt/format.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <atomic>

#include "io/telemetry/json_text.h"

namespace signalbox::telemetry {
namespace {

std::atomic<Level> lowest{Level::Info};

spdlog::logger& logger() {
  // Never destroyed: threads may log while the process ends.
  static spdlog::logger* made = [] {
    auto sink = std::make_shared<spdlog::sinks::stderr_sink_mt>();
    sink->set_formatter(std::make_unique<spdlog::pattern_formatter>(
        "%Y-%m-%dT%H:%M:%S.%eZ %-5l %v", spdlog::pattern_time_type::utc));
    auto* own = new spdlog::logger("signalbox", std::move(sink));
    own->set_level(spdlog::level::trace);
    own->flush_on(spdlog::level::trace);
    return own;
  }();
  return *made;
}

spdlog::level::level_enum to_spdlog(Level level) {
  switch (level) {
    case Level::Debug: return spdlog::level::debug;
    case Level::Info: return spdlog::level::info;
    case Level::Warn: return spdlog::level::warn;
    case Level::Error: return spdlog::level::err;
    case Level::Off: break;
  }
  return spdlog::level::off;
}

bool plain(std::string_view text) {
  if (text.empty()) return false;
  for (char c : text) {
    bool word = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    if (!word && std::string_view("._-:/[]@+%,*~").find(c) == std::string_view::npos) return false;
  }
  return true;
}

void append_duration(std::string& out, Duration d) {
  auto ns = d.count();
  if (ns > -1000 && ns < 1000) fmt::format_to(std::back_inserter(out), "{}ns", ns);
  else if (ns > -1'000'000 && ns < 1'000'000)
    fmt::format_to(std::back_inserter(out), "{:.3g}us", static_cast<double>(ns) * 1e-3);
  else if (ns > -1'000'000'000 && ns < 1'000'000'000)
    fmt::format_to(std::back_inserter(out), "{:.3g}ms", static_cast<double>(ns) * 1e-6);
  else
    fmt::format_to(std::back_inserter(out), "{:.1f}s", static_cast<double>(ns) * 1e-9);
}

}  // namespace

void Field::append_to(std::string& out) const {
  out.append(" ").append(key_).append("=");
  if (auto* text = std::get_if<std::string_view>(&value_)) {
    if (plain(*text)) out.append(*text);
    else append_json_string(out, *text);
  } else if (auto* flag = std::get_if<bool>(&value_)) {
    out.append(*flag ? "true" : "false");
  } else if (auto* real = std::get_if<double>(&value_)) {
    fmt::format_to(std::back_inserter(out), "{:.6g}", *real);
  } else if (auto* time = std::get_if<Duration>(&value_)) {
    append_duration(out, *time);
  } else {
    fmt::format_to(std::back_inserter(out), "{}", std::get<std::int64_t>(value_));
  }
}

void set_log_level(Level level) { lowest.store(level, std::memory_order_relaxed); }

bool log_enabled(Level level) { return level >= lowest.load(std::memory_order_relaxed); }

std::string log_text(std::string_view message, Fields fields) {
  std::string out;
  for (char c : message) out += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  for (const Field& field : fields) field.append_to(out);
  return out;
}

void log(Level level, std::string_view message, Fields fields) {
  if (level == Level::Off || !log_enabled(level)) return;
  std::string text = log_text(message, fields);
  logger().log(to_spdlog(level), spdlog::string_view_t(text.data(), text.size()));
}

}  // namespace signalbox::telemetry
