// SPDX-License-Identifier: Apache-2.0
// The end of a run: the last checks, and the report.
#include <algorithm>
#include <cstdio>

#include "sim/world.h"

namespace signalbox::sim {

EngineSums World::sums() const {
  EngineSums sums;
  for (const Host& host : hosts_) {
    const truth::Counters present = host.engine->counters();
    for (const truth::Counters* c : {&host.past, &present}) {
      sums.prompt_tokens += c->prompt_tokens;
      sums.cached_tokens += c->cached_tokens;
      sums.generated_tokens += c->generated_tokens;
      sums.preemptions += c->preemptions;
      sums.drafted_tokens += c->drafted_tokens;
      sums.accepted_tokens += c->accepted_tokens;
      sums.host_tokens += c->host_tokens;
      sums.lora_loads += c->lora_loads;
      sums.finished += c->finished;
      sums.busy_seconds += c->busy_seconds;
      sums.busy_usd += c->busy_seconds * scenario_.groups[host.group].usd_per_hour / 3600;
    }
  }
  return sums;
}

// Accounts for the fleet as it was since the last time; before it changes.
void World::pay() {
  const double seconds = to_seconds(now_ - paid_until_);
  paid_until_ = now_;
  for (const Host& host : hosts_) {
    if (!host.declared) continue;
    report_.engine_seconds += seconds;
    report_.usd += seconds / 3600 * scenario_.groups[host.group].usd_per_hour * price_factor_;
  }
}

// Changes nothing in the world; the next one is a bucket later.
void World::take_look() {
  catch_up_all();
  Moment moment;
  moment.queued = static_cast<double>(decider_->totals().waiting);
  moment.starting = static_cast<double>(starting_);
  double kv = 0;
  double kv_used = 0;
  for (const Host& host : hosts_) {
    if (!host.declared || host.down) continue;
    const truth::Gauges gauges = host.engine->gauges();
    moment.instances += 1;
    moment.running += static_cast<double>(gauges.running);
    moment.waiting += static_cast<double>(gauges.waiting);
    kv += static_cast<double>(gauges.kv_blocks);
    kv_used += static_cast<double>(gauges.kv_blocks_used);
  }
  if (kv > 0) moment.kv = kv_used / kv;
  report_.series.look(now_, moment);
  at(now_ + report_.series.width(), Due::Look);
}

// INV-4: what the answers told is what the engines counted; they count broken answers and others'
// requests as well.
void World::check_engines(const EngineSums& sums) {
  const Books& books = checker_.books();
  const bool whole = std::all_of(scenario_.groups.begin(), scenario_.groups.end(),
                                 [](const EngineGroup& g) {
                                   return g.dialect.usage && g.dialect.cached;
                                 });
  const std::uint64_t completed = report_.count(model::Outcome::Completed);
  const bool nothing_else = whole && scenario_.load.others_per_second <= 0 &&
                            completed == report_.arrived && books.attempts() == completed;
  const auto agrees = [&](std::int64_t booked, std::int64_t counted) {
    return nothing_else ? booked == counted : booked <= counted;
  };
  if (!agrees(books.prompt_tokens(), sums.prompt_tokens) ||
      !agrees(books.cached_tokens(), sums.cached_tokens) ||
      !agrees(books.completion_tokens(), sums.generated_tokens)) {
    checker_.violated("INV-4: the engines counted other tokens than their answers told", now_);
  }
}

Report World::report() {
  pay();
  report_.seed = scenario_.seed;
  report_.elapsed = now_ - Instant{};
  report_.measured = std::max(Duration::zero(), report_.elapsed - scenario_.load.warm_up);
  const flow::Totals totals = decider_->totals();
  report_.arrived = totals.arrived;
  report_.outcomes = totals.outcomes;
  report_.retries = totals.retries;
  report_.stale_events = totals.stale_events;
  report_.engines = sums();
  report_.events = recorder_.events();
  report_.digest = recorder_.digest();
  const flow::Flow* core = decider_->flow();
  for (std::size_t i = 1; core != nullptr && i <= scenario_.groups.size(); ++i) {
    const perf::Accuracy* accuracy =
        core->accuracy(model::PoolId(static_cast<std::uint32_t>(i)));
    if (accuracy == nullptr) continue;
    report_.ttft_error = std::max(report_.ttft_error,
                                  accuracy->summary(perf::Quantity::Ttft).median_error);
  }
  if (checker_.clean() && scenario_.check) {
    checker_.finish(*decider_, now_);
    check_engines(report_.engines);
  }
  if (checker_.clean() && core != nullptr && scenario_.replay) {
    if (const auto differs = recorder_.replay()) {
      checker_.violated("INV-11: replayed, " + *differs, now_);
    }
  }
  if (!checker_.clean()) report_.violations.push_back(checker_.violation());
  return report_;
}

std::string text(const Report& r) {
  std::string out;
  char line[256];
  std::snprintf(line, sizeof line, "seed %llu: %llu requests in %.1f s, %llu good (%.2f/s)\n",
                static_cast<unsigned long long>(r.seed),
                static_cast<unsigned long long>(r.arrived), to_seconds(r.elapsed),
                static_cast<unsigned long long>(r.good), r.goodput());
  out += line;
  std::snprintf(line, sizeof line,
                "ttft s: p50 %.3f p90 %.3f p99 %.3f   e2e s: p50 %.3f p90 %.3f p99 %.3f\n",
                r.ttft.quantile(0.5), r.ttft.quantile(0.9), r.ttft.quantile(0.99),
                r.e2e.quantile(0.5), r.e2e.quantile(0.9), r.e2e.quantile(0.99));
  out += line;
  std::snprintf(line, sizeof line,
                "cache hit %.1f %%, preemptions %lld, retries %llu, ttft error %.1f %%\n",
                100 * r.cache_hit(), static_cast<long long>(r.engines.preemptions),
                static_cast<unsigned long long>(r.retries), 100 * r.ttft_error);
  out += line;
  std::snprintf(line, sizeof line,
                "tasks %llu, done %llu, good %llu; e2e s: p50 %.3f p99 %.3f; client retries %llu, "
                "timeouts %llu, pressed %llu\n",
                static_cast<unsigned long long>(r.tasks),
                static_cast<unsigned long long>(r.tasks_done),
                static_cast<unsigned long long>(r.tasks_good), r.task_e2e.quantile(0.5),
                r.task_e2e.quantile(0.99), static_cast<unsigned long long>(r.client_retries),
                static_cast<unsigned long long>(r.client_timeouts),
                static_cast<unsigned long long>(r.pressed));
  out += line;
  for (const model::Outcome outcome : model::kOutcomes) {
    if (r.count(outcome) == 0) continue;
    out += std::string(model::label(outcome)) + " " + std::to_string(r.count(outcome)) + "  ";
  }
  out += "\n";
  for (const std::string& violation : r.violations) out += violation + "\n";
  return out;
}

}  // namespace signalbox::sim
