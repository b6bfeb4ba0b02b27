// SPDX-License-Identifier: Apache-2.0
// Reads the command line of `signalbox sim`, runs scenarios and shows what came of them.
#include "app/sim_command.h"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <fstream>
#include <sstream>
#include <utility>

#include "app/natural.h"
#include "app/scenario_file.h"
#include "app/sim_result.h"
#include "app/table.h"
#include "sim/run.h"

namespace signalbox::app {
namespace {

SimRun run_one(const sim::Scenario& scenario, const sim::ScenarioForm& form) {
  SimRun run;
  run.seed = scenario.seed;
  run.faults = scenario.faults;
  run.report = sim::run(scenario);
  if (sim::wants_baseline(form)) {
    sim::Scenario calm = scenario;
    calm.faults.clear();
    run.baseline = sim::run(calm);
  }
  for (const sim::Expectation& expectation : form.expect) {
    run.verdicts.push_back(
        sim::judge(expectation, run.report, run.baseline ? &*run.baseline : nullptr));
  }
  return run;
}

Result<SimResult> run_all(ScenarioFile& file, std::uint64_t first, std::uint64_t seeds) {
  SimResult result;
  result.file = file.path();
  result.form = file.form();
  for (std::uint64_t seed = first; seed < first + seeds; ++seed) {
    TRY_ASSIGN(const sim::Scenario scenario, file.scenario(seed));
    result.runs.push_back(run_one(scenario, result.form));
  }
  return result;
}

// In lines of terminals.
std::string wrapped(const std::string& text) {
  constexpr std::size_t kWidth = 100;
  std::string out, line, word;
  for (std::istringstream words(text); words >> word;) {
    if (!line.empty() && line.size() + 1 + word.size() > kWidth) {
      out += line + "\n";
      line.clear();
    }
    line += (line.empty() ? "" : " ") + word;
  }
  return out + line + "\n";
}

// The seed first: whoever sees a run that fails can run it again.
void announce(std::FILE* to, const ScenarioFile& file, std::uint64_t first, std::uint64_t seeds) {
  const auto number = [](std::uint64_t n) { return std::to_string(n); };
  const std::string which =
      seeds == 1 ? "seed " + number(first)
                 : "seeds " + number(first) + " to " + number(first + seeds - 1);
  std::fprintf(to, "%s  %s\n", which.c_str(), printable(file.path()).c_str());
  if (!file.form().shows.empty()) {
    std::fputs(wrapped(printable(file.form().shows)).c_str(), to);
  }
  std::fflush(to);
}

int write_out(const std::string& text, const std::string& path) {
  if (path.empty()) {
    std::fputs(text.c_str(), stdout);
    return 0;
  }
  std::ofstream out(path, std::ios::binary);
  out << text;
  out.close();
  if (out) return 0;
  std::fprintf(stderr, "signalbox sim: '%s' cannot be written\n", path.c_str());
  return 2;
}

}  // namespace

void SimCommand::add(CLI::App& app) {
  CLI::App* sim = app.add_subcommand("sim", "Run the gateway's core in a virtual world");
  sim->require_subcommand(1);
  run_ = sim->add_subcommand("run", "Run scenarios and judge what they expect");
  run_->footer("Example: signalbox sim run scenarios/faults/engine-dies.yaml --seeds 10\n"
               "         signalbox sim run FILE --set fleet[0].count=8 -o html --out page.html\n"
               "Exit code: 0 all is as expected, 1 something is not, 2 it cannot be run");
  run_->add_option("files", files_, "Scenarios (docs/reference/scenario.md)")->required();
  run_->add_option("--seed", seed_, "Seed instead of the scenario's own")->check(natural);
  run_->add_option("--seeds", seeds_, "So many seeds, one after the other")
      ->check(natural)
      ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{100'000}))
      ->capture_default_str();
  run_->add_option("--set", sets_, "PATH=VALUE: overrides a setting, such as load.requests=500")
      ->allow_extra_args(false);
  run_->add_option("-o,--output", output_, "table, json or html")
      ->check(CLI::IsMember({"table", "json", "html"}))
      ->capture_default_str();
  run_->add_option("--out", out_, "File for the output instead of standard output");
  compare_ = add_compare(*sim, compare_options_);
  fuzz_ = add_fuzz(*sim, fuzz_options_);
  from_log_ = add_from_log(*sim, from_log_options_);
  metrics_ = sim->add_subcommand("metrics", "List what a scenario can expect something of");
  metrics_->footer("Example: signalbox sim metrics");
}

int SimCommand::run() {
  if (metrics_->parsed()) return list_metrics();
  if (fuzz_->parsed()) return sim_fuzz(fuzz_options_);
  if (from_log_->parsed()) return sim_from_log(from_log_options_);
  return compare_->parsed() ? sim_compare(compare_options_) : run_scenarios();
}

int SimCommand::run_scenarios() {
  // All are read before the first one runs: a mistake in the last shows at once.
  std::vector<ScenarioFile> files;
  bool readable = true;
  for (const std::string& path : files_) {
    auto file = ScenarioFile::open(path, sets_);
    if (file) {
      files.push_back(std::move(*file));
      continue;
    }
    std::fprintf(stderr, "%s\n", file.error().message.c_str());
    readable = false;
  }
  if (!readable) return 2;
  const bool table = output_ == "table";
  std::vector<SimResult> results;
  std::string tables;
  bool passed = true;
  for (ScenarioFile& file : files) {
    const std::uint64_t first = seed_.value_or(file.form().seed);
    const bool aside = !table || !out_.empty();
    announce(aside ? stderr : stdout, file, first, seeds_);
    auto result = run_all(file, first, seeds_);
    if (!result) {
      std::fprintf(stderr, "%s\n", result.error().message.c_str());
      return 2;
    }
    for (const std::string& failure : aside ? failures(*result) : std::vector<std::string>{}) {
      std::fprintf(stderr, "FAIL  %s\n", printable(failure).c_str());
    }
    passed = passed && result->passed();
    if (!aside) std::printf("\n%s\n", sim_table(*result).c_str());
    else if (table) tables += result->file + "\n\n" + sim_table(*result) + "\n";
    results.push_back(std::move(*result));
  }
  if (!table || !out_.empty()) {
    const std::string text = table               ? tables
                             : output_ == "json" ? sim_json(results)
                                                 : sim_page(results);
    if (const int code = write_out(text, out_); code != 0) return code;
  }
  return passed ? 0 : 1;
}

int SimCommand::list_metrics() {
  Table list({"METRIC", "WRITTEN AS", "OVER TIME", "MEANING"});
  for (const sim::Metric& metric : sim::metrics()) {
    list.row({metric.name, std::string(sim::examples(metric.unit)), metric.within ? "yes" : "",
              metric.meaning});
  }
  std::fputs(list.text().c_str(), stdout);
  return 0;
}

}  // namespace signalbox::app
