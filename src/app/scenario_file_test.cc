// SPDX-License-Identifier: Apache-2.0
// Goal: a scenario means what its text says, and a wrong one says where, what and how to mend it.
// Method: files in a folder of the test's own, read with and without overrides.
#include "app/scenario_file.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <filesystem>
#include <fstream>

#include "io/config/yaml.h"
#include "sim/run.h"

namespace signalbox::app {
namespace {

using namespace std::chrono_literals;
namespace fs = std::filesystem;

constexpr const char* kSmall = R"(shows: Two zones, one of which goes.
seed: 7
fleet:
  - {name: zone-a, model: Llama-3.1-8B, profile: l40s, count: 2}
  - name: zone-b
    model: Llama-3.1-8B
    profile: h100x1/fp8
    count: 3
    usd_per_hour: 1.5
    concurrency_max: 40
    engine: {kv_tokens: 30000}
    tells: {timings: true}
load:
  requests: 60
  sessions_per_second: 20
  answer: {median: 20, most: 50}
faults:
  - {kind: die, at: 1s, lasts: 2s, group: zone-b}
  - {kind: slow, at: 500ms, lasts: 2s, engines: [0, 4], factor: 3}
  - {kind: fail, at: 0, lasts: 1s, group: zone-a, engines: [1], share: 0.5}
gateway:
  admission: {queue_requests_max: 12}
  timeouts: {first_token: 9s}
objective: {ttft: 1s, latency_weight: 4}
world: {scrape_interval: 2s, threads: 3}
disorder: {late: 0.1}
expect:
  - ttft.p99 < 20s
)";

class ScenarioFileTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() /
              ("signalbox-scenario-" + std::to_string(::getpid()) + "-" +
               ::testing::UnitTest::GetInstance()->current_test_info()->name());
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::string put(const std::string& name, const std::string& text) {
    std::ofstream(folder_ / name, std::ios::binary) << text;
    return (folder_ / name).string();
  }
  Result<ScenarioFile> open(const std::string& text, const std::vector<std::string>& sets = {}) {
    return ScenarioFile::open(put("s.yaml", text), sets);
  }
  // What is wrong, without the folder.
  std::string wrong(const std::string& text, const std::vector<std::string>& sets = {}) {
    auto file = open(text, sets);
    if (!file) return bare(file.error().message);
    const auto scenario = file->scenario(1);
    return scenario ? "" : bare(scenario.error().message);
  }
  std::string bare(std::string message) const {
    const std::string prefix = folder_.string() + "/";
    for (std::size_t at; (at = message.find(prefix)) != message.npos;) {
      message.erase(at, prefix.size());
    }
    return message;
  }

  fs::path folder_;
};

// The smallest valid file, with something more.
std::string with(const std::string& more) { return "fleet: [{model: m}]\n" + more; }

TEST_F(ScenarioFileTest, EverythingThatIsWrittenArrives) {
  auto file = open(kSmall);
  ASSERT_TRUE(file.has_value()) << file.error().message;
  EXPECT_EQ(file->form().seed, 7u);
  const auto made = file->scenario(9);
  ASSERT_TRUE(made.has_value()) << made.error().message;
  const sim::Scenario& s = *made;
  EXPECT_EQ(s.seed, 9u);
  ASSERT_EQ(s.groups.size(), 2u);
  EXPECT_EQ(s.groups[0].accelerator, "L40S-48GB");
  EXPECT_EQ(s.groups[0].precision, "bf16");
  EXPECT_EQ(s.groups[0].spec.kv_tokens, 190048);  // the profile's own
  EXPECT_DOUBLE_EQ(s.groups[0].usd_per_hour, 2.52);
  EXPECT_EQ(s.groups[1].precision, "fp8");
  EXPECT_EQ(s.groups[1].spec.kv_tokens, 30000);
  EXPECT_EQ(s.groups[1].profile, "Llama-3.1-8B");
  EXPECT_DOUBLE_EQ(s.groups[1].usd_per_hour, 1.5);
  EXPECT_EQ(s.groups[1].concurrency_max, 40);
  EXPECT_TRUE(s.groups[1].dialect.timings);
  EXPECT_FALSE(s.groups[0].dialect.timings);
  EXPECT_EQ(s.load.requests, 60);
  EXPECT_EQ(s.load.answer.most, 50);
  EXPECT_EQ(s.config.admission.queue_requests_max, 12);
  EXPECT_EQ(s.first_token_timeout, 9s);
  EXPECT_EQ(s.ttft_wanted, 1s);
  EXPECT_EQ(s.latency_weight, 4);
  EXPECT_EQ(s.scrape_interval, 2s);
  EXPECT_EQ(s.threads, 3);
  EXPECT_EQ(s.disorder.late, 0.1);
}

