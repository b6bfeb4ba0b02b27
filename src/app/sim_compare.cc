// SPDX-License-Identifier: Apache-2.0
// Options to a scenario, runs on threads, rows to tables.
#include "app/sim_compare.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <mutex>
#include <nlohmann/json.hpp>
#include <thread>

#include "app/natural.h"
#include "app/scenario_file.h"
#include "app/table.h"
#include "sim/capacity.h"
#include "sim/run.h"

namespace signalbox::app {
namespace {

// Nobody leaves, streams all, and asks again by itself: policies differ in what they do first.
constexpr const char* kFleet =
    "fleet:\n"
    "  - {model: Llama-3.1-70B, profile: h100x4, count: 8}\n"
    "load: {leavers: 0, plain: 0, sdk: {retries_max: 0}}\n"
    "world: {replay: false}\n"
    "objective: {ttft: 5s, e2e: 60s}\n";

std::string set_text(const std::string& path, const std::string& value) {
  return path + "=" + nlohmann::json(value).dump();
}

std::string set_file(const std::string& path, const std::string& file) {
  std::error_code fault;
  return set_text(path, std::filesystem::absolute(file, fault).string());
}

Result<ScenarioFile> scenario_of(const CompareOptions& o) {
  std::vector<std::string> sets = {set_text("load.trace.format", o.format),
                                   set_file("load.trace.file", o.trace)};
  if (!o.sessions.empty()) sets.push_back(set_file("load.trace.sessions_file", o.sessions));
  if (!o.lengths.empty()) sets.push_back(set_file("load.trace.lengths_file", o.lengths));
  if (!o.clients.empty()) sets.push_back(set_text("load.trace.model", o.clients));
  sets.insert(sets.end(), o.sets.begin(), o.sets.end());
  return o.fleet.empty() ? ScenarioFile::parse("(fleet)", kFleet, sets)
                         : ScenarioFile::open(o.fleet, sets);
}

std::string percent(double share) { return fixed(share * 100, 1); }

}  // namespace

CLI::App* add_compare(CLI::App& sim, CompareOptions& o) {
  CLI::App* c = sim.add_subcommand("compare", "Run policies side by side on recorded traffic");
  c->footer("Example: signalbox sim compare --trace mooncake.jsonl.gz --format mooncake "
            "--load 0.8 --policies signalbox,smg-cache-aware,llmd-sticky --seeds 3\n"
            "         signalbox sim compare --trace calls.csv.gz --sessions sessions.csv "
            "--format agentic --fleet fleet.yaml -o json");
  c->add_option("--trace", o.trace, "Record of traffic, plain or gzip")->required();
  c->add_option("--format", o.format, "mooncake, azure, agentic or servegen")
      ->check(CLI::IsMember({"mooncake", "azure", "agentic", "servegen"}))
      ->capture_default_str();
  c->add_option("--sessions", o.sessions, "Format agentic: the table of sessions");
  c->add_option("--lengths", o.lengths, "Format servegen: the table of lengths");
  c->add_option("--clients", o.clients, "Format servegen: the model whose clients are drawn");
  c->add_option("--fleet", o.fleet, "Scenario file with the fleet; else eight 70B engines");
  c->add_option("--set", o.sets, "PATH=VALUE: overrides a setting of the scenario")
      ->allow_extra_args(false);
  c->add_option("--policies", o.policies, "all, or names with commas between")
      ->capture_default_str();
  c->add_option("--load", o.load, "Share of the fleet's capacity")
      ->check(CLI::Range(0.01, 10.0))
      ->capture_default_str();
  c->add_option("--seed", o.seed, "The first seed")->check(natural)->capture_default_str();
  c->add_option("--seeds", o.seeds, "So many seeds")
      ->check(natural)
      ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{1000}))
      ->capture_default_str();
  c->add_option("--warm-up", o.warm_up_s, "Virtual seconds before anything counts")
      ->check(CLI::Range(0.0, 1e6))
      ->capture_default_str();
  c->add_option("--measure", o.measured_s, "Virtual seconds that count")
      ->check(CLI::Range(1.0, 1e6))
      ->capture_default_str();
  c->add_option("--jobs", o.jobs, "Runs at once; 0: one per core")
      ->check(CLI::Range(0u, 256u))
      ->capture_default_str();
  c->add_option("-o,--output", o.output, "table or json")
      ->check(CLI::IsMember({"table", "json"}))
      ->capture_default_str();
  return c;
}

std::vector<sim::Row> run_all(const std::vector<Contender>& contenders, double load, unsigned jobs,
                              std::vector<std::string>& violations) {
  std::vector<sim::Row> rows(contenders.size());
  std::atomic<std::size_t> next{0};
  std::mutex telling;
  const auto work = [&] {
    for (std::size_t i = next++; i < contenders.size(); i = next++) {
      const Contender& contender = contenders[i];
      const sim::Report report = sim::run(contender.scenario);
      rows[i] = sim::row(contender.scenario, load, report);
      rows[i].policy = contender.name;
      for (const std::string& violation : report.violations) {
        const std::lock_guard lock(telling);
        violations.push_back(contender.name + ": " + violation);
      }
    }
  };
  const unsigned cores = std::max(1u, std::thread::hardware_concurrency());
  std::vector<std::thread> threads;
  for (unsigned i = 1; i < (jobs > 0 ? jobs : cores); ++i) threads.emplace_back(work);
  work();
  for (std::thread& thread : threads) thread.join();
  return rows;
}

