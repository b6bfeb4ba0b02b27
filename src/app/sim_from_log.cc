// SPDX-License-Identifier: Apache-2.0
// A log to a scenario, and that one under several rules.
#include "app/sim_from_log.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>

#include "app/event_log.h"
#include "app/natural.h"
#include "app/scenario_file.h"
#include "app/sim_compare.h"
#include "app/table.h"

namespace signalbox::app {
namespace {

constexpr const char* kScenario = "recorded.yaml";
constexpr const char* kTrace = "recorded.jsonl";
constexpr const char* kAsItWas = "as it was";

// The last run of a log that asked for anything.
class Listener final : public LogListener {
 public:
  void begins() override { run_ = {}; }
  void applied(const flow::Setup& setup, Instant now) override { run_.applied(setup, now); }
  void handled(const model::Event& event, Instant now) override { run_.handled(event, now); }
  void ends(const flow::Flow& core) override {
    auto made = run_.finish(core, kTrace);
    if (made || !recording_) recording_ = std::move(made);
  }

  Result<sim::Recording> take() {
    if (!recording_) return invalid("the log has no configuration, so nobody could be served.");
    return std::move(*recording_);
  }

 private:
  sim::RecordedRun run_;
  std::optional<Result<sim::Recording>> recording_;
};

Result<sim::Recording> read_recording(const FromLogOptions& o, std::vector<std::string>& notes) {
  TRY_ASSIGN(const std::vector<std::string> bytes, read_log_files(o.logs));
  Listener listener;
  const auto replayed = replay_logs(pieces_of(o.logs, bytes), &listener);
  TRY_ASSIGN(sim::Recording recording, listener.take());
  // What is before the damage can be played all the same.
  if (!replayed) notes.push_back(replayed.error().message);
  else if (!replayed->identical) {
    notes.push_back("This version decides otherwise than the one that wrote the log.");
  }
  notes.insert(notes.end(), recording.notes.begin(), recording.notes.end());
  return recording;
}

Result<void> keep(const std::string& folder, const char* name, const std::string& text) {
  const std::string path = (std::filesystem::path(folder) / name).string();
  std::ofstream out(path, std::ios::binary);
  out << text;
  out.close();
  if (!out) return invalid("'" + path + "' cannot be written");
  return {};
}

std::string joined(const std::vector<std::string>& words) {
  std::string out;
  for (const std::string& word : words) out += (out.empty() ? "" : " ") + word;
  return out;
}

}  // namespace

CLI::App* add_from_log(CLI::App& sim, FromLogOptions& o) {
  CLI::App* c = sim.add_subcommand("from-log", "Try other rules on recorded live traffic");
  c->footer("Example: signalbox sim from-log events.log --policies round-robin,smg-cache-aware\n"
            "         signalbox sim from-log events.log.1 events.log --set fleet[0].dispatch=late\n"
            "Writes recorded.yaml and recorded.jsonl, for `signalbox sim run` and more changes.\n"
            "Exit code: 0 done, 1 an invariant did not hold, 2 it cannot be run");
  c->add_option("logs", o.logs, "Event logs of one run, oldest first")->required();
  c->add_option("--keep", o.keep, "Folder for the scenario and its trace")->default_str(".");
  c->add_option("--policies", o.policies, "Tried besides: all, or names with commas between")
      ->capture_default_str();
  c->add_option("--set", o.sets, "PATH=VALUE: a change of the scenario to be tried, all together")
      ->allow_extra_args(false);
  c->add_option("--seed", o.seed, "The first seed")->check(natural)->capture_default_str();
  c->add_option("--seeds", o.seeds, "So many: each draws how far engines are from what is believed")
      ->check(natural)
      ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{1000}))
      ->capture_default_str();
  c->add_option("--jobs", o.jobs, "Runs at once; 0: one per core")
      ->check(CLI::Range(0u, 256u))
      ->capture_default_str();
  c->add_option("-o,--output", o.output, "table or json")
      ->check(CLI::IsMember({"table", "json"}))
      ->capture_default_str();
  return c;
}

