// SPDX-License-Identifier: Apache-2.0
// What a scenario expects of its runs, a line each:
//
//   ttft.p99 < 2s
//   completed >= 99%
//   goodput >= 0.95 * baseline              the same run without its faults
//   queue.mean after 60s until 90s <= 5     a stretch of the run
//
// Pure. The names of the left side are metric.h's.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "core/spec/text_form.h"
#include "sim/metric.h"

namespace signalbox::sim {

struct Expectation {
  enum class Relation : std::uint8_t { Less, AtMost, Equal, AtLeast, More };
  std::string text;                 // as it was written
  const Metric* metric = nullptr;   // never null in a parsed one
  Duration after{};                 // the stretch [after, until), to a bucket of the series
  Duration until = Duration::max();
  Relation relation = Relation::AtMost;
  double bound = 0;                 // in the metric's unit (s, 1, 1/s, USD); or times baseline
  bool baseline = false;

  bool whole() const { return after == Duration::zero() && until == Duration::max(); }
  bool operator==(const Expectation& other) const { return text == other.text; }
  auto operator<=>(const Expectation& other) const { return text <=> other.text; }
};

// An error is a sentence about the line.
Result<Expectation> parse_expectation(std::string_view text);

struct Verdict {
  bool holds = false;
  std::optional<double> value;      // nothing: there was nothing to measure, so it does not hold
  std::optional<double> bound;      // nothing: the baseline has measured nothing
  std::string sentence;             // the line, and what was measured
};

// `baseline`: of the same scenario and seed without faults; wanted when the line speaks of it.
Verdict judge(const Expectation& expectation, const Report& report, const Report* baseline);

}  // namespace signalbox::sim

template <>
struct signalbox::spec::TextForm<signalbox::sim::Expectation> {
  static constexpr std::string_view kName = "expectation", kNames = "expectations";
  static constexpr std::string_view kPattern =
      R"(^[a-z0-9_.]+( +(after|until) +\S+)* *(<|<=|==|>=|>) *\S.*$)";
  static Result<sim::Expectation> parse(std::string_view text) {
    return sim::parse_expectation(text);
  }
  static std::string print(const sim::Expectation& value) { return value.text; }
};