int tell(const std::string& text, const std::vector<std::string>& violations) {
  std::fputs(text.c_str(), stdout);
  for (const std::string& violation : violations) {
    std::fprintf(stderr, "FAIL  %s\n", violation.c_str());
  }
  return violations.empty() ? 0 : 1;
}

Result<Comparison> compare(const CompareOptions& o) {
  TRY_ASSIGN(const std::vector<std::string> policies, sim::policies_of(o.policies));
  TRY_ASSIGN(ScenarioFile file, scenario_of(o));
  TRY_ASSIGN(const sim::Scenario recorded, file.scenario(o.seed));
  if (recorded.load.trace == nullptr || recorded.load.trace->calls.empty()) {
    return invalid(o.trace + ": has no calls.");
  }
  Comparison out;
  out.trace = o.trace;
  out.load = o.load;
  const sim::Capacity can = sim::capacity(recorded.groups, *recorded.load.trace);
  out.capacity = can.requests_per_second;
  out.cached_share = can.cached_share;
  auto base = sim::at_load(recorded, o.load, from_seconds(o.warm_up_s), from_seconds(o.measured_s));
  if (!base) return invalid(o.trace + ": " + base.error().message);
  std::vector<Contender> contenders;
  for (const std::string& policy : policies) {
    for (std::uint64_t i = 0; i < o.seeds; ++i) {
      contenders.push_back({policy, *base});
      contenders.back().scenario.policy = policy;
      contenders.back().scenario.seed = o.seed + i;
    }
  }
  out.rows = run_all(contenders, o.load, o.jobs, out.violations);
  return out;
}

std::string change_text(const sim::Summary& s) {
  std::string text = (s.change < 0 ? "" : "+") + percent(std::expm1(s.change)) + " %";
  if (s.interval > 0) text += " ± " + percent(s.interval);
  return text;
}

std::string compare_table(const Comparison& c) {
  std::vector<sim::Summary> summaries = sim::summarise(c.rows);
  std::ranges::sort(summaries, [](const sim::Summary& a, const sim::Summary& b) {
    if (a.mean.e2e_mean_s != b.mean.e2e_mean_s) return a.mean.e2e_mean_s < b.mean.e2e_mean_s;
    return a.mean.policy < b.mean.policy;
  });
  Table table({"POLICY", "E2E s", "p99", "TTFT s", "p99", "TPOT ms", "GOOD %", "HIT %", "PREEMPT",
               "USD", "E2E AGAINST OURS"});
  for (const sim::Summary& s : summaries) {
    const sim::Row& m = s.mean;
    const std::string against = m.policy == "signalbox" ? "" : change_text(s);
    table.row({m.policy, fixed(m.e2e_mean_s, 2), fixed(m.e2e_p99_s, 1), fixed(m.ttft_mean_s, 3),
               fixed(m.ttft_p99_s, 2), fixed(m.tpot_mean_s * 1e3, 1), percent(m.goodput),
               percent(m.cache_hit), fixed(m.preemptions, 0), fixed(m.cost_usd, 2), against});
  }
  return "load " + percent(c.load) + " % of " + fixed(c.capacity, 2) +
         " requests/s, which is this fleet with " + percent(c.cached_share) +
         " % of prompt tokens cached\n\n" + table.text();
}

std::string compare_json(const Comparison& c) {
  using Json = nlohmann::ordered_json;
  const auto figures = [](const sim::Row& r, Json& out) {
    const auto put = [&](const double& value, std::string_view name) {
      out[std::string(name)] = value;
    };
    sim::numbers(put, r);
  };
  Json out = {{"trace", c.trace}, {"load", c.load}, {"capacity_rps", c.capacity},
              {"capacity_cached_share", c.cached_share}};
  out["rows"] = Json::array();
  for (const sim::Row& r : c.rows) {
    Json row = {{"policy", r.policy}, {"seed", r.seed}};
    figures(r, row);
    out["rows"].push_back(std::move(row));
  }
  out["policies"] = Json::array();
  for (const sim::Summary& s : sim::summarise(c.rows)) {
    Json row = {{"policy", s.mean.policy}};
    figures(s.mean, row);
    row["log_e2e_against_ours"] = s.change;
    row["interval"] = s.interval;
    out["policies"].push_back(std::move(row));
  }
  out["violations"] = c.violations;
  return out.dump(1) + "\n";
}

int sim_compare(const CompareOptions& o) {
  const auto done = compare(o);
  if (!done) {
    std::fprintf(stderr, "signalbox sim compare: %s\n", done.error().message.c_str());
    return 2;
  }
  return tell(o.output == "json" ? compare_json(*done) : compare_table(*done), done->violations);
}

}  // namespace signalbox::app
