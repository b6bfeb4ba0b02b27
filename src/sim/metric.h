// SPDX-License-Identifier: Apache-2.0
// The figures of a run by name, each declared once: what tables print, what expectations compare,
// what the reference page lists. Pure.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "sim/report.h"

namespace signalbox::sim {

enum class Unit : std::uint8_t { Seconds, Share, PerSecond, Count, Usd };

struct Metric {
  std::string name;     // `ttft.p99`
  Unit unit = Unit::Count;
  std::string meaning;  // a sentence
  // Nothing: there was nothing to measure.
  std::function<std::optional<double>(const Report&)> of;
  // Of a stretch of the run, of so many seconds; empty: it is known of the whole run alone.
  std::function<std::optional<double>(const Bucket&, double seconds)> within;
};

// In the order in which they are listed.
const std::vector<Metric>& metrics();

// The error names the nearest.
Result<const Metric*> find_metric(std::string_view name);

// `1.25 s`, `250 ms`, `97.3 %`, `4.1/s`, `1200`, `3.5 USD`.
std::string print(double value, Unit unit);

// "`2s`, `250ms`": how a value of that unit is written, for messages and pages.
std::string_view examples(Unit unit);

}  // namespace signalbox::sim
