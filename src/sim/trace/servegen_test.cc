// SPDX-License-Identifier: Apache-2.0
// Goal: drawn streams have the recorded rates, burstiness and lengths, the same for the same seed.
// Method: two small clients; moments within several standard errors of a fixed seed.
#include "sim/trace/servegen.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "sim/trace/operations.h"

namespace signalbox::trace {
namespace {

using testing::HasSubstr;

const std::string kRates =
    "model,client,t_s,rate_rps,cv,pattern,shape\n"
    "m,0,0,2,1,G,1\n"
    "m,0,600,4,1,G,1\n"
    "other,0,0,9,1,G,1\n"
    "m,5,600,1,2.2,W,0.5\n";
const std::string kLengthsHeader =
    "model,client,t_s,field,mean,p01,p05,p10,p25,p50,p75,p90,p95,p99,p999,max\n";
const std::string kLengths = kLengthsHeader +
                             "m,0,0,input_tokens,100,1,1,50,80,100,100,120,150,200,300,400\n"
                             "m,0,0,output_tokens,7,7,7,7,7,7,7,7,7,7,7,7\n"
                             "m,0,0,reason_ratio,1,1,1,1,1,1,1,1,1,1,1,1\n"
                             "m,all,all,text_tokens,10,10,10,10,10,10,10,10,10,10,10,10\n"
                             "m,all,all,image_tokens,90,90,90,90,90,90,90,90,90,90,90,90\n"
                             "m,all,all,output_tokens,3,3,3,3,3,3,3,3,3,3,3,3\n";

ServeGen small() {
  auto read = read_servegen("m", kRates, kLengths);
  EXPECT_TRUE(read) << read.error().message;
  return read ? std::move(*read) : ServeGen{};
}

TEST(ServeGen, ReadsOneModelsClients) {
  const ServeGen s = small();
  ASSERT_EQ(s.clients.size(), 2u);
  EXPECT_EQ(s.clients[1].id, 5);
  EXPECT_EQ(s.clients[1].windows[0].gaps.pattern, GapShape::Pattern::Weibull);
  EXPECT_EQ(s.lasts, std::chrono::seconds(1200));
  EXPECT_DOUBLE_EQ(s.mean_rate(), (2 + 4 + 1) * 600 / 1200.0);
}

TEST(ServeGen, DrawsTheRecordedRates) {
  ServeGenDraw wanted;
  wanted.length = std::chrono::seconds(1200);
  wanted.scale = 10;
  const auto drawn = draw(small(), wanted, 1);
  ASSERT_TRUE(drawn) << drawn.error().message;
  EXPECT_EQ(fault_of(*drawn), std::nullopt);
  double early = 0, late = 0, pooled = 0;
  for (const Call& call : drawn->calls) {
    if (call.output_tokens == 3) {
      ++pooled;
      EXPECT_EQ(call.prompt_tokens, 100);  // text and images
    } else {
      ++(call.at < std::chrono::seconds(600) ? early : late);
    }
  }
  EXPECT_NEAR(early, 12'000, 5 * std::sqrt(12'000));
  EXPECT_NEAR(late, 24'000, 5 * std::sqrt(24'000));
  EXPECT_NEAR(pooled, 6'000, 5 * 2.3 * std::sqrt(6'000));
}

TEST(ServeGen, DrawsTheRecordedBurstiness) {
  ServeGenDraw wanted;
  wanted.start = std::chrono::seconds(600);
  wanted.length = std::chrono::seconds(600);
  wanted.scale = 10;
  const auto drawn = draw(small(), wanted, 1);
  ASSERT_TRUE(drawn);
  // Variance over mean of the counts in two seconds: 1 of Poisson, cv² = 5 of Weibull 0.5 in the
  // limit of long windows.
  const auto dispersion = [&](std::int64_t output) {
    std::vector<double> counts(300);
    for (const Call& call : drawn->calls) {
      if (call.output_tokens == output) ++counts[static_cast<std::size_t>(to_seconds(call.at) / 2)];
    }
    double sum = 0, squares = 0;
    for (const double n : counts) sum += n, squares += n * n;
    const double mean = sum / 300;
    return (squares / 300 - mean * mean) / mean;
  };
  EXPECT_NEAR(dispersion(7), 1, 0.3);
  EXPECT_NEAR(dispersion(3), 4.5, 1.5);
}

TEST(ServeGen, TheSameSeedDrawsTheSameStream) {
  const auto digest = [](std::uint64_t seed) {
    std::uint64_t sum = 0;
    const auto drawn = draw(small(), {}, seed);
    for (const Call& call : drawn->calls) {
      sum = mixed(sum, static_cast<std::uint64_t>(call.at.count() * 1000 + call.prompt_tokens));
    }
    return sum;
  };
  EXPECT_EQ(digest(1), digest(1));
  EXPECT_NE(digest(1), digest(2));
}

TEST(ServeGen, AStretchBeginsInTheMiddleOfAWindow) {
  ServeGenDraw wanted;
  wanted.start = std::chrono::seconds(900);
  wanted.length = std::chrono::seconds(200);
  wanted.scale = 10;
  const auto drawn = draw(small(), wanted, 1);
  ASSERT_TRUE(drawn);
  EXPECT_NEAR(static_cast<double>(drawn->calls.size()), 10'000, 1'200);
  EXPECT_EQ(drawn->lasts, std::chrono::seconds(200));
}

TEST(ServeGen, RefusesMoreCallsThanAsked) {
  ServeGenDraw wanted;
  wanted.calls_max = 100;
  const auto drawn = draw(small(), wanted, 1);
  ASSERT_FALSE(drawn);
  EXPECT_THAT(drawn.error().message, HasSubstr("`calls_max` of 100"));
}

TEST(ServeGen, RefusesTablesThatDoNotFit) {
  EXPECT_THAT(read_servegen("x", kRates, kLengths).error().message,
              HasSubstr("no row is of the model `x`"));
  EXPECT_THAT(read_servegen("m", kRates, kLengthsHeader).error().message,
              HasSubstr("client 0 of `m` has no rows"));
  EXPECT_THAT(read_servegen("m", kRates + "m,5,600,1,1,G,1\n", kLengths).error().message,
              HasSubstr("line 6: `t_s` is not later"));
  EXPECT_THAT(read_servegen("m", kRates + "m,5,1200,1,1,Q,1\n", kLengths).error().message,
              HasSubstr("`pattern` is `Q`"));
  const std::string falling = "m,5,0,input_tokens,1,9,8,9,9,9,9,9,9,9,9,9\n";
  EXPECT_THAT(read_servegen("m", kRates, kLengths + falling).error().message,
              HasSubstr("quantiles fall"));
}

TEST(ServeGenRates, AWindowWithoutARecordIsAsTheOneBefore) {
  const auto curve = read_servegen_rates("m", "model,t_s,rate_rps,active_clients\n"
                                              "m,0,10,1\nm,600,0,0\nx,600,7,1\nm,1200,20,1\n");
  ASSERT_TRUE(curve) << curve.error().message;
  EXPECT_EQ(stretch_at(*curve, std::chrono::seconds(700)).rate, 10);
  EXPECT_EQ(stretch_at(*curve, std::chrono::seconds(1800 + 700)).rate, 10);
  EXPECT_NEAR(mean_of(*curve), (10 + 10 + 20) / 3.0, 1e-9);
}

}  // namespace
}  // namespace signalbox::trace
