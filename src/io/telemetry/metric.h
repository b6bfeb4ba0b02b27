// SPDX-License-Identifier: Apache-2.0
// Counter, Gauge and Histogram: updated from any thread without a lock (relaxed atomics), read by
// the scraper. Owned by a Registry; references stay valid as long as it lives.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace signalbox::telemetry {

// Only grows. Counts whole things; a family's scale makes seconds out of counted nanoseconds.
class alignas(64) Counter {
 public:
  void add(std::uint64_t n = 1) { value_.fetch_add(n, std::memory_order_relaxed); }
  std::uint64_t value() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::uint64_t> value_{0};
};

class alignas(64) Gauge {
 public:
  void set(double value) { value_.store(value, std::memory_order_relaxed); }
  void add(double delta) { value_.fetch_add(delta, std::memory_order_relaxed); }
  double value() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<double> value_{0};
};

// Fixed buckets with inclusive upper bounds, ascending; values above the last go to +Inf. NaN is
// dropped.
class alignas(64) Histogram {
 public:
  explicit Histogram(std::span<const double> bounds);

  void observe(double value);

  std::span<const double> bounds() const { return bounds_; }
  // Not cumulative; the last entry is +Inf.
  std::vector<std::uint64_t> counts() const;
  double sum() const { return sum_.load(std::memory_order_relaxed); }

 private:
  std::vector<double> bounds_;
  std::unique_ptr<std::atomic<std::uint64_t>[]> counts_;
  std::atomic<double> sum_{0};
};

// 1 ms to 300 s: times that people and engines need.
std::span<const double> latency_bounds();
// 1 to 4^10 (about a million), by fours: tokens.
std::span<const double> token_bounds();

}  // namespace signalbox::telemetry