TEST_F(ScenarioFileTest, FaultsReachTheEnginesThatTheyName) {
  auto file = open(kSmall);
  ASSERT_TRUE(file.has_value());
  const auto s = file->scenario(7);
  ASSERT_TRUE(s.has_value());
  std::vector<std::pair<sim::Fault::Kind, std::size_t>> hit;
  for (const sim::Fault& f : s->faults) hit.emplace_back(f.kind, f.engine);
  using Kind = sim::Fault::Kind;
  EXPECT_EQ(hit, (std::vector<std::pair<Kind, std::size_t>>{{Kind::Die, 2},
                                                            {Kind::Die, 3},
                                                            {Kind::Die, 4},
                                                            {Kind::Slow, 0},
                                                            {Kind::Slow, 4},
                                                            {Kind::Fail, 1}}));
  EXPECT_EQ(s->faults[0].at, Instant{} + 1s);
  EXPECT_EQ(s->faults[3].amount, 3);
  EXPECT_EQ(s->faults[5].amount, 0.5);
}

TEST_F(ScenarioFileTest, DrawnFaultsFollowFromTheSeedWithinTheirBounds) {
  auto file = open(with("drawn_faults: {count: 40, kinds: [die, fail, forget], from: 5s, "
                        "until: 9s, lasts: 2s}\n"));
  ASSERT_TRUE(file.has_value()) << file.error().message;
  const auto one = file->scenario(1);
  const auto again = file->scenario(1);
  const auto other = file->scenario(2);
  ASSERT_TRUE(one && again && other);
  ASSERT_EQ(one->faults.size(), 40u);
  bool differs = false;
  for (std::size_t i = 0; i < 40; ++i) {
    const sim::Fault& f = one->faults[i];
    using Kind = sim::Fault::Kind;
    EXPECT_TRUE(f.kind == Kind::Die || f.kind == Kind::Fail || f.kind == Kind::Forget);
    EXPECT_EQ(f.lasts == Duration::zero(), f.kind == Kind::Forget);
    EXPECT_LT(f.engine, 2u);
    EXPECT_GE(f.at, Instant{} + 5s);
    EXPECT_LT(f.at, Instant{} + 9s);
    EXPECT_EQ(f.at, again->faults[i].at);
    differs = differs || f.at != other->faults[i].at;
  }
  EXPECT_TRUE(differs);
  EXPECT_NE(wrong(with("drawn_faults: {count: 1, from: 5s, until: 5s}\n")).find("not after"),
            std::string::npos);
  EXPECT_NE(wrong(with("drawn_faults: {kinds: [drain]}\n")).find("drawn_faults.kinds[0]"),
            std::string::npos);
  EXPECT_EQ(wrong(with("drawn_faults: {count: 1}\nexpect: [goodput > 0.1*baseline]\n")), "");
}

TEST_F(ScenarioFileTest, AnEngineThatCannotBeIsNoCrash) {
  const std::string tiny = "fleet: [{engine: {kv_tokens: 16, block_tokens: 4096}}]\n";
  EXPECT_NE(wrong(tiny).find("holds not one block"), std::string::npos) << wrong(tiny);
  const std::string timeless = "fleet: [{steps: {prefill_ms: 0, decode_ms: 0}}]\n";
  EXPECT_NE(wrong(timeless).find("prefill_ms"), std::string::npos) << wrong(timeless);
}

