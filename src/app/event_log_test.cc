// SPDX-License-Identifier: Apache-2.0
// Goal: a log of a run, replayed, gives the same decisions; a log that was changed, cut or written
// by something else is refused or its first difference is named. Method: a core driven by hand
// through queues, failures, retries and leaving clients, logged to a file of the test's folder.
#include "app/event_log.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>
#include <xxhash.h>

#include <cstdio>
#include <deque>
#include <fstream>
#include <iterator>

#include "base/rng.h"
#include "core/flow/config_of.h"
#include "core/flow/flow.h"
#include "core/spec/config.h"
#include "io/host/fleet_for_test.inc"

namespace signalbox::app {
namespace {

using host::answered;
using host::arrival;
using host::one_model;

constexpr std::uint64_t kSeed = 11;

std::string fresh_path(const std::string& name) {
  const std::string path = ::testing::TempDir() + name;
  std::remove(path.c_str());
  return path;
}

std::string read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// A core whose every event goes into the log, as the host does it.
class Recorder {
 public:
  Recorder(const std::string& path, const flow::Setup& setup)
      : log_(*EventLog::open(path, kSeed)), flow_(setup.config, kSeed) {
    apply(setup);
  }
  void apply(const flow::Setup& setup) {
    actions_.clear();
    flow_.apply(setup, now_, actions_);
    log_->applied(setup, now_, actions_);
    ++records;
    carry();
  }
  void hand_in(model::Event event) {
    actions_.clear();
    const model::Event kept = event;
    now_ += std::chrono::microseconds(700);
    flow_.handle(std::move(event), now_, actions_);
    log_->handled(kept, now_, actions_);
    ++records;
    carry();
  }
  void pass(Duration time) {
    now_ += time;
    hand_in(model::Tick{});
  }
  void finish() { log_->file().flush(); }
  void reopen() { log_->reopen(); }
  const flow::Flow& flow() const { return flow_; }

  std::deque<model::Dispatch> sent;
  std::uint64_t records = 0;
  std::uint64_t concluded = 0;

