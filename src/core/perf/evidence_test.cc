// SPDX-License-Identifier: Apache-2.0
// Goal: answers and histograms become evidence, gaps and restarts do not. Method: cases by hand.
#include "core/perf/evidence.h"

#include <gtest/gtest.h>

namespace signalbox::perf {
namespace {

using std::chrono::milliseconds;

TEST(Evidence, ReadsTheEnginesOwnTimings) {
  model::EngineTimings t;
  t.prefill = milliseconds(200);
  t.prefill_tokens = 1500;
  t.decode = milliseconds(1980);
  model::Usage u;
  u.cached_tokens = 500;
  Company company;
  company.batch = 3;
  company.kv = 9000;
  const auto p = prefill_from(model::EndpointId(2), t, u, company);
  ASSERT_TRUE(p);
  EXPECT_EQ(p->fresh, 1500);
  EXPECT_EQ(p->attention, 1500.0 * 1250);
  EXPECT_DOUBLE_EQ(p->seconds, 0.2);
  const auto d = decode_from(model::EndpointId(2), t, 100, company);
  ASSERT_TRUE(d);
  EXPECT_EQ(d->steps, 99);
  EXPECT_EQ(d->batch, 3);
}

TEST(Evidence, TakesComputedTokensFromUsageWhenTimingsDoNotTell) {
  model::EngineTimings t;
  t.prefill = milliseconds(200);
  model::Usage u;
  EXPECT_FALSE(prefill_from(model::EndpointId(1), t, u, {}));
  u.prompt_tokens = 1000;
  EXPECT_FALSE(prefill_from(model::EndpointId(1), t, u, {}));
  u.cached_tokens = 400;
  EXPECT_EQ(prefill_from(model::EndpointId(1), t, u, {})->fresh, 600);
}

TEST(Evidence, IsNothingWithoutTimes) {
  EXPECT_FALSE(prefill_from(model::EndpointId(1), {}, {}, {}));
  EXPECT_FALSE(decode_from(model::EndpointId(1), {}, 100, {}));
  model::EngineTimings t;
  t.decode = milliseconds(5);
  EXPECT_FALSE(decode_from(model::EndpointId(1), t, 1, {}));
}

model::EngineState look(double seconds, std::int64_t requests, double tokens) {
  model::EngineState s;
  s.prefill_seconds = {seconds, requests};
  s.prefill_tokens = {tokens, requests};
  s.queue_seconds = {seconds / 2, requests};
  s.incarnation = 7;
  return s;
}

TEST(HistogramWatch, MakesEvidenceOfDifferences) {
  HistogramWatch watch;
  EXPECT_FALSE(watch.observe(model::EndpointId(1), look(10, 100, 50'000), 0, 0));
  const auto delta = watch.observe(model::EndpointId(1), look(12, 110, 60'000), 4, 8000);
  ASSERT_TRUE(delta);
  EXPECT_EQ(delta->prefill.requests, 10);
  EXPECT_EQ(delta->prefill.seconds, 2);
  EXPECT_EQ(delta->prefill.fresh, 10'000);
  EXPECT_EQ(delta->prefill.attention, 10'000.0 * 1000);
  EXPECT_EQ(delta->prefill.decoding, 4);
  EXPECT_DOUBLE_EQ(delta->queue_seconds, 0.1);
  EXPECT_FALSE(watch.observe(model::EndpointId(1), look(12, 110, 60'000), 0, 0));
}

TEST(HistogramWatch, StartsAnewAfterARestartOrAGap) {
  HistogramWatch watch;
  watch.observe(model::EndpointId(1), look(10, 100, 50'000), 0, 0);
  EXPECT_FALSE(watch.observe(model::EndpointId(1), look(1, 5, 3000), 0, 0));
  EXPECT_TRUE(watch.observe(model::EndpointId(1), look(2, 9, 5000), 0, 0));
  auto restarted = look(3, 12, 8000);
  restarted.incarnation = 8;
  EXPECT_FALSE(watch.observe(model::EndpointId(1), restarted, 0, 0));
  EXPECT_FALSE(watch.observe(model::EndpointId(1), {}, 0, 0));
  EXPECT_FALSE(watch.observe(model::EndpointId(1), look(4, 20, 9000), 0, 0));
}

}  // namespace
}  // namespace signalbox::perf