TEST_F(ScenarioFileTest, AValueThatWasNotReadIsNoReasonForFurtherErrors) {
  const std::string said = wrong(with("faults: [{kind: boom, at: 1s}]\n"));
  EXPECT_NE(said.find("boom"), std::string::npos) << said;
  EXPECT_EQ(said.find("lasts"), std::string::npos) << said;
}

TEST_F(ScenarioFileTest, ItRunsTheSameEachTime) {
  auto file = open(kSmall);
  ASSERT_TRUE(file.has_value());
  const sim::Report first = sim::run(*file->scenario(7));
  EXPECT_TRUE(first.violations.empty()) << sim::text(first);
  EXPECT_EQ(first.digest, sim::run(*file->scenario(7)).digest);
  EXPECT_NE(first.digest, sim::run(*file->scenario(8)).digest);
}

TEST_F(ScenarioFileTest, TheDefaultsAreThoseOfTheStructs) {
  auto file = open(with(""));
  ASSERT_TRUE(file.has_value()) << file.error().message;
  const auto s = file->scenario(1);
  ASSERT_TRUE(s.has_value());
  const sim::Scenario plain;
  EXPECT_EQ(s->load.requests, plain.load.requests);
  EXPECT_EQ(s->load.answer.most, plain.load.answer.most);
  EXPECT_EQ(s->network, plain.network);
  EXPECT_EQ(s->ttft_wanted, plain.ttft_wanted);
  EXPECT_EQ(s->groups[0].spec.kv_tokens, plain.groups[0].spec.kv_tokens);
  EXPECT_EQ(s->groups[0].count, plain.groups[0].count);
  EXPECT_TRUE(s->faults.empty());
  EXPECT_EQ(s->policy, "signalbox");
}

TEST_F(ScenarioFileTest, WrongTextsSayWhere) {
  EXPECT_EQ(wrong("fleet: [{model: m}]\nloads: {}\n"),
            "s.yaml:2:1: there is no setting `loads` here; did you mean `load`?");
  EXPECT_EQ(wrong(with("load: {request: 5}\n")),
            "s.yaml:2:8: load: there is no setting `request` here; did you mean `requests`?");
  EXPECT_EQ(wrong(with("load: {requests: 5, requests: 6}\n")).substr(0, 15), "s.yaml:2:21: lo");
  EXPECT_NE(wrong(with("load: {think: 5}\n")).find("load.think"), std::string::npos);
  EXPECT_NE(wrong(with("load: {leavers: 1.5}\n")).find("s.yaml:2:17: load.leavers"),
            std::string::npos);
  EXPECT_NE(wrong("load: {requests: 5}\n").find("`fleet`"), std::string::npos);
  EXPECT_NE(wrong("fleet: []\n").find("fleet"), std::string::npos);
  EXPECT_NE(wrong("- a\n").find("s.yaml:1:1"), std::string::npos);
  EXPECT_NE(wrong("fleet: [{model: m}]\n---\nfleet: []\n").find("2 documents"), std::string::npos);
  EXPECT_NE(wrong("").find("s.yaml"), std::string::npos);
}

