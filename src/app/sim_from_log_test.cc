// SPDX-License-Identifier: Apache-2.0
// Goal: an event log becomes a scenario that runs, and rules are compared on it. Method: a core
// driven by hand, logged to a file; the files that are kept are read again.
#include "app/sim_from_log.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "app/event_log.h"
#include "app/scenario_file.h"
#include "io/host/fleet_for_test.inc"

namespace signalbox::app {
namespace {

using namespace std::chrono_literals;

class FromLog : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = ::testing::TempDir() + "signalbox-from-log-" +
              ::testing::UnitTest::GetInstance()->current_test_info()->name();
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
    options_.logs = {folder_ + "/events.log"};
    options_.keep = folder_;
    options_.seeds = 2;
    options_.jobs = 1;
  }

  // Requests one after the other; each is answered after 300 ms.
  void record(int requests) {
    auto log = *EventLog::open(options_.logs[0], 1);
    const flow::Setup setup = host::one_model(3);
    flow::Flow flow(setup.config, 1);
    flow::Actions actions;
    Instant now = Instant{} + 1h;
    flow.apply(setup, now, actions);
    log->applied(setup, now, actions);
    const auto hand_in = [&](model::Event event) {
      actions.clear();
      const model::Event kept = event;
      flow.handle(std::move(event), now, actions);
      log->handled(kept, now, actions);
    };
    for (int i = 1; i <= requests; ++i) {
      const auto number = static_cast<std::uint64_t>(i);
      hand_in(host::arrival(number, 0));
      now += 100ms;
      hand_in(model::FirstToken{model::RequestId(number), model::AttemptId(1)});
      now += 200ms;
      model::AttemptEnded end = host::answered(model::RequestId(number), model::AttemptId(1));
      end.usage = {400, 0, 12};
      hand_in(end);
    }
    log->file().flush();
  }

  std::string folder_;
  FromLogOptions options_;
};

TEST_F(FromLog, RulesAreComparedWithWhatWas) {
  record(40);
  options_.policies = "signalbox,round-robin";
  options_.sets = {"fleet[0].count=1"};
  const auto result = counterfactual(options_);
  ASSERT_TRUE(result.has_value()) << result.error().message;
  EXPECT_EQ(result->recorded.requests, 40);
  EXPECT_EQ(result->recorded.completed, 40);
  EXPECT_NEAR(result->recorded.e2e_mean_s, 0.3, 0.01);
  std::vector<std::string> tried;
  for (const sim::Row& row : result->rows) {
    tried.push_back(row.policy);
    EXPECT_EQ(row.tasks, 40);
    EXPECT_GT(row.e2e_mean_s, 0);
  }
  EXPECT_EQ(tried, (std::vector<std::string>{"as it was", "as it was", "round-robin",
                                             "round-robin", "fleet[0].count=1",
                                             "fleet[0].count=1"}));
  EXPECT_TRUE(result->violations.empty());
  const std::string table = counterfactual_table(*result);
  EXPECT_NE(table.find("recorded"), std::string::npos) << table;
  EXPECT_NE(table.find("as it was"), std::string::npos) << table;
  EXPECT_NE(counterfactual_json(*result).find("\"log_e2e_against_as_it_was\""), std::string::npos);
}

TEST_F(FromLog, WhatIsKeptRunsByItself) {
  record(10);
  ASSERT_TRUE(counterfactual(options_).has_value());
  auto file = ScenarioFile::open(folder_ + "/recorded.yaml", {});
  ASSERT_TRUE(file.has_value()) << file.error().message;
  const auto scenario = file->scenario(1);
  ASSERT_TRUE(scenario.has_value()) << scenario.error().message;
  EXPECT_EQ(scenario->load.trace->calls.size(), 10u);
}

TEST_F(FromLog, WhatIsBeforeADamageIsPlayed) {
  record(10);
  std::filesystem::resize_file(options_.logs[0],
                               std::filesystem::file_size(options_.logs[0]) - 3);
  const auto result = counterfactual(options_);
  ASSERT_TRUE(result.has_value()) << result.error().message;
  EXPECT_EQ(result->recorded.requests, 10);
  EXPECT_EQ(result->recorded.completed, 9);
  ASSERT_FALSE(result->notes.empty());
  EXPECT_NE(result->notes[0].find("is cut"), std::string::npos) << result->notes[0];
}

TEST_F(FromLog, WhatCannotBeReadIsNamed) {
  const auto missing = counterfactual(options_);
  ASSERT_FALSE(missing.has_value());
  EXPECT_NE(missing.error().message.find(options_.logs[0]), std::string::npos);
  record(0);
  const auto empty = counterfactual(options_);
  ASSERT_FALSE(empty.has_value());
  EXPECT_NE(empty.error().message.find("no request"), std::string::npos);
  record(3);
  options_.keep = folder_ + "/nowhere";
  EXPECT_FALSE(counterfactual(options_).has_value());
}

}  // namespace
}  // namespace signalbox::app