Result<Counterfactual> counterfactual(const FromLogOptions& o) {
  TRY_ASSIGN(const std::vector<std::string> policies, sim::policies_of(o.policies));
  Counterfactual out;
  out.log = joined(o.logs);
  TRY_ASSIGN(sim::Recording recording, read_recording(o, out.notes));
  out.recorded = recording.figures;
  recording.form.shows = "Recorded traffic: " + std::to_string(recording.figures.requests) +
                         " requests from " + out.log + ".";
  const std::string folder = o.keep.empty() ? "." : o.keep;
  const std::string yaml = "# SPDX-License-Identifier: Apache-2.0\n" + sim::to_yaml(recording.form);
  TRY_CHECK(keep(folder, kTrace, recording.trace));
  TRY_CHECK(keep(folder, kScenario, yaml));

  const std::string path = (std::filesystem::path(folder) / kScenario).string();
  TRY_ASSIGN(ScenarioFile as_it_was, ScenarioFile::open(path, {}));
  std::vector<Contender> contenders;
  const auto add = [&](const std::string& name, ScenarioFile& file,
                       const std::string& policy) -> Result<void> {
    for (std::uint64_t i = 0; i < o.seeds; ++i) {
      TRY_ASSIGN(sim::Scenario scenario, file.scenario(o.seed + i));
      scenario.policy = policy;
      contenders.push_back({name, std::move(scenario)});
    }
    return {};
  };
  TRY_CHECK(add(kAsItWas, as_it_was, "signalbox"));
  for (const std::string& policy : policies) {
    if (policy != "signalbox") TRY_CHECK(add(policy, as_it_was, policy));
  }
  if (!o.sets.empty()) {
    TRY_ASSIGN(ScenarioFile changed, ScenarioFile::open(path, o.sets));
    TRY_CHECK(add(joined(o.sets), changed, changed.form().policy));
  }
  out.rows = run_all(contenders, 1, o.jobs, out.violations);
  return out;
}

std::string counterfactual_table(const Counterfactual& c) {
  Table table({"", "E2E s", "p99", "TTFT s", "p99", "GOOD %", "HIT %", "USD",
               "E2E AGAINST AS IT WAS"});
  const sim::RecordedFigures& r = c.recorded;
  table.row({"recorded", fixed(r.e2e_mean_s, 3), fixed(r.e2e_p99_s, 2), fixed(r.ttft_mean_s, 3),
             fixed(r.ttft_p99_s, 2), "", fixed(r.cache_hit * 100, 1), "", ""});
  for (const sim::Summary& s : sim::summarise(c.rows, kAsItWas)) {
    const sim::Row& m = s.mean;
    const std::string against = m.policy == kAsItWas ? "" : change_text(s);
    table.row({m.policy, fixed(m.e2e_mean_s, 3), fixed(m.e2e_p99_s, 2), fixed(m.ttft_mean_s, 3),
               fixed(m.ttft_p99_s, 2), fixed(m.goodput * 100, 1), fixed(m.cache_hit * 100, 1),
               fixed(m.cost_usd, 2), against});
  }
  std::string out = std::to_string(r.requests) + " requests, " + std::to_string(r.completed) +
                    " completed, from " + printable(c.log) + "\n\n" + table.text();
  for (const std::string& note : c.notes) out += "note: " + printable(note) + "\n";
  return out;
}

std::string counterfactual_json(const Counterfactual& c) {
  using Json = nlohmann::ordered_json;
  const sim::RecordedFigures& r = c.recorded;
  Json out = {{"log", c.log},
              {"recorded",
               {{"requests", r.requests}, {"completed", r.completed},
                {"ttft_mean_s", r.ttft_mean_s}, {"ttft_p99_s", r.ttft_p99_s},
                {"e2e_mean_s", r.e2e_mean_s}, {"e2e_p99_s", r.e2e_p99_s},
                {"cache_hit", r.cache_hit}}},
              {"notes", c.notes}};
  out["variants"] = Json::array();
  for (const sim::Summary& s : sim::summarise(c.rows, kAsItWas)) {
    Json entry = {{"name", s.mean.policy}};
    sim::numbers([&](const double& value,
                     std::string_view name) { entry[std::string(name)] = value; }, s.mean);
    entry.erase("load");
    entry["log_e2e_against_as_it_was"] = s.change;
    entry["interval"] = s.interval;
    out["variants"].push_back(std::move(entry));
  }
  out["violations"] = c.violations;
  return out.dump(1) + "\n";
}

int sim_from_log(const FromLogOptions& o) {
  const auto done = counterfactual(o);
  if (!done) {
    std::fprintf(stderr, "signalbox sim from-log: %s\n", done.error().message.c_str());
    return 2;
  }
  return tell(o.output == "json" ? counterfactual_json(*done) : counterfactual_table(*done),
              done->violations);
}

}  // namespace signalbox::app