TEST_F(ScenarioFileTest, WhatDoesNotGoTogetherIsAnErrorAtItsPlace) {
  EXPECT_EQ(wrong(with("policy: round-robbin\n")),
            "s.yaml:2:9: policy: `round-robbin` is nobody who decides; did you mean "
            "`round-robin`?");
  EXPECT_EQ(wrong(with("faults: [{kind: slow, at: 1s, lasts: 1s, engines: [0]}]\n")),
            "s.yaml:2:10: faults[0]: kind slow needs `factor`; add it.");
  EXPECT_EQ(wrong(with("faults: [{kind: die, at: 1s, lasts: 1s, engines: [0], share: 0.5}]\n")),
            "s.yaml:2:62: faults[0].share: has no meaning for kind die; remove it.");
  EXPECT_EQ(wrong(with("faults: [{kind: die, at: 1s, lasts: 1s}]\n")),
            "s.yaml:2:10: faults[0]: says not which engines; add `engines`, `group` or `zone`.");
  EXPECT_EQ(wrong(with("faults: [{kind: die, at: 1s, lasts: 1s, engines: [2]}]\n")),
            "s.yaml:2:51: faults[0].engines[0]: there are 2 engines, with numbers from 0 on.");
  EXPECT_NE(wrong(with("faults: [{kind: die, at: 1s, lasts: 1s, group: x}]\n")).find("`x`"),
            std::string::npos);
  EXPECT_NE(wrong(with("faults: [{kind: forget, at: 1s, lasts: 1s, engines: [0]}]\n"))
                .find("faults[0].lasts: has no meaning"),
            std::string::npos);
  EXPECT_NE(wrong(with("faults: [{kind: drain, at: 1s, engines: [0]}]\n")).find("engines"),
            std::string::npos);
  EXPECT_EQ(wrong(with("load: {lasts: 5s, warm_up: 5s}\n")).substr(0, 20),
            "s.yaml:2:28: load: `");
  EXPECT_EQ(wrong(with("expect: [goodput > baseline]\n")),
            "s.yaml:2:10: expect[0]: `baseline` is the same run without its faults, and this one "
            "has none.");
  EXPECT_EQ(wrong(with("expect:\n  - ttft.p77 < 2s\n")),
            "s.yaml:3:5: expect[0]: `ttft.p77` is no metric; did you mean `ttft.p50`?");
  EXPECT_NE(wrong("fleet: [{model: m, profile: h100}]\n").find("fleet[0].profile: No step times"),
            std::string::npos);
  EXPECT_NE(wrong("fleet: [{model: Llama-3.1-8B, profile: h100, steps: {}}]\n")
                .find("fleet[0].steps"),
            std::string::npos);
  EXPECT_NE(wrong("fleet: [{name: a, model: m}, {name: a, model: m}]\n").find("fleet[1].name"),
            std::string::npos);
}

TEST_F(ScenarioFileTest, OverridesHaveThePathsAndTheChecksOfTheFile) {
  auto file = open(kSmall, {"load.requests=5", "fleet[0].count=1", "faults=[]", "expect[1]=tasks>1",
                            "world={network: 2ms}", "objective.e2e=3s"});
  ASSERT_TRUE(file.has_value()) << file.error().message;
  const auto s = file->scenario(1);
  ASSERT_TRUE(s.has_value());
  EXPECT_EQ(s->load.requests, 5);
  EXPECT_EQ(s->groups[0].count, 1);
  EXPECT_TRUE(s->faults.empty());
  EXPECT_EQ(s->network, 2ms);
  EXPECT_EQ(s->threads, 2);
  EXPECT_EQ(s->e2e_wanted, 3s);
  EXPECT_EQ(file->form().expect.size(), 2u);

  EXPECT_EQ(wrong(kSmall, {"load.request=5"}),
            "--set: load: there is no setting `request` here; did you mean `requests`?");
  EXPECT_EQ(wrong(kSmall, {"lod=3"}),
            "--set: there is no setting `lod` here; did you mean `load`?");
  EXPECT_NE(wrong(kSmall, {"load.requests=0"}).find("--set: load.requests"), std::string::npos);
  EXPECT_NE(wrong(kSmall, {"load.requests"}).find("PATH=VALUE"), std::string::npos);
  EXPECT_NE(wrong(kSmall, {"fleet[7].count=1"}).find("list of 2"), std::string::npos);
  EXPECT_NE(wrong(kSmall, {"fleet[x].count=1"}).find("bracket"), std::string::npos);
  EXPECT_NE(wrong(kSmall, {"fleet.count=1"}).find("no block"), std::string::npos);
  EXPECT_NE(wrong(kSmall, {"load[0]=1"}).find("no list"), std::string::npos);
  EXPECT_NE(wrong(kSmall, {"=1"}).find("names no setting"), std::string::npos);
  EXPECT_NE(wrong(kSmall, {"load..think=1s"}).find("empty step"), std::string::npos);
  EXPECT_NE(wrong(kSmall, {"load.think={"}), "");
  // Less engines than a fault speaks of.
  EXPECT_NE(wrong(kSmall, {"fleet[1].count=1"}).find("faults[1].engines[1]"), std::string::npos);
}

