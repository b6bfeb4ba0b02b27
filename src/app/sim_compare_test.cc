// SPDX-License-Identifier: Apache-2.0
// Goal: a comparison from the command line runs what was asked for, pairs it by seed, and says what
// is wrong. Method: a record of two minutes in a file.
#include "app/sim_compare.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>

namespace signalbox::app {
namespace {

class SimCompare : public ::testing::Test {
 protected:
  SimCompare() : path_(testing::TempDir() + "sim_compare_trace.jsonl") {
    std::ofstream out(path_);
    for (int i = 0; i < 240; ++i) {
      out << R"({"timestamp":)" << i * 500 << R"(,"input_length":1024,"output_length":40,)"
          << R"("hash_ids":[)" << i % 7 << ',' << 100 + i << "]}\n";
    }
    options_.trace = path_;
    options_.sets = {"fleet=[{model: Llama-3.1-8B, profile: h100x1/fp8, count: 2}]"};
    options_.policies = "signalbox,random";
    options_.load = 0.5;
    options_.seeds = 2;
    options_.warm_up_s = 5;
    options_.measured_s = 20;
  }
  ~SimCompare() override { std::remove(path_.c_str()); }

  std::string path_;
  CompareOptions options_;
};

TEST_F(SimCompare, RowsAreByPolicyAndSeed) {
  const auto done = compare(options_);
  ASSERT_TRUE(done.has_value()) << done.error().message;
  ASSERT_EQ(done->rows.size(), 4u);
  EXPECT_EQ(done->rows[0].policy, "signalbox");
  EXPECT_EQ(done->rows[3].policy, "random");
  EXPECT_EQ(done->rows[0].seed, 1u);
  EXPECT_EQ(done->rows[3].seed, 2u);
  EXPECT_TRUE(done->violations.empty());
  for (const sim::Row& r : done->rows) {
    EXPECT_NEAR(r.tasks / 20, 0.5 * done->capacity, 0.2 * done->capacity);
    EXPECT_GT(r.goodput, 0.9);
    EXPECT_GT(r.cost_usd, 0);
  }
}

TEST_F(SimCompare, NumberOfThreadsChangesNothing) {
  options_.jobs = 1;
  const auto alone = compare(options_);
  options_.jobs = 4;
  const auto together = compare(options_);
  ASSERT_TRUE(alone && together);
  EXPECT_EQ(compare_json(*alone), compare_json(*together));
}

TEST_F(SimCompare, JsonHasTheFiguresOfEveryRun) {
  options_.seeds = 1;
  const auto done = compare(options_);
  ASSERT_TRUE(done.has_value());
  const auto out = nlohmann::json::parse(compare_json(*done));
  ASSERT_EQ(out["rows"].size(), 2u);
  for (const char* key : {"policy", "load", "e2e_mean_s", "ttft_mean_s", "ttft_p99_s",
                          "tpot_mean_s", "goodput", "cache_hit", "preemptions", "cost_usd"}) {
    EXPECT_TRUE(out["rows"][0].contains(key)) << key;
  }
  EXPECT_NE(compare_table(*done).find("random"), std::string::npos);
}

TEST_F(SimCompare, WhatIsWrongIsNamed) {
  const auto message = [&] {
    const auto done = compare(options_);
    return done ? std::string() : done.error().message;
  };
  options_.policies = "signalbox,randem";
  EXPECT_NE(message().find("randem"), std::string::npos) << message();
  options_.policies = "random";
  options_.format = "agentic";
  EXPECT_NE(message().find("sessions_file"), std::string::npos) << message();
  options_.format = "mooncake";
  options_.trace = path_ + ".none";
  EXPECT_NE(message().find(".none"), std::string::npos) << message();
  options_.trace = path_;
  options_.sets.push_back("fleet[0].cuont=3");
  EXPECT_NE(message().find("count"), std::string::npos) << message();
}

}  // namespace
}  // namespace signalbox::app
