// SPDX-License-Identifier: Apache-2.0
// Series are kept sorted by their label values, so that a page is the same for the same figures.
#include "io/telemetry/registry.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <utility>

#include "base/check.h"

namespace signalbox::telemetry {
namespace {

constexpr std::size_t kValueBytesMax = 200;
constexpr std::string_view kOther = "other";

bool word(std::string_view text) {
  if (text.empty() || (text[0] >= '0' && text[0] <= '9')) return false;
  return std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
  });
}

// Units that are not base units, as suffix of a name without `_total`.
bool odd_unit(std::string_view name) {
  for (std::string_view suffix : {"_ms", "_us", "_ns", "_milliseconds", "_minutes", "_hours",
                                  "_kb", "_mb", "_kib", "_mib", "_percent"}) {
    if (name.ends_with(suffix)) return true;
  }
  return false;
}

void check(const Description& d, MetricType type) {
  std::string_view name = d.name;
  CHECK(word(name));
  CHECK(name.starts_with("signalbox_") || name.starts_with("process_"));
  CHECK(name.ends_with("_total") == (type == MetricType::Counter));
  if (type == MetricType::Counter) name.remove_suffix(6);
  CHECK(!odd_unit(name));
  CHECK(!d.help.empty());
  CHECK(d.values_max > 0);
  for (const std::string& label : d.labels) CHECK(word(label) && label != "le");
}

template <typename Metric>
constexpr MetricType type_of() {
  if constexpr (std::is_same_v<Metric, Counter>) return MetricType::Counter;
  else if constexpr (std::is_same_v<Metric, Gauge>) return MetricType::Gauge;
  else return MetricType::Histogram;
}

void write_series(TextWriter& w, std::vector<Label>& labels, const Counter& metric, double scale) {
  w.sample("", labels, static_cast<double>(metric.value()) * scale);
}

void write_series(TextWriter& w, std::vector<Label>& labels, const Gauge& metric, double scale) {
  w.sample("", labels, metric.value() * scale);
}

// The count is the sum of the buckets as read, so that `+Inf` and `_count` always agree.
void write_series(TextWriter& w, std::vector<Label>& labels, const Histogram& metric,
                  double scale) {
  std::vector<std::uint64_t> counts = metric.counts();
  std::uint64_t seen = 0;
  char text[32];
  for (std::size_t i = 0; i < counts.size(); ++i) {
    seen += counts[i];
    bool last = i + 1 == counts.size();
    auto end = last ? text : std::to_chars(text, text + sizeof text, metric.bounds()[i]).ptr;
    std::string_view bound = last ? std::string_view("+Inf") : std::string_view(text, end);
    labels.emplace_back("le", bound);
    w.sample("_bucket", labels, static_cast<double>(seen));
    labels.pop_back();
  }
  w.sample("_sum", labels, metric.sum() * scale);
  w.sample("_count", labels, static_cast<double>(seen));
}

}  // namespace

template <typename Metric>
Metric& Family<Metric>::with(std::initializer_list<std::string_view> values) {
  CHECK(values.size() == description_.labels.size());
  std::vector<std::string> key;
  for (std::string_view value : values) key.emplace_back(value.substr(0, kValueBytesMax));
  std::lock_guard lock(mutex_);
  auto found = series_.find(key);
  if (found == series_.end()) {
    values_.resize(key.size());
    for (std::size_t i = 0; i < key.size(); ++i) {
      if (values_[i].contains(key[i])) continue;
      if (values_[i].size() < description_.values_max) values_[i].insert(key[i]);
      else key[i] = kOther;
    }
    found = series_.find(key);
  }
  if (found == series_.end()) {
    std::unique_ptr<Metric> made;
    if constexpr (std::is_same_v<Metric, Histogram>) made = std::make_unique<Histogram>(bounds_);
    else made = std::make_unique<Metric>();
    found = series_.emplace(std::move(key), std::move(made)).first;
  }
  return *found->second;
}

template <typename Metric>
void Family<Metric>::set_values_max(std::size_t most) {
  std::lock_guard lock(mutex_);
  description_.values_max = most;
}

template <typename Metric>
std::size_t Family<Metric>::series() const {
  std::lock_guard lock(mutex_);
  return series_.size();
}

template <typename Metric>
void Family<Metric>::write(TextWriter& writer) const {
  std::lock_guard lock(mutex_);
  if (series_.empty()) return;
  writer.family(description_.name, type_of<Metric>(), description_.help);
  std::vector<Label> labels;
  for (const auto& [values, metric] : series_) {
    labels.clear();
    for (std::size_t i = 0; i < values.size(); ++i) {
      labels.emplace_back(description_.labels[i], values[i]);
    }
    write_series(writer, labels, *metric, description_.scale);
  }
}

template class Family<Counter>;
template class Family<Gauge>;
template class Family<Histogram>;

template <typename Metric>
Family<Metric>& Registry::add(Description description, MetricType type,
                              std::span<const double> bounds) {
  check(description, type);
  std::string name = description.name;
  auto family = std::make_shared<Family<Metric>>(
      std::move(description), std::vector<double>(bounds.begin(), bounds.end()));
  std::lock_guard lock(mutex_);
  Family<Metric>* raw = family.get();
  bool fresh = writers_.emplace(name, [raw](TextWriter& w) { raw->write(w); }).second;
  CHECK(fresh);
  limits_.push_back([raw](std::size_t most) { raw->set_values_max(most); });
  families_.push_back(std::move(family));
  return *raw;
}

Counters& Registry::counters(Description description) {
  return add<Counter>(std::move(description), MetricType::Counter, {});
}

Gauges& Registry::gauges(Description description) {
  return add<Gauge>(std::move(description), MetricType::Gauge, {});
}

Histograms& Registry::histograms(Description description, std::span<const double> bounds) {
  CHECK(description.scale == 1);
  return add<Histogram>(std::move(description), MetricType::Histogram, bounds);
}

Counter& Registry::counter(std::string name, std::string help, double scale) {
  Description description{std::move(name), std::move(help), {}, 1, scale};
  return counters(std::move(description)).with({});
}

Gauge& Registry::gauge(std::string name, std::string help) {
  return gauges({std::move(name), std::move(help), {}, 1, 1}).with({});
}

void Registry::set_label_values_max(std::size_t most) {
  std::lock_guard lock(mutex_);
  for (const auto& set : limits_) set(most);
}

void Registry::collector(std::function<void(TextWriter&)> collect) {
  std::lock_guard lock(mutex_);
  collectors_.push_back(std::move(collect));
}

void Registry::write(std::string& out) const {
  std::lock_guard lock(mutex_);
  TextWriter writer(out);
  for (const auto& [name, write] : writers_) write(writer);
  for (const auto& collect : collectors_) collect(writer);
}

}  // namespace signalbox::telemetry
