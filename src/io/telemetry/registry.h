// SPDX-License-Identifier: Apache-2.0
// All metrics of the process: families of series by label values, and their text. Registering and
// looking up lock a mutex; keep the reference that with() returns where it is updated often.
// Keeps: label values are bounded, whatever clients invent.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "io/telemetry/exposition.h"
#include "io/telemetry/metric.h"

namespace signalbox::telemetry {

// What a family is. The name follows the conventions, CHECKed: `signalbox_` or `process_` first,
// base units (`_seconds`, `_bytes`) as suffix, counters end in `_total`, nothing else does.
struct Description {
  std::string name;
  std::string help;
  std::vector<std::string> labels;
  std::size_t values_max = 1000;  // of one label; beyond it, new values are counted as `other`
  double scale = 1;               // exposed value = scale x counted (1e-9: nanoseconds to seconds)
};

// The series of one name. `Metric` is Counter, Gauge or Histogram.
template <typename Metric>
class Family {
 public:
  Family(Description description, std::vector<double> bounds)
      : description_(std::move(description)), bounds_(std::move(bounds)) {}

  // The series with these label values, in the order of Description::labels. Values longer than
  // 200 bytes are cut. Beyond values_max of a label, its value is `other`.
  Metric& with(std::initializer_list<std::string_view> values);

  // Series that exist stay.
  void set_values_max(std::size_t most);
  std::size_t series() const;
  void write(TextWriter& writer) const;

 private:
  Description description_;
  std::vector<double> bounds_;
  mutable std::mutex mutex_;
  std::map<std::vector<std::string>, std::unique_ptr<Metric>> series_;  // under mutex_
  std::vector<std::set<std::string>> values_;                           // likewise; by label
};

using Counters = Family<Counter>;
using Gauges = Family<Gauge>;
using Histograms = Family<Histogram>;

class Registry {
 public:
  Registry() = default;
  Registry(const Registry&) = delete;
  Registry& operator=(const Registry&) = delete;

  // Each name once. References live as long as the registry.
  Counters& counters(Description description);
  Gauges& gauges(Description description);
  Histograms& histograms(Description description, std::span<const double> bounds);

  // Shorthands for a family without labels.
  Counter& counter(std::string name, std::string help, double scale = 1);
  Gauge& gauge(std::string name, std::string help);

  // The values_max of every family, from now on.
  void set_label_values_max(std::size_t most);

  // Runs at each scrape, on the scraper's thread, and writes families of its own: for figures that
  // a snapshot holds anyway, such as one series per endpoint.
  void collector(std::function<void(TextWriter&)> collect);

  // Appends the whole page, families by name, then collectors in the order of their arrival.
  void write(std::string& out) const;

 private:
  template <typename Metric>
  Family<Metric>& add(Description description, MetricType type, std::span<const double> bounds);

  mutable std::mutex mutex_;
  std::map<std::string, std::function<void(TextWriter&)>, std::less<>> writers_;  // under mutex_
  std::vector<std::shared_ptr<void>> families_;
  std::vector<std::function<void(std::size_t)>> limits_;  // under mutex_; one per family
  std::vector<std::function<void(TextWriter&)>> collectors_;
};

}  // namespace signalbox::telemetry
