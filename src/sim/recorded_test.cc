// SPDX-License-Identifier: Apache-2.0
// Goal: what a gateway's events say of traffic and engines is what the scenario plays. Method: a
// night of known requests handed in by hand, read back as a trace and as a form.
#include "sim/recorded.h"

#include <gtest/gtest.h>

#include "sim/trace/mooncake.h"

namespace signalbox::sim {
namespace {

using namespace std::chrono_literals;

class Recorded : public testing::Test {
 protected:
  Recorded() {
    fleet_.models = {{model::ModelId(1), "small", "", 8, 0, 0, {}},
                     {model::ModelId(2), "large", "", 70, 0, 0, {}}};
    for (std::uint32_t i = 1; i <= 2; ++i) {
      model::Pool pool;
      pool.id = model::PoolId(i);
      pool.name = i == 1 ? "few" : "many";
      pool.model = model::ModelId(i);
      pool.usd_per_hour = 3 * i;
      fleet_.pools.push_back(pool);
      fleet_.routes.push_back({model::RouteId(i), "r", {{model::ModelId(i), 1}}, {}, {}, {}});
    }
    for (std::uint32_t i = 1; i <= 4; ++i) {
      fleet_.endpoints.push_back({model::EndpointId(i), model::PoolId(i == 1 ? 1 : 2),
                                  "10.0.0." + std::to_string(i) + ":80", -1, false});
    }
    flow::Setup setup{flow::Config{}, std::make_shared<const model::Fleet>(fleet_)};
    core_.apply(setup, at(0ms), actions_);
    run_.applied(setup, at(0ms));
  }

  static Instant at(Duration since) { return Instant{} + 10h + since; }
  void tell(const model::Event& event, Duration since) { run_.handled(event, at(since)); }

  // A prompt of four bytes a token, cut after every 2,048 bytes: a conversation's beginning.
  model::RequestId arrives(Duration since, std::uint64_t conversation, std::int64_t tokens,
                           std::uint32_t route = 2) {
    model::RequestArrived r;
    r.request = model::RequestId(++requests_);
    r.route = model::RouteId(route);
    r.stream = true;
    r.prompt.bytes = 4 * tokens;
    for (std::int64_t end = 2048;; end += 2048) {
      end = std::min(end, r.prompt.bytes);
      r.prompt.chain.push_back({conversation * 1'000'000 + static_cast<std::uint64_t>(end), end});
      if (end == r.prompt.bytes) break;
    }
    tell(r, since);
    return r.request;
  }
  void completes(model::RequestId id, Duration first, Duration end, std::int64_t prompt,
                 std::int64_t answer) {
    tell(model::FirstToken{id, model::AttemptId(1)}, first);
    model::AttemptEnded ended;
    ended.request = id;
    ended.attempt = model::AttemptId(1);
    ended.usage = {prompt, prompt / 2, answer};
    tell(ended, end);
  }
  Recording made() {
    auto recording = run_.finish(core_, "night.jsonl");
    EXPECT_TRUE(recording.has_value()) << recording.error().message;
    return recording ? std::move(*recording) : Recording{};
  }
  trace::Trace trace() {
    auto read = trace::read_mooncake(made().trace);
    EXPECT_TRUE(read.has_value()) << read.error().message;
    return read ? std::move(*read) : trace::Trace{};
  }

