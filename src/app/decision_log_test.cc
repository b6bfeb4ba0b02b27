// SPDX-License-Identifier: Apache-2.0
// Goal: the decision log has every decision once and in order, one look does a bounded piece of
// work, and what could not be written in time is said to be missing. Method: a controller whose
// loop never runs; requests handed to the core by hand; the file is read back.
#include "app/decision_log.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "core/flow/flow.h"

namespace signalbox::app {
namespace {

using Left = DecisionLog::Left;
using nlohmann::json;

constexpr const char* kConfiguration = R"(apiVersion: signalbox.dev/v1alpha1
kind: Model
metadata: {name: m}
---
apiVersion: signalbox.dev/v1alpha1
kind: Pool
metadata: {name: p}
spec: {model: m, engine: openai, endpoints: [http://127.0.0.1:7001]}
)";

constexpr std::int64_t kKept = 100;

flow::Config small_ring() {
  flow::Config config;
  config.decisions_kept = kKept;
  return config;
}

class DecisionLogTest : public ::testing::Test {
 protected:
  DecisionLogTest() {
    host_.add_owner(*loop_, [this](const model::Action& action) {
      if (const auto* dispatch = std::get_if<model::Dispatch>(&action)) sent_ = *dispatch;
    });
    auto loaded = config::load_text("test.yaml", kConfiguration);
    EXPECT_TRUE(loaded.has_value()) << loaded.error().message;
    controller_.use(std::move(*loaded));
    char folder[] = "/tmp/decision_log_test.XXXXXX";
    EXPECT_NE(mkdtemp(folder), nullptr);
    folder_ = folder;
    log_ = std::make_unique<DecisionLog>(*loop_, host_, controller_, shared_,
                                         *telemetry::LogFile::open(folder_ + "/log"));
  }
  ~DecisionLogTest() {
    log_.reset();
    std::filesystem::remove_all(folder_);
  }
  void decide(int count) {
    for (int i = 0; i < count; ++i) {
      model::RequestArrived arrived;
      arrived.request = model::RequestId{++last_request_};
      arrived.route = controller_.published()->names.at("m").route;
      arrived.prompt.bytes = 400;
      std::vector<model::Event> batch{arrived};
      host_.hand_in(0, batch);
      model::AttemptEnded end;
      end.request = sent_.request;
      end.attempt = sent_.attempt;
      end.status = 200;
      batch = {model::FirstToken{end.request, end.attempt}, end};
      host_.hand_in(0, batch);
    }
  }
  std::vector<json> lines() {
    log_->file().flush();
    std::vector<json> read;
    std::ifstream file(folder_ + "/log");
    for (std::string line; std::getline(file, line);) read.push_back(json::parse(line));
    return read;
  }

  std::unique_ptr<net::Loop> loop_ = *net::Loop::create();
  telemetry::Registry registry_;
  gateway::Metrics metrics_{registry_};
  host::CoreHost host_{std::make_unique<flow::Flow>(small_ring(), 3), nullptr};
  gateway::Shared shared_{host_, metrics_, 0xabcd};
  Controller controller_{*loop_, host_, [](auto) {}, 3};
  model::Dispatch sent_;
  std::uint64_t last_request_ = 0;
  std::string folder_;
  std::unique_ptr<DecisionLog> log_;
};

TEST_F(DecisionLogTest, has_every_decision_once_and_in_order) {
  decide(3);
  EXPECT_EQ(log_->follow(), Left::Nothing);
  decide(2);
  log_->finish();
  const auto read = lines();
  ASSERT_EQ(read.size(), 5u);
  for (std::size_t i = 0; i < read.size(); ++i) EXPECT_EQ(read[i]["decision"], i + 1) << read[i];
}

TEST_F(DecisionLogTest, one_look_is_a_bounded_piece_of_work) {
  decide(kKept);
  EXPECT_EQ(log_->follow(), Left::More);
  const auto first = lines();
  EXPECT_GT(first.size(), 0u);
  EXPECT_LT(first.size(), static_cast<std::size_t>(kKept) / 2);
  log_->finish();
  EXPECT_EQ(lines().size(), static_cast<std::size_t>(kKept));
  EXPECT_EQ(log_->lost(), 0u);
}

TEST_F(DecisionLogTest, what_was_decided_too_fast_is_said_to_be_missing) {
  decide(kKept + 7);
  log_->finish();
  const auto read = lines();
  ASSERT_EQ(read.size(), static_cast<std::size_t>(kKept) + 1);
  EXPECT_EQ(read[0]["lost_records"], 7);
  EXPECT_EQ(read[1]["decision"], 8);
  EXPECT_EQ(log_->lost(), 7u);
}

}  // namespace
}  // namespace signalbox::app
