// SPDX-License-Identifier: Apache-2.0
// Threads take seeds in turn; what breaks is made small and written down.
#include "app/sim_fuzzing.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <fstream>
#include <mutex>
#include <thread>
#include <vector>

#include "app/natural.h"
#include "sim/fuzz.h"
#include "sim/scenario_form.h"

namespace signalbox::app {
namespace {

struct Finding {
  std::uint64_t seed = 0;
  std::string violation;
};

// What all threads share; behind the mutex.
struct Hunt {
  std::mutex mutex;
  std::uint64_t next = 1;
  std::uint64_t runs = 0;
  double hours = 0;
  std::vector<Finding> findings;
};

void hunt(Hunt& all, const FuzzOptions& o) {
  const auto most = static_cast<std::size_t>(o.findings_max);
  for (;;) {
    std::uint64_t seed = 0;
    {
      const std::lock_guard lock(all.mutex);
      if (all.hours >= o.hours || all.findings.size() >= most) return;
      seed = all.next++;
    }
    const sim::FuzzVerdict verdict = sim::judge_fuzz(sim::fuzz_scenario(seed));
    const std::lock_guard lock(all.mutex);
    ++all.runs;
    all.hours += verdict.scenario_hours;
    if (!verdict.violation.empty()) all.findings.push_back({seed, verdict.violation});
  }
}

// A file that `sim run` shows the same with, if a file can say it.
int write_smallest(const Finding& finding, const FuzzOptions& o) {
  int runs = 0;
  const sim::Scenario smallest = sim::shrink(
      sim::fuzz_scenario(finding.seed),
      [&](const sim::Scenario& s) {
        ++runs;
        return !sim::judge_fuzz(s).violation.empty();
      },
      o.shrink_tries);
  const sim::FuzzVerdict verdict = sim::judge_fuzz(smallest);
  std::printf("smaller after %d runs: %lld tasks, %zu faults, %zu kinds of engines\n", runs,
              static_cast<long long>(smallest.load.requests), smallest.faults.size(),
              smallest.groups.size());
  const auto form = sim::form_of(smallest);
  if (!form) {
    std::printf("%s\nno file can say what it plays; see it again: signalbox sim fuzz --seed %llu "
                "--hours 0.001\n",
                verdict.violation.c_str(), static_cast<unsigned long long>(finding.seed));
    return 1;
  }
  const std::string path = o.keep + "/fuzz-" + std::to_string(finding.seed) + ".yaml";
  std::ofstream out(path, std::ios::binary);
  out << "# SPDX-License-Identifier: Apache-2.0\n" << sim::to_yaml(*form);
  out.close();
  if (!out) {
    std::fprintf(stderr, "signalbox sim: '%s' cannot be written\n", path.c_str());
    return 2;
  }
  std::printf("%s\nsee it again: signalbox sim run %s\n", verdict.violation.c_str(), path.c_str());
  return 1;
}

}  // namespace

CLI::App* add_fuzz(CLI::App& sim, FuzzOptions& o) {
  CLI::App* c = sim.add_subcommand("fuzz", "Draw worlds by seeds until something breaks");
  c->footer("Example: signalbox sim fuzz --hours 1000\n"
            "Exit code: 0 nothing broke, 1 something did, 2 it cannot be written down");
  c->add_option("--hours", o.hours, "Virtual hours of scenarios with eight engines")
      ->check(CLI::Range(0.001, 1e9))
      ->capture_default_str();
  c->add_option("--seed", o.seed, "The first seed")->check(natural)->capture_default_str();
  c->add_option("--jobs", o.jobs, "Runs at once; 0: one per core")
      ->check(CLI::Range(0u, 256u))
      ->capture_default_str();
  c->add_option("--shrink", o.shrink_tries, "Runs to make a failing scenario smaller")
      ->check(CLI::Range(0, 100'000))
      ->capture_default_str();
  c->add_option("--findings", o.findings_max, "Stop after so many failing scenarios")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  c->add_option("--keep", o.keep, "Folder for the smallest failing scenarios")
      ->capture_default_str();
  return c;
}

int sim_fuzz(const FuzzOptions& o) {
  Hunt all;
  all.next = o.seed;
  const unsigned jobs = o.jobs != 0 ? o.jobs : std::max(1u, std::thread::hardware_concurrency());
  std::printf("seeds from %llu, %g hours of scenarios with eight engines\n",
              static_cast<unsigned long long>(o.seed), o.hours);
  std::fflush(stdout);
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < jobs; ++i) threads.emplace_back([&] { hunt(all, o); });
  for (std::thread& thread : threads) thread.join();
  std::ranges::sort(all.findings, {}, &Finding::seed);
  std::printf("%llu worlds, %.1f hours: %zu broke\n", static_cast<unsigned long long>(all.runs),
              all.hours, all.findings.size());
  int code = 0;
  for (const Finding& finding : all.findings) {
    std::printf("\nseed %llu: %s\n", static_cast<unsigned long long>(finding.seed),
                finding.violation.c_str());
    std::fflush(stdout);
    code = std::max(code, write_smallest(finding, o));
  }
  return code;
}

}  // namespace signalbox::app
