// SPDX-License-Identifier: Apache-2.0
// Writes Prometheus text format 0.0.4. Append-only on a string; one thread at a time.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace signalbox::telemetry {

enum class MetricType : std::uint8_t { Counter, Gauge, Histogram };

inline constexpr std::string_view kExpositionType = "text/plain; version=0.0.4; charset=utf-8";

using Label = std::pair<std::string_view, std::string_view>;  // name, value

// All samples of a family follow its family() call. Label values are escaped here; bytes that are
// not UTF-8 become `?`, since one of them would make a scraper refuse the whole page.
class TextWriter {
 public:
  explicit TextWriter(std::string& out) : out_(out) {}

  // `name` and `help` live until the next call of family().
  void family(std::string_view name, MetricType type, std::string_view help);
  void sample(std::initializer_list<Label> labels, double value) {
    sample("", std::span<const Label>(labels.begin(), labels.size()), value);
  }
  // `suffix` is appended to the family's name: `_sum`, `_bucket`.
  void sample(std::string_view suffix, std::span<const Label> labels, double value);

 private:
  void escaped(std::string_view value);
  void number(double value);

  std::string& out_;
  std::string_view name_;
};

}  // namespace signalbox::telemetry