  model::Fleet fleet_;
  flow::Flow core_{flow::Config{}, 1};
  flow::Actions actions_;
  RecordedRun run_;
  std::uint64_t requests_ = 0;
};

TEST_F(Recorded, TimesAndLengthsAreThoseOfTheLog) {
  completes(arrives(1s, 1, 1000), 1500ms, 3s, 1000, 40);
  completes(arrives(2s, 2, 3000), 2200ms, 5s, 3000, 70);
  const trace::Trace t = trace();
  ASSERT_EQ(t.calls.size(), 2u);
  EXPECT_EQ(t.calls[0].at, 0s) << "the first request begins the run";
  EXPECT_EQ(t.calls[1].at, 1s);
  EXPECT_EQ(t.calls[0].prompt_tokens, 1000);
  EXPECT_EQ(t.calls[1].prompt_tokens, 3000);
  EXPECT_EQ(t.calls[0].output_tokens, 40);
  EXPECT_EQ(t.calls[1].output_tokens, 70);
  const RecordedFigures f = made().figures;
  EXPECT_EQ(f.requests, 2);
  EXPECT_EQ(f.completed, 2);
  EXPECT_NEAR(f.ttft_mean_s, 0.35, 0.01);
  EXPECT_NEAR(f.e2e_mean_s, 2.5, 0.03);
  EXPECT_NEAR(f.cache_hit, 0.5, 1e-9);
}

TEST_F(Recorded, EqualBeginningsStayEqual) {
  completes(arrives(0s, 7, 2048), 1s, 2s, 2048, 10);
  completes(arrives(3s, 7, 4096), 4s, 5s, 4096, 10);
  completes(arrives(6s, 8, 4096), 7s, 8s, 4096, 10);
  const trace::Trace t = trace();
  const auto pieces = [&](std::size_t call) {
    std::vector<std::int32_t> found;
    for (std::int32_t p = t.calls[call].last; p >= 0;
         p = t.pieces[static_cast<std::size_t>(p)].before) {
      found.insert(found.begin(), p);
    }
    return found;
  };
  const auto a = pieces(0), b = pieces(1), c = pieces(2);
  ASSERT_EQ(a.size(), 4u);
  ASSERT_EQ(b.size(), 8u);
  EXPECT_TRUE(std::equal(a.begin(), a.end(), b.begin())) << "the longer one begins as the first";
  EXPECT_NE(a.front(), c.front());
}

TEST_F(Recorded, TheFleetIsThatOfTheModelThatMostAskFor) {
  arrives(0s, 1, 100, 1);
  completes(arrives(0s, 1, 100), 1s, 2s, 100, 10);
  completes(arrives(1s, 1, 100), 2s, 3s, 100, 10);
  model::EndpointObserved seen;
  seen.endpoint = model::EndpointId(3);
  seen.state.kv_capacity_tokens = 123'456;
  seen.state.slots = 48;
  tell(seen, 1s);
  const Recording r = made();
  ASSERT_EQ(r.form.fleet.size(), 1u);
  const EngineGroup& group = r.form.fleet[0].group;
  EXPECT_EQ(r.form.fleet[0].name, "many");
  EXPECT_EQ(group.model, "large");
  EXPECT_EQ(group.count, 3);
  EXPECT_EQ(group.usd_per_hour, 6);
  EXPECT_EQ(group.spec.kv_tokens, 123'456);
  EXPECT_EQ(group.spec.sequences_max, 48);
  const perf::Coefficients k = core_.pool(model::PoolId(2)).coefficients;
  EXPECT_NEAR(group.steps->decode_ms, k.d * 1e3, 1e-9);
  EXPECT_NEAR(group.steps->prefill_token_ms, k.b * 1e3, 1e-9);
  ASSERT_EQ(r.notes.size(), 1u);
  EXPECT_NE(r.notes[0].find("1 requests for other models"), std::string::npos) << r.notes[0];
}

TEST_F(Recorded, TimesWithoutConnectionAreFaults) {
  completes(arrives(0s, 1, 100), 1s, 2s, 100, 10);
  const model::EndpointUnreachable lost{model::EndpointId(3), true};
  tell(lost, 3s);  // never seen before: it may not have been up at all
  model::EndpointObserved seen;
  seen.endpoint = model::EndpointId(3);
  tell(seen, 4s);
  tell(lost, 10s);
  tell(lost, 11s);
  tell(seen, 15s);
  seen.endpoint = model::EndpointId(4);
  tell(seen, 16s);
  tell(model::EndpointUnreachable{model::EndpointId(4), false}, 17s);  // only a look failed
  const Recording r = made();
  ASSERT_EQ(r.form.faults.size(), 1u);
  EXPECT_EQ(r.form.faults[0].kind, Fault::Kind::Die);
  EXPECT_EQ(r.form.faults[0].at, 10s);
  EXPECT_EQ(r.form.faults[0].lasts, 5s);
  EXPECT_EQ(r.form.faults[0].engines, std::vector<int>{1});
}

TEST_F(Recorded, WhoLeftLeavesAndUnknownAnswersAreOfMeanLength) {
  completes(arrives(0s, 1, 100), 1s, 2s, 100, 30);
  completes(arrives(0s, 1, 100), 1s, 2s, 100, 50);
  const auto left = arrives(1s, 1, 100);
  tell(model::ClientGone{left}, 5s);
  arrives(2s, 1, 100);
  const Recording r = made();
  EXPECT_NEAR(r.form.load.load.leavers, 0.25, 1e-9);
  EXPECT_EQ(r.form.load.load.patience, 4s);
  EXPECT_EQ(trace().calls[2].output_tokens, 40);
  ASSERT_EQ(r.notes.size(), 1u);
  EXPECT_NE(r.notes[0].find("2 answers had no known length"), std::string::npos) << r.notes[0];
}

TEST_F(Recorded, ALogWithoutRequestsIsAnError) {
  const auto made = run_.finish(core_, "x");
  ASSERT_FALSE(made.has_value());
  EXPECT_NE(made.error().message.find("no request"), std::string::npos);
  const auto nothing = RecordedRun().finish(core_, "x");
  ASSERT_FALSE(nothing.has_value());
  EXPECT_NE(nothing.error().message.find("no configuration"), std::string::npos);
}

}  // namespace
}  // namespace signalbox::sim
