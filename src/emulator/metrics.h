// SPDX-License-Identifier: Apache-2.0
// What the engine counts about itself, and the two Prometheus pages that tell it.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/engine/spec.h"

namespace signalbox::emulator {

// Cumulative buckets, sum and count; `bounds` must outlive it.
class BucketHistogram {
 public:
  explicit BucketHistogram(std::span<const double> bounds)
      : bounds_(bounds), counts_(bounds.size() + 1) {}
  void observe(double value);
  std::span<const double> bounds() const { return bounds_; }
  // Observations up to and including bound i; i = bounds().size() gives all.
  std::int64_t cumulative(std::size_t i) const;
  double sum() const { return sum_; }

 private:
  std::span<const double> bounds_;
  std::vector<std::int64_t> counts_;
  double sum_ = 0;
};

// The histograms of vLLM 0.32 that a request fills. Seconds are those of the wall.
struct RequestMetrics {
  RequestMetrics();
  BucketHistogram prompt_tokens, generation_tokens, iteration_tokens, max_generation_tokens;
  BucketHistogram params_n, params_max_tokens, ttft, itl, tpot, e2e, queue, inference, prefill;
  BucketHistogram decode, preemptions, prefill_computed;
  std::int64_t finished_stop = 0;
  std::int64_t finished_length = 0;
  std::int64_t longest = 0;        // tokens of the longest sequence; llama.cpp
  double prompt_seconds = 0;       // of ended requests; llama.cpp
  double predicted_seconds = 0;
  std::int64_t predicted_tokens = 0;
  std::int64_t computed_prompt_tokens = 0;
  std::int64_t cached_prompt_tokens = 0;
};

// Of one data-parallel rank, which vLLM calls an engine.
struct RankView {
  truth::Gauges gauges;
  truth::Counters counters;
  const RequestMetrics* requests = nullptr;
};

struct MetricsView {
  std::string_view model;
  double started_unix = 0;      // seconds since 1970
  std::int64_t block_tokens = 16;
  std::vector<RankView> ranks;  // at least one
};

std::string vllm_metrics(const MetricsView& view);
std::string llamacpp_metrics(const MetricsView& view);  // of its one rank

}  // namespace signalbox::emulator
