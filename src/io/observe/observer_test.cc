// SPDX-License-Identifier: Apache-2.0
// Goal: engines are found, watched, lost and found again; targets may change at any moment, even
// from a callback. Method: fake engines on the same loop, which runs until a condition holds.
#include "io/observe/observer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>

#include "io/observe/fake_engine_for_test.inc"

namespace signalbox::observe {
namespace {

using namespace std::chrono_literals;
using model::EndpointId;
using model::EngineKind;

const std::string kModels = R"({"data":[{"id":"m","owned_by":"vllm","max_model_len":2048}]})";

std::string page(int running, double start = 1.7e9) {
  return "process_start_time_seconds " + std::to_string(start) +
         "\nvllm:num_requests_running{engine=\"0\"} " + std::to_string(running) + "\n";
}

Config quick() {
  Config config;
  config.interval = 5ms;
  config.retry_min = 2ms;
  config.retry_max = 10ms;
  // Long enough for any machine; tests of silence set their own.
  config.answer_within = 5s;
  return config;
}

class ObserverTest : public testing::Test {
 protected:
  ObserverTest() : loop_(std::move(Loop::create()).value()) {}
  using Loop = net::Loop;

  Sink sink() {
    Sink out;
    out.event = [this](model::Event event) {
      if (auto* seen = std::get_if<model::EndpointObserved>(&event)) states.push_back(*seen);
      if (auto* gone = std::get_if<model::EndpointUnreachable>(&event)) {
        unreachable.push_back(gone->endpoint);
      }
    };
    out.found = [this](const Found& it) {
      found.push_back(it);
      if (on_found) on_found(it);
    };
    out.lost = [this](std::string_view name, const Error& error) {
      lost.push_back(std::string(name) + ": " + error.message);
    };
    out.settled = [this] {
      ++settled;
    };
    return out;
  }

  void observe(Config config = quick()) {
    observer.emplace(*loop_, config, Rng(7, "observe"), sink());
  }

  static Target target(const FakeEngine& engine, std::uint32_t id = 1, int rank = -1) {
    Target out;
    out.name = engine.name();
    out.address = engine.address();
    if (id != 0) out.members = {{EndpointId(id), rank}};
    return out;
  }
  static void make_vllm(FakeEngine& engine, int running = 2) {
    engine.replies["/v1/models"] = {200, kModels};
    engine.replies["/metrics"] = {200, page(running)};
  }

  // Runs the loop until the condition holds; false after ten seconds.
  bool run_until(std::function<bool()> condition) {
    condition_ = std::move(condition);
    bool late = false;
    net::Timer poll([&] {
      if (condition_()) loop_->stop();
      else loop_->arm_after(poll, 1ms);
    });
    net::Timer guard([&] {
      late = true;
      loop_->stop();
    });
    loop_->arm_after(poll, 1ms);
    loop_->arm_after(guard, 10s);
    loop_->run();
    condition_ = nullptr;
    return !late;
  }

  std::unique_ptr<net::Loop> loop_;
  std::function<bool()> condition_;
  std::function<void(const Found&)> on_found;
  std::vector<model::EndpointObserved> states;
  std::vector<EndpointId> unreachable;
  std::vector<Found> found;
  std::vector<std::string> lost;
  int settled = 0;
  std::optional<Observer> observer;
};

TEST_F(ObserverTest, FindsAnEngineAndLooksAtItOverOneConnection) {
  FakeEngine engine(*loop_);
  make_vllm(engine);
  observe();
  observer->set_targets({target(engine)});
  ASSERT_TRUE(run_until([&] { return states.size() >= 5; }));
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].discovery.kind, EngineKind::Vllm);
  EXPECT_EQ(found[0].name, engine.name());
  EXPECT_EQ(states[0].endpoint, EndpointId(1));
  EXPECT_EQ(states[0].state.running, 2);
  EXPECT_EQ(states[0].state.context_tokens, 2048);
  EXPECT_EQ(states[0].state.incarnation, 1u);
  EXPECT_EQ(engine.accepted, 1);
  EXPECT_EQ(engine.asked["/v1/models"], 1);
  EXPECT_EQ(settled, 1);
  EXPECT_TRUE(lost.empty());
  EXPECT_EQ(observer->stats().connects, 1u);
}

