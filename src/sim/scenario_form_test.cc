// SPDX-License-Identifier: Apache-2.0
// Goal: a scenario that is written down and read again is the same scenario. Method: scenarios
// drawn by seeds, written as trees, read and run. What wrong files are told is tested where files
// are read (app/scenario_file_test.cc).
#include "sim/scenario_form.h"

#include <gtest/gtest.h>

#include "sim/run.h"

namespace signalbox::sim {
namespace {

// What has no meaning is not written.
void normalise(Scenario& s) {
  std::size_t engines = 0;
  for (const EngineGroup& group : s.groups) engines += static_cast<std::size_t>(group.count);
  for (Fault& fault : s.faults) {
    if (is_of_a_moment(fault.kind)) fault.lasts = Duration::zero();
    if (is_of_all(fault.kind)) fault.engine = 0;
    fault.engine %= engines;
  }
}

std::optional<Scenario> again(const Scenario& s) {
  const auto form = form_of(s);
  if (!form) return std::nullopt;
  spec::Report report;
  const ScenarioForm read = read_scenario({"it", to_tree(*form)}, report);
  const auto nothing = [](const std::string&) { return Result<std::string>(invalid("no file.")); };
  auto scenario = make_scenario(read, read.seed, nothing, report);
  EXPECT_TRUE(report.clean()) << "seed " << s.seed << ": " << report.error().message << "\n"
                              << to_yaml(*form);
  EXPECT_EQ(to_yaml(read), to_yaml(*form));
  return scenario;
}

TEST(ScenarioForm, AWrittenScenarioRunsTheSame) {
  int written = 0;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    Scenario s = random_scenario(seed, 150);
    normalise(s);
    const auto read = again(s);
    ASSERT_EQ(read.has_value(), !s.load.trace);
    if (!read) continue;
    ++written;
    ASSERT_EQ(read->faults.size(), s.faults.size());
    for (std::size_t i = 0; i < s.faults.size(); ++i) {
      EXPECT_EQ(read->faults[i].kind, s.faults[i].kind);
      EXPECT_EQ(read->faults[i].engine, s.faults[i].engine);
    }
    const Report one = run(s);
    const Report other = run(*read);
    ASSERT_EQ(one.digest, other.digest) << to_yaml(*form_of(s));
    EXPECT_EQ(one.elapsed, other.elapsed);
    EXPECT_EQ(one.usd, other.usd);
  }
  EXPECT_GT(written, 20);
}

TEST(ScenarioForm, OnlyWhatIsNoDefaultIsWritten) {
  Scenario s;
  s.load.requests = 7;
  s.groups[0].count = 3;
  s.groups[0].dialect.timings = true;
  s.config.admission.queue_requests_max = 5;
  s.network = std::chrono::milliseconds(2);
  s.first_token_timeout = spec::Timeouts{}.first_token;
  s.idle_timeout = spec::Timeouts{}.event_idle;
  EXPECT_EQ(to_yaml(*form_of(s)), R"(fleet:
  - model: model-a
    count: 3
    tells:
      timings: true
load:
  requests: 7
gateway:
  admission:
    queue_requests_max: 5
world:
  network: 2ms
)");
}

TEST(ScenarioForm, TheDefaultsOfAProfileAreItsOwn) {
  ScenarioForm form;
  spec::Node entry;
  entry.form = spec::Node::Form::Mapping;
  const auto put = [&](const char* key, const char* text) {
    spec::Node node;
    node.form = spec::Node::Form::Scalar;
    node.key = key;
    node.text = text;
    entry.items.push_back(node);
  };
  put("model", "mine");
  put("profile", "Llama-3.1-70B@h200x8/fp8");
  GroupForm group;
  prepare(group, entry);
  EXPECT_EQ(group.group.profile, "Llama-3.1-70B");
  EXPECT_EQ(group.group.tensor_parallel, 8);
  EXPECT_EQ(group.group.spec.kv_tokens, 2'821'655);
  EXPECT_DOUBLE_EQ(group.group.usd_per_hour, 8 * 6.75);
}

}  // namespace
}  // namespace signalbox::sim
