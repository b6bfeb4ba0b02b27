// SPDX-License-Identifier: Apache-2.0
// What the performance model costs: predict (goal: 0.3 us a candidate), an observation, the
// effective coefficients of an endpoint, an output length estimate, and base's sketches.
#include <benchmark/benchmark.h>

#include <cmath>
#include <vector>

#include "base/decayed_quantile.h"
#include "base/histogram.h"
#include "base/rng.h"
#include "core/perf/calibrator.h"
#include "core/perf/output_length.h"
#include "core/perf/predict.h"

namespace {

using namespace signalbox;
using namespace signalbox::perf;

Prior h100() {
  ProfileQuery query;
  query.model = "Llama-3.1-70B";
  query.accelerator = "H100-SXM-80GB";
  query.tensor_parallel = 4;
  query.precision = "fp8";
  return make_prior(query);
}

void predict_one(benchmark::State& state) {
  const Prior prior = h100();
  Rng rng(1, "bench");
  std::vector<Load> loads;
  for (int i = 0; i < 256; ++i) {
    const double n = std::floor(rng.uniform(0, 64));
    loads.push_back({n, n * 3000, rng.uniform(0, 2), rng.uniform(0, 20'000), 2});
  }
  std::size_t i = 0;
  for (auto _ : state) {
    const Load& load = loads[i++ & 255];
    benchmark::DoNotOptimize(
        predict(prior.coefficients, prior.sigma, load, {1500, 500, 300, 200}));
  }
}
BENCHMARK(predict_one);

void observe_decode(benchmark::State& state) {
  Calibrator calibrator(h100());
  const Coefficients k = calibrator.prior().coefficients;
  Rng rng(1, "bench");
  std::vector<DecodeEvidence> evidence(1024);
  for (std::size_t i = 0; i < evidence.size(); ++i) {
    DecodeEvidence& e = evidence[i];
    e.endpoint = model::EndpointId(static_cast<std::uint32_t>(1 + i % 64));
    e.steps = 100;
    e.batch = 1 + std::floor(rng.uniform(0, 64));
    e.kv = e.batch * 3000;
    e.seconds = 100 * k.step(e.batch, e.kv) * std::exp(0.07 * rng.normal());
  }
  std::size_t i = 0;
  for (auto _ : state) {
    benchmark::DoNotOptimize(calibrator.observe(evidence[i++ & 1023], Instant{}));
  }
}
BENCHMARK(observe_decode);

void observe_prefill(benchmark::State& state) {
  Calibrator calibrator(h100());
  const Coefficients k = calibrator.prior().coefficients;
  Rng rng(1, "bench");
  std::vector<PrefillEvidence> evidence;
  for (std::uint32_t i = 0; i < 1024; ++i) {
    const double fresh = std::exp(rng.uniform(3, 9));
    evidence.push_back(prefill_when_idle(model::EndpointId(1 + i % 64),
                                         k.prefill(fresh, 0) * std::exp(0.07 * rng.normal()),
                                         fresh, 0));
  }
  std::size_t i = 0;
  for (auto _ : state) {
    benchmark::DoNotOptimize(calibrator.observe(evidence[i++ & 1023], Instant{}));
  }
}
BENCHMARK(observe_prefill);

void effective(benchmark::State& state) {
  Calibrator calibrator(h100());
  const Coefficients k = calibrator.prior().coefficients;
  for (std::uint32_t i = 0; i < 6400; ++i) {
    const double slow = 1 + 0.01 * (i % 64);
    calibrator.observe(prefill_when_idle(model::EndpointId(1 + i % 64),
                                         k.prefill(2000, 0) * slow, 2000, 0), Instant{});
  }
  std::uint32_t i = 0;
  for (auto _ : state) {
    benchmark::DoNotOptimize(
        calibrator.effective(model::EndpointId(1 + i++ % 64), Instant{} + std::chrono::seconds(1)));
  }
}
BENCHMARK(effective);

void output_length(benchmark::State& state) {
  OutputLengths lengths;
  Rng rng(1, "bench");
  const auto key = [](std::uint32_t i) {
    return LengthKey{model::TenantId(1 + i % 50), model::ModelId(1), model::RouteId(1)};
  };
  for (std::uint32_t i = 0; i < 5000; ++i) {
    lengths.observe(key(i), 1 + static_cast<std::int64_t>(std::exp(rng.uniform(2, 7))));
  }
  std::uint32_t i = 0;
  for (auto _ : state) benchmark::DoNotOptimize(lengths.estimate(key(i++), 1000));
}
BENCHMARK(output_length);

void output_length_observe(benchmark::State& state) {
  OutputLengths lengths;
  std::uint32_t i = 0;
  for (auto _ : state) {
    lengths.observe({model::TenantId(1 + i++ % 50), model::ModelId(1), model::RouteId(1)}, i % 999);
  }
}
BENCHMARK(output_length_observe);

void histogram_record(benchmark::State& state) {
  Histogram histogram;
  double value = 1e-5;
  for (auto _ : state) {
    histogram.record(value);
    value = value > 1000 ? 1e-5 : value * 1.1;
  }
}
BENCHMARK(histogram_record);

void catalogue_prior(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(h100());
}
BENCHMARK(catalogue_prior);

}  // namespace

BENCHMARK_MAIN();