TEST_F(ObserverTest, ConnectsAnewForServersThatClose) {
  FakeEngine engine(*loop_);
  make_vllm(engine);
  for (auto& [path, reply] : engine.replies) reply.close = true;
  observe();
  observer->set_targets({target(engine)});
  ASSERT_TRUE(run_until([&] { return states.size() >= 3; }));
  EXPECT_TRUE(lost.empty());
  EXPECT_GE(engine.accepted, 4) << "one connection for the list of models and one a look";
}

TEST_F(ObserverTest, SeesADeathAtOnceAndTheReturnAsANewLife) {
  std::optional<FakeEngine> engine;
  engine.emplace(*loop_);
  make_vllm(*engine);
  std::string address = engine->name();
  Config config = quick();
  config.interval = 1h;  // so that only the closed connection can betray the death
  observe(config);
  observer->set_targets({target(*engine)});
  ASSERT_TRUE(run_until([&] { return states.size() == 1; }));
  engine->stop();
  ASSERT_TRUE(run_until([&] { return unreachable.size() >= 3; }));
  ASSERT_EQ(lost.size(), 1u);
  EXPECT_NE(lost[0].find("connecting: Connection refused"), std::string::npos) << lost[0];
  engine.emplace(*loop_, address);
  make_vllm(*engine, 9);
  engine->replies["/metrics"] = {200, page(9, 1.7e9 + 100)};
  ASSERT_TRUE(run_until([&] { return states.size() == 2; }));
  EXPECT_EQ(states[1].state.running, 9);
  EXPECT_EQ(states[1].state.incarnation, 2u);
  EXPECT_EQ(engine->asked["/v1/models"], 1);
  EXPECT_EQ(found.size(), 1u) << "the same engine is not news";
}

TEST_F(ObserverTest, SurvivesAConnectionThatIsClosedBetweenTwoLooks) {
  FakeEngine engine(*loop_);
  make_vllm(engine);
  observe();
  observer->set_targets({target(engine)});
  ASSERT_TRUE(run_until([&] { return states.size() >= 2; }));
  engine.drop_connections();
  std::size_t before = states.size();
  ASSERT_TRUE(run_until([&] { return states.size() >= before + 2; }));
  EXPECT_TRUE(lost.empty());
  EXPECT_TRUE(unreachable.empty());
  EXPECT_EQ(engine.accepted, 2);
}

TEST_F(ObserverTest, GivesUpOnSilenceAndGoesOnWhenItEnds) {
  FakeEngine engine(*loop_);
  make_vllm(engine);
  engine.replies["/metrics"].silent = engine.replies["/health"].silent = true;
  Config config = quick();
  config.answer_within = 20ms;
  observe(config);
  observer->set_targets({target(engine)});
  ASSERT_TRUE(run_until([&] { return unreachable.size() >= 2; }));
  ASSERT_EQ(lost.size(), 1u);
  EXPECT_NE(lost[0].find("GET /metrics: no whole answer in time"), std::string::npos) << lost[0];
  engine.replies["/metrics"].silent = engine.replies["/health"].silent = false;
  ASSERT_TRUE(run_until([&] { return !states.empty(); }));
}

TEST_F(ObserverTest, WhoServesAndTellsNoLoadIsNotUnreachable) {
  for (const bool silent : {true, false}) {
    FakeEngine engine(*loop_);
    make_vllm(engine);
    engine.replies["/health"] = {200, ""};
    const auto well = engine.replies["/metrics"];
    engine.replies["/metrics"] = {500, "oh"};
    engine.replies["/metrics"].silent = silent;
    Config config = quick();
    config.answer_within = 20ms;
    observe(config);
    states.clear();
    lost.clear();
    observer->set_targets({target(engine)});
    ASSERT_TRUE(run_until([&] { return states.size() >= 3; }));
    EXPECT_EQ(states[2].state.running, -1);
    EXPECT_TRUE(unreachable.empty());
    EXPECT_EQ(lost.size(), 1u) << "it is told once";
    engine.replies["/metrics"] = well;
    ASSERT_TRUE(run_until([&] { return states.back().state.running >= 0; }));
    observer.reset();
  }
}

