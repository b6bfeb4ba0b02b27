// SPDX-License-Identifier: Apache-2.0
// Draws, judges and shrinks.
#include "sim/fuzz.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/rng.h"
#include "core/flow/config_of.h"
#include "core/spec/config.h"
#include "sim/run.h"

namespace signalbox::sim {
namespace {

constexpr std::int64_t kRequests = 1500;
// The last fault is over after this share of the load's time; what comes in its last part shows
// whether all is well again.
constexpr double kHealed = 0.5;
constexpr double kShows = 0.8;
// Of what is answered without faults; a queue that was filled meanwhile may still be drained.
constexpr double kConverged = 1.0 / 3;
// Of those who come, without faults: a fleet that can serve its load.
constexpr double kKeepsUp = 0.7;
// Answers without faults, and seconds, that say something.
constexpr std::int64_t kEnough = 40;
constexpr double kLongEnough = 10;
constexpr Duration kEjection = std::chrono::seconds(10);  // at most

double engines_of(const Scenario& s) {
  double engines = 0;
  for (const EngineGroup& group : s.groups) engines += group.count;
  return engines;
}

double load_seconds(const Scenario& s) {
  const double tasks_per_session = 1 / std::max(0.05, 1 - s.load.follow_up);
  return static_cast<double>(s.load.requests) /
         std::max(1e-6, s.load.sessions_per_second * tasks_per_session);
}

double hours(const Scenario& s, const Report& report) {
  return to_seconds(report.elapsed) / 3600 * engines_of(s) / 8;
}

// Whether all is over by then.
bool heals_by(const Scenario& s, double seconds) {
  return std::ranges::all_of(s.faults, [&](const Fault& f) {
    const bool moment = is_of_a_moment(f.kind);
    return f.kind != Fault::Kind::Drain &&
           to_seconds(f.at - Instant{} + (moment ? Duration::zero() : f.lasts)) <= seconds + 1;
  });
}

// Clients that give up soon, or are given up, and ask again can keep a fleet busy with what nobody
// waits for, long after the fault that began it. To end that is for admission, which does not
// refuse for it yet.
bool can_storm(const Scenario& s) {
  Duration given_up = std::min(s.first_token_timeout, s.idle_timeout);
  if (s.load.sdk.timeout > Duration::zero()) given_up = std::min(given_up, s.load.sdk.timeout);
  return s.load.sdk.retries_max > 0 && given_up < std::chrono::seconds(30);
}

// A smaller one, or nothing where the step has nothing to take.
using Step = std::function<bool(Scenario&)>;

template <typename Items>
Step without(Items Scenario::* items, std::size_t from, std::size_t count, std::size_t least) {
  return [=](Scenario& s) {
    Items& all = s.*items;
    if (from >= all.size() || all.size() - std::min(count, all.size() - from) < least) return false;
    const auto begin = all.begin() + static_cast<std::ptrdiff_t>(from);
    all.erase(begin, begin + static_cast<std::ptrdiff_t>(std::min(count, all.size() - from)));
    return true;
  };
}

// Sets a part to what a scenario has by default.
template <typename Part>
Step plain(Part Scenario::* part) {
  return [=](Scenario& s) {
    const Scenario fresh;
    s.*part = fresh.*part;
    return true;
  };
}

// Each of them once: parts as they are by default.
std::vector<Step> plainer(const Scenario& s) {
  std::vector<Step> steps = {
      plain(&Scenario::disorder), plain(&Scenario::config), plain(&Scenario::threads),
      plain(&Scenario::scrape_interval), plain(&Scenario::scrape_lag),
      plain(&Scenario::first_token_timeout), plain(&Scenario::idle_timeout)};
  steps.emplace_back([](Scenario& x) {
    const Load before = std::exchange(x.load, {});
    x.load.requests = before.requests;
    x.load.sessions_per_second = before.sessions_per_second;
    return true;
  });
  for (std::size_t i = 0; i < s.groups.size(); ++i) {
    steps.emplace_back([i](Scenario& x) {
      EngineGroup fresh;
      fresh.count = x.groups[i].count;
      fresh.dispatch = x.groups[i].dispatch;
      x.groups[i] = fresh;
      return true;
    });
  }
  return steps;
}

// As long as one of them helps: less of everything.
std::vector<Step> cuts(const Scenario& s) {
  std::vector<Step> steps;
  steps.emplace_back([](Scenario& x) {
    x.load.requests /= 2;
    return x.load.requests >= 1;
  });
  for (std::size_t n = s.faults.size(); n > 0; n /= 2) {
    for (std::size_t from = 0; from < s.faults.size(); from += n) {
      steps.push_back(without(&Scenario::faults, from, n, 0));
    }
  }
  for (std::size_t i = 0; i < s.groups.size(); ++i) {
    steps.push_back(without(&Scenario::groups, i, 1, 1));
    steps.emplace_back([i](Scenario& x) {
      if (i >= x.groups.size() || x.groups[i].count <= 1) return false;
      x.groups[i].count /= 2;
      return true;
    });
  }
  return steps;
}

}  // namespace

Scenario fuzz_scenario(std::uint64_t seed) {
  Scenario s = random_scenario(seed, kRequests);
  Rng rng(seed, "fuzz");
  if (rng.chance(0.5)) {
    const std::int64_t kept = s.config.decisions_kept;
    s.config = flow::config_of(spec::random(rng).gateway);
    s.config.decisions_kept = kept;  // memory, which a thousand worlds would need a thousand times
    // A healed engine that is kept out for an hour does not serve before.
    s.config.recovery.ejection = std::min<Duration>(s.config.recovery.ejection, kEjection);
    // Told that an answer is longer than an engine's memory, it rightly waits for a larger one.
    const perf::OutputLengthsConfig fresh;
    s.config.lengths.prior_median_tokens = fresh.prior_median_tokens;
    s.config.lengths.prior_spread = fresh.prior_spread;
  }
  const double healed = kHealed * load_seconds(s);
  for (Fault& fault : s.faults) {
    if (fault.kind == Fault::Kind::Drain) continue;
    const double at = kHealed * to_seconds(fault.at - Instant{});
    fault.at = Instant{} + from_seconds(at);
    const double longest = std::max(0.1, healed - at);
    fault.lasts = from_seconds(std::clamp(to_seconds(fault.lasts), 0.0, longest));
  }
  return s;
}

FuzzVerdict judge_fuzz(const Scenario& scenario) {
  FuzzVerdict verdict;
  const Report report = run(scenario);
  verdict.scenario_hours = hours(scenario, report);
  if (!report.violations.empty()) {
    verdict.violation = report.violations.front();
    return verdict;
  }
  const double seconds = load_seconds(scenario);
  if (scenario.faults.empty() || can_storm(scenario)) return verdict;
  if (!heals_by(scenario, kHealed * seconds)) return verdict;
  Scenario calm = scenario;
  calm.faults.clear();
  calm.check = calm.replay = false;
  const Report baseline = run(calm);
  verdict.scenario_hours += hours(calm, baseline);
  // Sessions may go on for longer than they come; who stays broken is so to the end.
  const Duration from = from_seconds(kShows * seconds);
  const Duration until = std::max(from_seconds(seconds), baseline.elapsed);
  const Bucket now = report.series.between(from, until);
  const Bucket without = baseline.series.between(from, until);
  // Beyond capacity who is answered is a matter of luck, with faults and without.
  if (static_cast<double>(without.answered) < kKeepsUp * static_cast<double>(without.arrived)) {
    return verdict;
  }
  // What was refused meanwhile is not asked again: no more is wanted than came.
  const std::int64_t wanted = std::min(now.arrived, without.answered);
  if (wanted >= kEnough && to_seconds(until - from) >= kLongEnough &&
      static_cast<double>(now.answered) < kConverged * static_cast<double>(wanted)) {
    verdict.violation = "not converged: " + std::to_string(now.answered) + " answers between " +
                        std::to_string(to_seconds(from)) + " s and " +
                        std::to_string(to_seconds(until)) + " s, long after the last fault, of " +
                        std::to_string(wanted) + " that are given without faults";
  }
  return verdict;
}

Scenario shrink(Scenario scenario, const std::function<bool(const Scenario&)>& breaks, int tries) {
  const auto take = [&](const Step& step) {
    Scenario next = scenario;
    if (tries <= 0 || !step(next)) return false;
    --tries;
    if (!breaks(next)) return false;
    scenario = std::move(next);
    return true;
  };
  for (const Step& step : plainer(scenario)) take(step);
  for (bool smaller = true; smaller && tries > 0;) {
    smaller = false;
    for (const Step& step : cuts(scenario)) smaller |= take(step);
  }
  return scenario;
}

}  // namespace signalbox::sim