std::string packed(const std::string& text) {
  z_stream stream{};
  EXPECT_EQ(deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
  std::string out(text.size() + 100, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

constexpr const char* kAzure =
    "t_ms,input_tokens,output_tokens\n0,100,10\n1500,200,20\n4000,50,5\n";

TEST_F(ScenarioFileTest, TracesStandBesideTheFilePlainOrPacked) {
  put("a.csv", kAzure);
  put("a.csv.gz", packed(kAzure));
  for (const char* name : {"a.csv", "a.csv.gz"}) {
    auto file = open(with("load: {trace: {format: azure, file: " + std::string(name) +
                          ", speed_up: 2, length: 3s}}\n"));
    ASSERT_TRUE(file.has_value()) << file.error().message;
    const auto s = file->scenario(1);
    ASSERT_TRUE(s.has_value()) << s.error().message;
    ASSERT_TRUE(s->load.trace);
    ASSERT_EQ(s->load.trace->calls.size(), 2u);
    EXPECT_EQ(s->load.trace->calls[1].at, 750ms);
    EXPECT_EQ(s->load.trace->calls[1].prompt_tokens, 200);
  }
}

TEST_F(ScenarioFileTest, FilesThatCannotBeReadAreNamedAtTheirPlace) {
  const auto trace = [&](const std::string& what) {
    return wrong(with("load:\n  trace: {format: azure, " + what + "}\n"));
  };
  EXPECT_EQ(trace("file: b.csv"),
            "s.yaml:3:32: load.trace.file: the file `b.csv` is not there.");
  EXPECT_NE(trace("file: .").find("no regular file"), std::string::npos);
  put("bad.gz", packed(kAzure).substr(0, 30));
  EXPECT_NE(trace("file: bad.gz").find("no whole gzip"), std::string::npos);
  put("bad.csv", "t_ms,input_tokens,output_tokens\n0,x,10\n");
  EXPECT_NE(trace("file: bad.csv").find("`bad.csv`: "), std::string::npos);
  put("a.csv", kAzure);
  EXPECT_NE(trace("file: a.csv, start: 1h").find("nothing is left"), std::string::npos);
  EXPECT_NE(trace("file: a.csv, sessions: 4").find("load.trace"), std::string::npos);
  EXPECT_NE(trace("file: a.csv, model: m").find("belongs to format servegen"), std::string::npos);
  EXPECT_NE(trace("file: a.csv, speed_up: 2, tokens_per_second: 9").find("keep one"),
            std::string::npos);
  EXPECT_NE(trace("format: agentic, file: a.csv").find("twice"), std::string::npos);
}

TEST_F(ScenarioFileTest, SeveralPackedPartsAreOneText) {
  const std::string path = put("two.gz", packed("abc") + packed("def"));
  EXPECT_EQ(*read_unpacked(path, 100), "abcdef");
  EXPECT_FALSE(read_unpacked(path, 5).has_value());
}

TEST_F(ScenarioFileTest, WhatIsWrittenCanBeReadAgain) {
  auto file = open(kSmall);
  ASSERT_TRUE(file.has_value());
  const std::string text = sim::to_yaml(file->form());
  auto again = open(text);
  ASSERT_TRUE(again.has_value()) << again.error().message << "\n" << text;
  EXPECT_EQ(sim::to_yaml(again->form()), text);
  EXPECT_EQ(sim::run(*again->scenario(7)).digest, sim::run(*file->scenario(7)).digest);
  int written = 0;
  for (std::uint64_t seed = 100; seed < 130; ++seed) {
    const auto form = sim::form_of(sim::random_scenario(seed, 100));
    if (!form) continue;
    ++written;
    EXPECT_EQ(wrong(sim::to_yaml(*form)), "") << sim::to_yaml(*form);
  }
  EXPECT_GT(written, 5);
}

// The example of the reference page.
TEST_F(ScenarioFileTest, TheExampleOfTheReferenceIsValid) {
  const std::string page = sim::scenario_markdown();
  const std::size_t begin = page.find("```yaml\n") + 8;
  const std::string text = page.substr(begin, page.find("```\n", begin) - begin);
  EXPECT_EQ(wrong(text), "");
}

}  // namespace
}  // namespace signalbox::app