TEST_F(ObserverTest, KeepsThePaceThatATargetAsksFor) {
  FakeEngine engine(*loop_);
  make_vllm(engine);
  Config config = quick();
  config.interval = 1h;
  config.answer_within = 1h;
  observe(config);
  Target often = target(engine);
  often.interval = 5ms;
  often.answer_within = 20ms;
  observer->set_targets({often});
  ASSERT_TRUE(run_until([&] { return states.size() >= 3; }));
  engine.replies["/metrics"].silent = engine.replies["/health"].silent = true;
  ASSERT_TRUE(run_until([&] { return !unreachable.empty(); }));
  engine.replies["/metrics"].silent = engine.replies["/health"].silent = false;
  // The same target at another pace is watched on, not found out anew.
  often.interval = 6ms;
  observer->set_targets({often});
  const std::size_t before = states.size();
  ASSERT_TRUE(run_until([&] { return states.size() >= before + 2; }));
  EXPECT_EQ(found.size(), 1u);
}

TEST_F(ObserverTest, TellsLoadingFromServing) {
  FakeEngine engine(*loop_);
  engine.replies["/v1/models"] = {503, "{}", "llama.cpp"};
  observe();
  observer->set_targets({target(engine)});
  ASSERT_TRUE(run_until([&] { return unreachable.size() >= 2; }));
  EXPECT_EQ(settled, 1);
  EXPECT_TRUE(found.empty());
  engine.replies["/v1/models"] = {
      200, R"({"data":[{"id":"m","owned_by":"llamacpp"}]})", "llama.cpp"};
  engine.replies["/props"] = {
      200, R"({"total_slots":4,"default_generation_settings":{"n_ctx":512}})", "llama.cpp"};
  engine.replies["/metrics"] = {200, "llamacpp:requests_processing 1\n", "llama.cpp"};
  ASSERT_TRUE(run_until([&] { return !states.empty(); }));
  EXPECT_EQ(states[0].state.slots, 4);
  EXPECT_EQ(states[0].state.kv_capacity_tokens, 2048);
  EXPECT_EQ(states[0].state.running, 1);
}

TEST_F(ObserverTest, RefusesAnswersThatAreTooLarge) {
  FakeEngine engine(*loop_);
  engine.replies["/v1/models"] = {200, std::string(5000, ' ')};
  Config config = quick();
  config.answer_bytes_max = {4096};
  observe(config);
  observer->set_targets({target(engine)});
  ASSERT_TRUE(run_until([&] { return !lost.empty(); }));
  EXPECT_TRUE(found.empty());
}

TEST_F(ObserverTest, SendsTheKeyOfThePool) {
  FakeEngine engine(*loop_);
  make_vllm(engine);
  observe();
  Target with_key = target(engine);
  with_key.key = "secret";
  observer->set_targets({with_key});
  ASSERT_TRUE(run_until([&] { return !states.empty(); }));
  EXPECT_NE(engine.last_head.find("Authorization: Bearer secret"), std::string::npos);
}

TEST_F(ObserverTest, TellsEveryRankOfOneAddressFromOnePage) {
  FakeEngine engine(*loop_);
  make_vllm(engine);
  engine.replies["/metrics"] = {200,
                                "vllm:num_requests_running{engine=\"0\"} 1\n"
                                "vllm:num_requests_running{engine=\"1\"} 7\n"};
  Config config = quick();
  config.interval = 1h;
  observe(config);
  Target both = target(engine, 1, 0);
  both.members.push_back({EndpointId(2), 1});
  observer->set_targets({both});
  ASSERT_TRUE(run_until([&] { return states.size() >= 2; }));
  EXPECT_EQ(states[0].state.running, 1);
  EXPECT_EQ(states[1].endpoint, EndpointId(2));
  EXPECT_EQ(states[1].state.running, 7);
  EXPECT_EQ(engine.asked["/metrics"], 1);
}