 private:
  void carry() {
    for (const model::OwnedAction& owned : actions_) {
      if (const auto* dispatch = std::get_if<model::Dispatch>(&owned.action)) {
        sent.push_back(*dispatch);
      }
      if (std::holds_alternative<model::Conclude>(owned.action)) ++concluded;
    }
  }
  std::unique_ptr<EventLog> log_;
  flow::Flow flow_;
  flow::Actions actions_;
  Instant now_ = Instant{} + std::chrono::hours(5);
};

// A little of everything that happens to requests.
std::uint64_t record_run(const std::string& path, flow::Setup setup, int requests) {
  Recorder run(path, setup);
  Rng rng(5, "run");
  std::uint64_t next = 0;
  for (int i = 0; i < requests; ++i) {
    ++next;
    run.hand_in(arrival(next, static_cast<std::uint16_t>(next % 3)));
    if (rng.uniform() < 0.2) run.hand_in(model::ClientGone{model::RequestId{next}});
    while (run.sent.size() > 2) {
      const model::Dispatch attempt = run.sent.front();
      run.sent.pop_front();
      model::AttemptEnded end = answered(attempt.request, attempt.attempt);
      if (rng.uniform() < 0.3) {
        end.result = model::AttemptResult::ServerError;
        end.status = 503;
        end.delivered = false;
      } else {
        run.hand_in(model::FirstToken{attempt.request, attempt.attempt});
      }
      run.hand_in(end);
    }
    if (i % 10 == 3) {
      model::EndpointObserved seen;
      seen.endpoint = model::EndpointId{1};
      seen.state.running = i % 4;
      seen.state.kv_usage = 0.25;
      run.hand_in(seen);
      run.hand_in(model::EndpointUnreachable{model::EndpointId{2}});
    }
    if (i % 25 == 20) run.pass(std::chrono::seconds(2));
    if (i == requests / 2) run.apply(one_model(4));
  }
  run.hand_in(model::DrainOver{});
  run.hand_in(arrival(++next, 0));
  run.finish();
  EXPECT_GT(run.concluded, 0u);
  EXPECT_TRUE(requests < 100 || run.flow().totals().retries > 0);
  return run.records;
}

std::string recorded(int requests = 300) {
  const std::string path = fresh_path("signalbox-run.log");
  record_run(path, one_model(3), requests);
  return read_file(path);
}

std::size_t head_size(const std::string& log) { return log.find('\n') + 1 + 16; }

// What the log has in its last eight bytes for the bytes from `from` on.
void seal(std::string& log, std::size_t from, std::size_t end) {
  const std::uint64_t hash = XXH3_64bits(log.data() + from, end - 8 - from);
  for (std::size_t i = 0; i < 8; ++i) log[end - 8 + i] = static_cast<char>(hash >> (8 * i));
}

// Where each record ends, by the format in event_log.h.
std::vector<std::size_t> record_ends(const std::string& log) {
  std::vector<std::size_t> ends;
  std::size_t at = head_size(log);
  while (at < log.size()) {
    std::uint64_t size = 0;
    for (int shift = 0;; shift += 7) {
      const auto byte = static_cast<unsigned char>(log[at++]);
      size |= static_cast<std::uint64_t>(byte & 127) << shift;
      if (byte < 128) break;
    }
    at += size;
    ends.push_back(at);
  }
  return ends;
}

TEST(EventLog, a_recorded_run_is_decided_the_same_again) {
  const std::string path = fresh_path("signalbox-identical.log");
  const std::uint64_t records = record_run(path, one_model(3), 500);
  const auto report = replay_log(read_file(path));
  ASSERT_TRUE(report.has_value()) << report.error().message;
  EXPECT_TRUE(report->identical) << report->first_difference << ": " << report->difference;
  EXPECT_EQ(report->setups, 2u);
  EXPECT_EQ(report->events + report->setups, records);
}

TEST(EventLog, a_log_that_was_rotated_is_replayed_from_all_its_files) {
  const std::string path = fresh_path("signalbox-rotated.log");
  const std::string first = fresh_path("signalbox-rotated.log.1");
  Recorder run(path, one_model(3));
  for (std::uint64_t id = 1; id <= 5; ++id) run.hand_in(arrival(id, 0));
  run.finish();
  ASSERT_EQ(std::rename(path.c_str(), first.c_str()), 0);
  run.hand_in(arrival(6, 0));  // belongs to the old file still
  run.reopen();
  run.pass(std::chrono::seconds(2));
  run.hand_in(arrival(7, 0));
  run.finish();
  const std::string older = read_file(first);
  const std::string newer = read_file(path);
  EXPECT_TRUE(newer.starts_with("signalbox event log 4, continued after record 7 of " + path));
  const auto report = replay_logs({{"a", older}, {"b", newer}});
  ASSERT_TRUE(report.has_value()) << report.error().message;
  EXPECT_TRUE(report->identical) << report->difference;
  EXPECT_EQ(report->events + report->setups, run.records);

  const auto alone = replay_logs({{"b", newer}});
  ASSERT_FALSE(alone.has_value());
  EXPECT_NE(alone.error().message.find("'b' continues a log after its record 7"),
            std::string::npos) << alone.error().message;
  EXPECT_FALSE(replay_logs({{"b", newer}, {"a", older}}).has_value());
  EXPECT_FALSE(replay_logs({{"a", older}, {"b", newer}, {"b", newer}}).has_value());
  const std::string other = recorded(5);
  EXPECT_FALSE(replay_logs({{"c", other}, {"b", newer}}).has_value());
}

TEST(EventLog, a_log_that_was_not_renamed_goes_on_as_it_is) {
  const std::string path = fresh_path("signalbox-same.log");
  Recorder run(path, one_model(3));
  run.hand_in(arrival(1, 0));
  run.reopen();
  run.hand_in(arrival(2, 0));
  run.finish();
  const auto report = replay_log(read_file(path));
  ASSERT_TRUE(report.has_value()) << report.error().message;
  EXPECT_EQ(report->events, 2u);
}

TEST(EventLog, a_program_that_starts_again_appends_a_run_of_its_own) {
  const std::string path = fresh_path("signalbox-again.log");
  const std::uint64_t records = record_run(path, one_model(3), 100);
  EXPECT_EQ(record_run(path, one_model(3), 100), records);
  const auto report = replay_log(read_file(path));
  ASSERT_TRUE(report.has_value()) << report.error().message;
  EXPECT_TRUE(report->identical) << report->difference;
  EXPECT_EQ(report->events + report->setups, 2 * records);
}

TEST(EventLog, says_what_of_a_log_cannot_be_read) {
  std::string log = recorded(5);
  const auto said = [](const std::string& bytes) {
    const auto report = replay_logs({{"x.log", bytes}});
    return report ? std::string() : report.error().message;
  };
  EXPECT_NE(said(log.substr(0, log.size() - 1)).find("'x.log' is cut"), std::string::npos);
  for (const char* const other : {"signalbox event log 9\n", "signalbox event log 1\n"}) {
    EXPECT_NE(said(other + std::string(16, 'x')).find("reads 'signalbox event log 4'"),
              std::string::npos);
  }
  const std::size_t setting = log.find("queue_requests_max");
  ASSERT_NE(setting, std::string::npos);
  log[setting] = 'Q';
  std::size_t first = head_size(log);
  while (static_cast<unsigned char>(log[first]) >= 128) ++first;
  seal(log, first + 1, record_ends(log)[0]);
  EXPECT_NE(said(log).find("settings that this version does not accept"), std::string::npos);
  EXPECT_NE(said(log).find("Queue_requests_max"), std::string::npos) << said(log);
}

TEST(EventLog, every_setting_of_the_core_travels_with_the_log) {
  flow::Setup setup = one_model(3);
  setup.config.admission.queue_requests_max = 1;
  setup.config.lengths.prior_median_tokens = 777;
  setup.config.calibrator.memory_observations = 55;
  setup.config.ledger.keys_max = 3;
  setup.config.decisions_kept = 12;
  const std::string path = fresh_path("signalbox-settings.log");
  record_run(path, setup, 200);
  const std::string log = read_file(path);
  for (const char* const line : {"queue_requests_max: 1\n", "prior_median_tokens: 777\n",
                                 "memory_observations: 55\n", "keys_max: 3\n",
                                 "decisions_kept: 12\n"}) {
    EXPECT_NE(log.find(line), std::string::npos) << line;
  }
  const auto report = replay_log(log);
  ASSERT_TRUE(report.has_value()) << report.error().message;
  EXPECT_TRUE(report->identical) << report->first_difference << ": " << report->difference;
}

TEST(EventLog, the_seed_is_the_runs_own) {
  std::string log = recorded();
  const std::size_t seed = log.find('\n') + 1;
  EXPECT_EQ(log[seed], static_cast<char>(kSeed));
  EXPECT_EQ(log.substr(seed + 1, 7), std::string(7, '\0'));
}

TEST(EventLog, names_the_first_record_whose_actions_differ) {
  const std::string log = recorded();
  const std::vector<std::size_t> ends = record_ends(log);
  for (const std::size_t record : {0ul, 1ul, 57ul, ends.size() - 1}) {
    std::string changed = log;
    changed[ends[record] - 9] ^= 1;  // of its digest
    const std::size_t before = record == 0 ? head_size(log) : ends[record - 1];
    std::size_t from = before;
    while (static_cast<unsigned char>(log[from]) >= 128) ++from;
    seal(changed, from + 1, ends[record]);
    const auto report = replay_log(changed);
    ASSERT_TRUE(report.has_value());
    EXPECT_FALSE(report->identical);
    EXPECT_EQ(report->first_difference, record + 1);
    EXPECT_FALSE(report->difference.empty());
    EXPECT_EQ(report->events + report->setups, ends.size());  // it goes on to the end
  }
}

TEST(EventLog, a_log_that_was_cut_inside_a_record_is_refused) {
  const std::string log = recorded(20);
  const std::vector<std::size_t> ends = record_ends(log);
  ASSERT_EQ(ends.back(), log.size());
  std::size_t whole = 0;
  for (std::size_t size = ends[0] - 40; size <= log.size(); ++size) {
    const auto report = replay_log(std::string_view(log).substr(0, size));
    const bool between = std::find(ends.begin(), ends.end(), size) != ends.end();
    ASSERT_EQ(report.has_value(), between) << size;
    if (!between) continue;
    EXPECT_EQ(report->events + report->setups, ++whole);
    EXPECT_TRUE(report->identical);
  }
}

TEST(EventLog, a_gap_is_named_and_what_is_before_it_was_replayed) {
  std::string log = recorded(20);
  const std::vector<std::size_t> ends = record_ends(log);
  std::string seven_lost = std::string("\x13G\0\x07", 4) + std::string(16, '\0');
  seal(seven_lost, 1, seven_lost.size());
  log.insert(ends[9], seven_lost);
  const auto report = replay_log(log);
  ASSERT_FALSE(report.has_value());
  EXPECT_NE(report.error().message.find("7 records are missing in 'event log' after record 10 "),
            std::string::npos)
      << report.error().message;
  EXPECT_TRUE(report.error().message.ends_with("What is before them decides the same."));
}

TEST(EventLog, what_is_no_log_is_refused) {
  EXPECT_FALSE(replay_log("").has_value());
  EXPECT_FALSE(replay_log("signalbox event log 1\n").has_value());
  EXPECT_FALSE(replay_log("signalbox event log 4\n1234567812345678").has_value());
  EXPECT_FALSE(replay_log(std::string(1000, 'x')).has_value());
  const std::string head = recorded(5);
  const auto empty = replay_log(head.substr(0, head_size(head)));
  ASSERT_TRUE(empty.has_value());
  EXPECT_EQ(empty->events, 0u);
  // Events before any configuration.
  const std::string log = recorded(5);
  const std::vector<std::size_t> ends = record_ends(log);
  EXPECT_FALSE(replay_log(log.substr(0, head_size(log)) + log.substr(ends[0])).has_value());
}

RC_GTEST_PROP(EventLogLaw, a_flipped_bit_never_replays_as_identical, ()) {
  static const std::string log = recorded(15);
  std::string changed = log;
  const auto at = *rc::gen::inRange<std::size_t>(0, log.size());
  changed[at] = static_cast<char>(changed[at] ^ (1 << *rc::gen::inRange(0, 8)));
  RC_ASSERT(!replay_log(changed).has_value());
}

TEST(EventLog, a_flipped_bit_of_a_payload_is_named_as_damage) {
  std::string log = recorded(20);
  const std::vector<std::size_t> ends = record_ends(log);
  log[ends[4] - 20] ^= 4;
  const auto report = replay_log(log);
  ASSERT_FALSE(report.has_value());
  EXPECT_NE(report.error().message.find("Record 5 in 'event log' is damaged"), std::string::npos)
      << report.error().message;
}

TEST(EventLog, is_written_by_one_process_at_a_time) {
  const std::string path = fresh_path("signalbox-locked.log");
  auto one = EventLog::open(path, kSeed);
  ASSERT_TRUE(one.has_value());
  EXPECT_FALSE(EventLog::open(path, kSeed).has_value());
  (*one)->reopen();  // not renamed: goes on, and keeps the lock
  (*one)->file().flush();
  EXPECT_FALSE(EventLog::open(path, kSeed).has_value());
  one->reset();
  EXPECT_TRUE(EventLog::open(path, kSeed).has_value());
}

RC_GTEST_PROP(EventLogLaw, changed_bytes_never_break_the_replay_itself, ()) {
  static const std::string log = recorded(15);
  std::string changed = log;
  const int flips = *rc::gen::inRange(1, 4);
  for (int i = 0; i < flips; ++i) {
    const auto at = *rc::gen::inRange<std::size_t>(head_size(log), log.size());
    changed[at] = static_cast<char>(*rc::gen::inRange(0, 256));
  }
  const auto report = replay_log(changed);
  if (report) RC_ASSERT(report->identical == (report->first_difference == 0));
  else RC_ASSERT(!report.error().message.empty());
}

TEST(Digest, differs_where_an_action_differs) {
  const auto of = [](const model::Action& action, std::uint16_t owner = 0) {
    return digest({{owner, action}});
  };
  const model::RequestId one{1};
  const model::AttemptId first{1};
  const model::Dispatch dispatch{one, first, model::EndpointId{1}, 1, {}};
  model::Dispatch other = dispatch;
  other.endpoint = model::EndpointId{2};
  EXPECT_EQ(of(dispatch), of(dispatch));
  EXPECT_NE(of(dispatch), of(other));
  EXPECT_NE(of(dispatch), of(dispatch, 1));
  EXPECT_NE(of(dispatch), of(model::Abort{one, first}));
  EXPECT_NE(digest({}), of(model::Abort{one, first}));
  EXPECT_NE(digest({{0, model::Abort{one, first}}, {0, dispatch}}),
            digest({{0, dispatch}, {0, model::Abort{one, first}}}));
}

TEST(CoreConfig, has_every_block_of_the_gateways_that_the_core_reads) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    Rng rng(seed, "config");
    const spec::Config drawn = spec::random(rng);
    const flow::Config core = flow::config_of(drawn.gateway);
    spec::Config back = drawn;
    back.gateway.admission = core.admission;
    back.gateway.cache = core.cache;
    back.gateway.prediction.calibration = core.calibrator;
    back.gateway.prediction.output_lengths = core.lengths;
    back.gateway.ledger = core.ledger;
    back.gateway.recovery = core.recovery;
    back.gateway.routing = core.routing;
    back.gateway.limits.decisions_kept = static_cast<int>(core.decisions_kept);
    ASSERT_EQ(spec::to_yaml(back), spec::to_yaml(drawn)) << "seed " << seed;
  }
}

}  // namespace
}  // namespace signalbox::app
