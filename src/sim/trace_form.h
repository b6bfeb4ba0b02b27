// SPDX-License-Identifier: Apache-2.0
// Recorded traffic as a scenario names it: which files, in which form, what is done to them. Pure:
// whoever reads files hands in their text.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/describe.h"
#include "base/result.h"
#include "base/time.h"
#include "core/spec/field.h"
#include "sim/trace/rate_curve.h"
#include "sim/trace/trace.h"

namespace signalbox::sim {

// The text of a file that a scenario names, unpacked; an error is a sentence without the name.
using ReadText = std::function<Result<std::string>(const std::string& path)>;

enum class TraceFormat : std::uint8_t { Mooncake, Azure, Agentic, Servegen };

// What is done comes in the order of the fields: spread, slice, repeat, scale. Length 0 is all.
struct TraceForm {
  TraceFormat format = TraceFormat::Mooncake;
  std::string file;                  // Servegen: of rates; Agentic: of calls
  std::string sessions_file;         // Agentic
  std::string lengths_file;          // Servegen
  std::string model;                 // Servegen
  Duration spread{};
  Duration start{};
  Duration length{};
  std::int64_t first_session = 0;
  std::int64_t sessions = 0;         // 0: all
  Duration repeat_for{};
  double speed_up = 1;
  double requests_per_second = 0;    // 0: as recorded
  double tokens_per_second = 0;
};

template <typename Visitor>
void describe(Visitor& v, TraceForm& c) {
  v(c.format, "format", "The form of the record.", spec::required);
  v(c.file, "file", "The record, plain or gzip: servegen's rates, agentic's calls.",
    spec::required);
  v(c.sessions_file, "sessions_file", "Format agentic: the table of sessions.");
  v(c.lengths_file, "lengths_file", "Format servegen: the table of lengths.");
  v(c.model, "model", "Format servegen: the model whose clients are drawn.");
  v(c.spread, "spread",
    "Each call is moved by a draw up to this, which undoes a record in coarse steps.",
    Range{0, 3600});
  v(c.start, "start", "Where in the record the load begins.", Range{0, 1e9});
  v(c.length, "length", "How much of the record is played; 0: all, servegen: 20m.",
    Range{0, 1e9});
  v(c.first_session, "first_session", "Format agentic: the first session played.", Range{0, 1e9});
  v(c.sessions, "sessions", "Format agentic: how many sessions are played; 0: all.",
    Range{0, 1e9});
  v(c.repeat_for, "repeat_for", "Played again and again, about other things, until this time.",
    Range{0, 1e9});
  v(c.speed_up, "speed_up", "So many times as many calls a second as recorded.",
    Range{1e-4, 1e4});
  v(c.requests_per_second, "requests_per_second",
    "Scaled to this mean rate, instead of `speed_up`; 0: is not.", Range{0, 1e6});
  v(c.tokens_per_second, "tokens_per_second",
    "Scaled to this mean rate of prompt and answer tokens; 0: is not.", Range{0, 1e9});
}

enum class CurveFormat : std::uint8_t { Tidal, Servegen };

struct CurveForm {
  CurveFormat format = CurveFormat::Tidal;
  std::string file;
  std::string model;      // Servegen
  double speed_up = 1;
};

template <typename Visitor>
void describe(Visitor& v, CurveForm& c) {
  v(c.format, "format", "The form of the record.", spec::required);
  v(c.file, "file", "The record, plain or gzip.", spec::required);
  v(c.model, "model", "Format servegen: the model whose rate it is.");
  v(c.speed_up, "speed_up", "So many times as fast: at 144 a day takes ten minutes.",
    Range{1e-4, 1e6});
}

// What two settings together make impossible, as a full sentence; nothing: all is well.
std::optional<std::string> fault_of(const TraceForm& form);
std::optional<std::string> fault_of(const CurveForm& form);

// The seed draws what is drawn (spread, servegen). The error says which file, if one is at fault.
Result<trace::Trace> make_trace(const TraceForm& form, const ReadText& read, std::uint64_t seed);
// The curve with a mean of 1.
Result<trace::RateCurve> make_curve(const CurveForm& form, const ReadText& read);

}  // namespace signalbox::sim

template <>
struct signalbox::EnumNames<signalbox::sim::TraceFormat> {
  using Format = sim::TraceFormat;
  static constexpr std::pair<Format, std::string_view> values[] = {
      {Format::Mooncake, "mooncake"},
      {Format::Azure, "azure"},
      {Format::Agentic, "agentic"},
      {Format::Servegen, "servegen"}};
};

template <>
struct signalbox::EnumNames<signalbox::sim::CurveFormat> {
  using Format = sim::CurveFormat;
  static constexpr std::pair<Format, std::string_view> values[] = {{Format::Tidal, "tidal"},
                                                                   {Format::Servegen, "servegen"}};
};
