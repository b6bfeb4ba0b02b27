// SPDX-License-Identifier: Apache-2.0
// Goal: each source asks what its settings and its trace say, at the right time, and the same for
// one seed whatever the gateway does. Method: sources are driven by hand, without a world.
#include "sim/load.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "sim/random_load.h"
#include "sim/trace/operations.h"

namespace signalbox::sim {
namespace {

using namespace std::chrono_literals;

// Two sessions. The first: a call, two that wait for it, one that waits for the second of those.
std::shared_ptr<trace::Trace> sessions() {
  auto trace = std::make_shared<trace::Trace>();
  const auto add = [&](std::int32_t after, Duration think, std::int64_t tokens) {
    const std::uint64_t number = trace->calls.size();
    trace::Call call;
    call.after = after;
    call.think = think;
    call.answer = 500 + number;
    call.output_tokens = 10;
    if (after >= 0) {
      const trace::Call& earlier = trace->calls[static_cast<std::size_t>(after)];
      trace->pieces.push_back({earlier.last, earlier.answer, 10, false});
      call.prompt_tokens = earlier.prompt_tokens + 10;
      call.last = static_cast<std::int32_t>(trace->pieces.size() - 1);
    }
    trace->pieces.push_back({call.last, 100 + number, tokens, after < 0});
    call.prompt_tokens += tokens;
    call.last = static_cast<std::int32_t>(trace->pieces.size() - 1);
    trace->calls.push_back(call);
  };
  add(-1, 0s, 100);
  add(0, 2s, 50);
  add(0, 3s, 60);
  add(2, 5s, 900);
  add(-1, 0s, 100);
  trace->sessions = {{0, 4, Duration(-1)}, {4, 1, Duration(-1)}};
  EXPECT_EQ(trace::fault_of(*trace), std::nullopt);
  return trace;
}

Load closed(int at_once) {
  Load load;
  load.trace = sessions();
  load.sessions_at_once = at_once;
  load.ramp = 0s;
  load.leavers = 0;
  return load;
}

Load recorded() {
  Load load = closed(0);
  trace::Trace with_starts = *load.trace;
  with_starts.sessions[0].start = 1s;
  with_starts.sessions[1].start = 20s;
  with_starts.lasts = 20s;
  load.trace = std::make_shared<trace::Trace>(with_starts);
  return load;
}

Instant at(Duration time) { return Instant{} + time; }

TEST(SyntheticLoad, WhatASessionAsksDoesNotDependOnWhenOthersEnd) {
  Load load;
  load.follow_up = 0.7;
  load.pressers = 0.3;
  using Key = std::pair<std::uint64_t, std::uint64_t>;
  const auto play = [&](Duration service) {
    std::map<Key, std::vector<std::int64_t>> asked;
    const auto source = make_load(load, 5, {2, {7, 8}, 100'000});
    for (int i = 0; i < 600; ++i) {
      const Instant now = source->next();
      const Ask ask = source->take();
      std::vector<std::int64_t>& what = asked[{ask.session.number, ask.session.turns}];
      what = {ask.answer_tokens, ask.output_max, ask.stream, ask.leaves_after.count(),
              ask.presses_after.count(), static_cast<std::int64_t>(ask.session.route.value())};
      for (const Span& span : ask.session.history) {
        what.push_back(static_cast<std::int64_t>(span.content));
        what.push_back(span.tokens);
      }
      source->ended(ask, Ending::Answered, now + service);
    }
    return asked;
  };
  const auto fast = play(0s);
  const auto slow = play(3s);
  std::size_t both = 0;
  for (const auto& [key, what] : fast) {
    const auto found = slow.find(key);
    if (found == slow.end()) continue;
    EXPECT_EQ(what, found->second);
    ++both;
  }
  EXPECT_GT(both, 300u);
}

TEST(SyntheticLoad, ATurnRepeatsThePromptAndTheAnswer) {
  Load load;
  load.follow_up = 1;
  load.think = 0s;
  load.sessions_per_second = 0.001;
  const auto source = make_load(load, 5, {});
  const Ask first = source->take();
  source->ended(first, Ending::Failed, at(1s));
  const auto other = make_load(load, 5, {});
  other->take();
  other->ended(first, Ending::Answered, at(1s));
  EXPECT_GT(source->next(), other->next());  // who got no answer does not go on
  const Ask second = other->take();
  ASSERT_EQ(second.session.history.size(), first.session.history.size() + 2);
  EXPECT_TRUE(std::equal(first.session.history.begin(), first.session.history.end(),
                         second.session.history.begin()));
  EXPECT_EQ(second.session.history[2], (Span{first.answer, first.answer_tokens}));
}

TEST(SyntheticLoad, LengthsFollowTheirQuantiles) {
  Lengths lengths;
  lengths.quantiles = {{0, 10}, {0.5, 20}, {1, 1000}};
  lengths.most = 500;
  Rng rng(1, "lengths");
  int low = 0;
  std::int64_t most = 0;
  for (int i = 0; i < 10'000; ++i) {
    const std::int64_t n = draw(lengths, rng);
    EXPECT_GE(n, 10);
    low += n <= 20;
    most = std::max(most, n);
  }
  EXPECT_NEAR(low, 5000, 250);
  EXPECT_EQ(most, 500);
  Lengths constant{300, 0, 1, 4096};
  EXPECT_EQ(draw(constant, rng), 300);
}

TEST(OpenLoopLoad, CallsComeAtTheirTimesWhateverEnds) {
  Load load;
  Rng rng(3, "trace");
  load.requests = 50;
  load.trace = std::make_shared<trace::Trace>(random_open_loop(load, 10, rng));
  ASSERT_EQ(trace::fault_of(*load.trace), std::nullopt);
  const auto source = make_load(load, 1, {});
  for (const trace::Call& call : load.trace->calls) {
    EXPECT_EQ(source->next(), at(call.at));
    const Ask ask = source->take();
    EXPECT_EQ(ask.session.history, trace::prompt_of(*load.trace, call));
    EXPECT_EQ(ask.answer_tokens, call.output_tokens);
    source->ended(ask, Ending::Failed, source->next());
  }
  EXPECT_EQ(source->next(), kNever);
}

TEST(OpenLoopLoad, AConversationStaysWithOneTenantAndModel) {
  Load load;
  Rng rng(3, "trace");
  load.requests = 200;
  load.tenants = 5;
  load.adapters = 0.5;
  load.trace = std::make_shared<trace::Trace>(random_open_loop(load, 10, rng));
  const auto source = make_load(load, 1, {3, {7, 8}, 1'000'000});
  using Who = std::tuple<model::TenantId, model::RouteId, std::uint64_t>;
  std::map<std::uint64_t, Who> seen;  // by what follows the system prompt
  std::size_t again = 0;
  std::set<Who> all;
  while (source->next() != kNever) {
    const Session session = source->take().session;
    const Who who{session.tenant, session.route, session.lora};
    const auto [at, fresh] = seen.try_emplace(session.history[1].content, who);
    EXPECT_EQ(at->second, who);
    again += fresh ? 0 : 1;
    all.insert(who);
  }
  EXPECT_GT(again, 50u);
  EXPECT_GT(all.size(), 10u);
}

TEST(OpenLoopLoad, WhatFitsNowhereIsCutOrSkipped) {
  Load load;
  Rng rng(3, "trace");
  load.requests = 400;
  load.trace = std::make_shared<trace::Trace>(random_open_loop(load, 10, rng));
  constexpr std::int64_t kContext = 2000;
  for (const TooLong too_long : {TooLong::Cut, TooLong::Skip}) {
    load.too_long = too_long;
    const auto source = make_load(load, 1, {1, {}, kContext});
    std::size_t count = 0;
    for (; source->next() != kNever; ++count) {
      const Ask ask = source->take();
      EXPECT_LE(tokens_of(ask.session.history) + ask.answer_tokens, kContext);
      EXPECT_GE(tokens_of(ask.session.history), 1);
    }
    const bool all = count == load.trace->calls.size();
    EXPECT_EQ(all, too_long == TooLong::Cut);
  }
}

TEST(ClosedLoopLoad, ACallWaitsForItsAnswerAndThinks) {
  const auto source = make_load(recorded(), 1, {});
  EXPECT_EQ(source->next(), at(1s));
  const Ask first = source->take();
  EXPECT_EQ(source->next(), at(20s));  // the other session
  source->ended(first, Ending::Answered, at(4s));
  EXPECT_EQ(source->next(), at(6s));
  const Ask second = source->take();
  EXPECT_EQ(source->next(), at(7s));
  const Ask third = source->take();
  EXPECT_EQ(second.session.history[1], (Span{first.answer, 10}));
  EXPECT_EQ(third.session.history[1], (Span{first.answer, 10}));
  source->ended(second, Ending::Answered, at(8s));
  source->ended(third, Ending::Answered, at(9s));
  EXPECT_EQ(source->next(), at(14s));
  source->ended(source->take(), Ending::Answered, at(15s));
  source->ended(source->take(), Ending::Answered, at(21s));
  EXPECT_EQ(source->next(), kNever);
}

TEST(ClosedLoopLoad, AFailedCallEndsWhatWaitsForIt) {
  const auto source = make_load(recorded(), 1, {});
  source->ended(source->take(), Ending::Failed, at(4s));
  EXPECT_EQ(source->next(), at(20s));
}

TEST(ClosedLoopLoad, AsManySessionsRunAsWereAsked) {
  const auto source = make_load(closed(3), 1, {});
  std::set<std::uint64_t> numbers;
  std::vector<Ask> under_way;
  for (int i = 0; i < 3; ++i) under_way.push_back(source->take());
  for (int i = 0; i < 200; ++i) {
    // One ends; somebody comes: the same session or, when it was its last call, another one.
    const Ask ask = under_way.front();
    under_way.erase(under_way.begin());
    source->ended(ask, Ending::Answered, at(i * 10s));
    while (source->next() != kNever && source->next() <= at(i * 10s + 9s)) {
      under_way.push_back(source->take());
    }
    std::set<std::uint64_t> running;
    for (const Ask& one : under_way) running.insert(one.session.number);
    EXPECT_EQ(running.size(), 3u) << i;
    numbers.insert(running.begin(), running.end());
  }
  EXPECT_GT(numbers.size(), 50u);
}

TEST(ClosedLoopLoad, ANewSessionBeginsAtOnceBehindAnAnswerAndLaterBehindAFailure) {
  Load load = closed(1);
  load.trace = std::make_shared<trace::Trace>(trace::take_sessions(*load.trace, 1, 1));  // one call
  const auto source = make_load(load, 1, {});
  for (const Ending how : {Ending::Answered, Ending::Failed, Ending::Left, Ending::Answered}) {
    const Instant now = source->next() + 10s;
    source->ended(source->take(), how, now);
    EXPECT_EQ(source->next(), how == Ending::Answered ? now : now + 1s);
  }
}

TEST(ClosedLoopLoad, TheFirstSessionsBeginOneByOne) {
  Load load = closed(10);
  load.ramp = 100s;
  const auto source = make_load(load, 1, {});
  std::map<std::uint64_t, Instant> begun;
  while (source->next() != kNever) {
    const Instant now = source->next();
    begun.try_emplace(source->take().session.number, now);
  }
  ASSERT_EQ(begun.size(), 10u);
  for (const auto& [number, when] : begun) {
    const Instant due = at(10s * (number - 1));
    EXPECT_GE(when, due);
    EXPECT_LE(when, due + 5s);  // its longest think time
  }
}

TEST(ClosedLoopLoad, EachPassHasItsOwnContent) {
  Load load = closed(0);
  load.sessions_per_second = 1;
  const auto source = make_load(load, 1, {});
  std::set<std::uint64_t> answers;
  for (int i = 0; i < 20; ++i) {
    const Instant now = source->next();
    ASSERT_NE(now, kNever);
    const Ask ask = source->take();
    EXPECT_TRUE(answers.insert(ask.answer).second) << i;
    EXPECT_TRUE(ask.session.history[0].content == 100 || ask.session.history[0].content == 104);
    source->ended(ask, Ending::Left, now);
  }
}

TEST(ClosedLoopLoad, ATraceOfWhichNothingFitsBringsNobody) {
  for (const int at_once : {0, 5}) {
    Load load = closed(at_once);
    load.too_long = TooLong::Skip;
    EXPECT_EQ(make_load(load, 1, {1, {}, 64})->next(), kNever);
  }
}

TEST(RandomLoad, TracesKeepTheirPromises) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    Rng rng(seed, "trace");
    EXPECT_EQ(trace::fault_of(random_sessions({}, rng)), std::nullopt);
  }
}

}  // namespace
}  // namespace signalbox::sim