TEST_F(ObserverTest, MembersMayBeNamedAfterDiscoveryWithoutLookingAgain) {
  FakeEngine engine(*loop_);
  make_vllm(engine);
  Config config = quick();
  config.interval = 1h;
  observe(config);
  observer->set_targets({target(engine, 0)});
  ASSERT_TRUE(run_until([&] { return engine.asked["/metrics"] == 1 && observer->active() == 0; }));
  EXPECT_TRUE(states.empty());
  observer->set_targets({target(engine, 5)});
  ASSERT_TRUE(run_until([&] { return settled == 2; }));
  ASSERT_EQ(states.size(), 1u);
  EXPECT_EQ(states[0].endpoint, EndpointId(5));
  EXPECT_EQ(states[0].state.running, 2);
  EXPECT_EQ(engine.asked["/v1/models"], 1);
  EXPECT_EQ(engine.accepted, 1);
}

TEST_F(ObserverTest, TargetsMayChangeFromACallback) {
  FakeEngine first(*loop_);
  FakeEngine second(*loop_);
  make_vllm(first);
  make_vllm(second);
  observe();
  on_found = [&](const Found& it) {
    if (it.name == first.name()) observer->set_targets({target(second, 2)});
  };
  observer->set_targets({target(first, 1)});
  ASSERT_TRUE(run_until([&] { return states.size() >= 3; }));
  for (const auto& seen : states) EXPECT_EQ(seen.endpoint, EndpointId(2));
  EXPECT_EQ(first.asked["/metrics"], 0);
  observer->set_targets({});
  EXPECT_EQ(observer->active(), 0u);
}

TEST_F(ObserverTest, MayBeDestroyedInTheMiddleOfALook) {
  FakeEngine engine(*loop_);
  make_vllm(engine);
  engine.replies["/metrics"].silent = true;
  observe();
  observer->set_targets({target(engine)});
  ASSERT_TRUE(run_until([&] { return engine.asked["/metrics"] == 1; }));
  EXPECT_EQ(observer->active(), 1u);
  observer.reset();
}

TEST_F(ObserverTest, LooksAtManyEnginesWithFewConnectionsAtOnce) {
  std::vector<std::unique_ptr<FakeEngine>> engines;
  std::vector<Target> targets;
  for (std::uint32_t i = 1; i <= 50; ++i) {
    engines.push_back(std::make_unique<FakeEngine>(*loop_));
    make_vllm(*engines.back());
    targets.push_back(target(*engines.back(), i));
  }
  Config config = quick();
  config.concurrency_max = 3;
  observe(config);
  std::size_t most = 0;
  observer->set_targets(targets);
  ASSERT_TRUE(run_until([&] {
    most = std::max(most, observer->active());
    return settled == 1;
  }));
  EXPECT_EQ(found.size(), 50u);
  EXPECT_LE(most, 3u);
}

TEST_F(ObserverTest, SettlesWhenEveryTargetHasAnsweredOrFailed) {
  FakeEngine good(*loop_);
  make_vllm(good);
  FakeEngine gone(*loop_);
  Target dead = target(gone, 2);
  gone.stop();
  observe();
  observer->set_targets({target(good), dead});
  ASSERT_TRUE(run_until([&] { return settled == 1; }));
  EXPECT_EQ(found.size(), 1u);
  EXPECT_EQ(lost.size(), 1u);
}

TEST_F(ObserverTest, NoticesNewModelsAtTheirInterval) {
  FakeEngine engine(*loop_);
  make_vllm(engine);
  Config config = quick();
  config.models_interval = 20ms;
  observe(config);
  observer->set_targets({target(engine)});
  ASSERT_TRUE(run_until([&] { return found.size() == 1; }));
  engine.replies["/v1/models"].body =
      R"({"data":[{"id":"m","owned_by":"vllm"},{"id":"lora","owned_by":"vllm","parent":"m"}]})";
  ASSERT_TRUE(run_until([&] { return found.size() == 2; }));
  EXPECT_EQ(found[1].discovery.facts.models.size(), 2u);
}

}  // namespace
}  // namespace signalbox::observe
