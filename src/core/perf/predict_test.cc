// SPDX-License-Identifier: Apache-2.0
// Goal: predictions follow the physics and grow with load. Method: cases by hand; laws.
#include "core/perf/predict.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>

#include "base/rng.h"

namespace signalbox::perf {
namespace {

Coefficients engine() {
  Coefficients k;
  k.a = 0.02;
  k.b = 1e-4;
  k.c = 1e-9;
  k.d = 0.015;
  k.e1 = k.e2 = 1e-4;
  k.f = 1e-7;
  return k;
}
constexpr Uncertainty kSigma{0.3, 0.2, 0.1};

TEST(Predict, AnIdleEngineTakesItsPrefillAlone) {
  const Prediction p = predict(engine(), kSigma, {}, {1000, 500, 1, 0});
  EXPECT_DOUBLE_EQ(p.ttft, engine().prefill(1000, 500));
  EXPECT_DOUBLE_EQ(p.e2e, p.ttft);
  EXPECT_NEAR(p.ttft_sd, 0.02 * 0.3 + p.prefill * 0.2, 1e-12);
}

TEST(Predict, PrefillBesideDecodersGoesChunkByChunk) {
  const Load load{92, 100'000, 0.3, 4000, 2};
  const Prediction p = predict(engine(), kSigma, load, {10'000, 0, 101, 0});
  const double step = engine().step(92, 100'000);
  EXPECT_NEAR(p.ttft, 0.3 + engine().prefill_work(10'000, 0) + 2.5 * step, 1e-12);
  EXPECT_NEAR(p.step, engine().step(95, 110'050.5), 1e-12);
  EXPECT_NEAR(p.e2e, p.ttft + 100 * p.step, 1e-12);
}

RC_GTEST_PROP(PredictLaw, MoreLoadAndMoreWorkNeverTakeLess, (std::uint64_t seed)) {
  Rng rng(seed, "law");
  Load load{1 + std::floor(rng.uniform(0, 200)), rng.uniform(0, 1e6), rng.uniform(0, 5),
            rng.uniform(0, 1e5), std::floor(rng.uniform(0, 20))};
  Work work{1 + rng.uniform(0, 1e5), rng.uniform(0, 1e5), 1 + rng.uniform(0, 4000), 0};
  const Prediction before = predict(engine(), kSigma, load, work);
  switch (rng.below(7)) {
    case 0: load.decoding += 1; break;
    case 1: load.kv += 1000; break;
    case 2: load.backlog_seconds += 0.1; break;
    case 3: load.backlog_tokens += 500; break;
    case 4: work.fresh += 10; break;
    case 5: work.cached += 100; break;
    case 6: work.output += 10; break;
  }
  const Prediction after = predict(engine(), kSigma, load, work);
  RC_ASSERT(after.ttft >= before.ttft);
  RC_ASSERT(after.step >= before.step);
  RC_ASSERT(after.e2e >= before.e2e);
  RC_ASSERT(after.e2e_sd > 0);
}

}  // namespace
}  // namespace signalbox::perf
