// SPDX-License-Identifier: Apache-2.0
// Rows of requests to lines of a trace; pools to groups of engines; failed looks to faults.
#include "sim/recorded.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/histogram.h"
#include "core/flow/config_of.h"

namespace signalbox::sim {
namespace {

constexpr std::int64_t kBlockTokens = 512;    // of the trace's form
constexpr double kBytesPerToken = 4;          // where no answer tells
constexpr std::int64_t kTokensMax = 10'000'000;
constexpr std::int64_t kKvUnknown = 1'000'000;
constexpr int kSlotsUnknown = 256;
constexpr double kDistortionLeast = 0.02, kDistortionMost = 0.5;

bool generates(model::Api api) {
  return api != model::Api::Embeddings && api != model::Api::CountTokens;
}

// Of every part of a prompt's beginning a number that equal beginnings share.
class BlockIds {
 public:
  std::int64_t of(std::uint64_t hash, std::int64_t block) {
    return ids_.try_emplace({hash, block}, static_cast<std::int64_t>(ids_.size()) + 1)
        .first->second;
  }

 private:
  std::map<std::pair<std::uint64_t, std::int64_t>, std::int64_t> ids_;
};

double mean(double sum, double count) { return count > 0 ? sum / count : 0; }

}  // namespace

void RecordedRun::applied(const flow::Setup& setup, Instant now) {
  fleet_ = setup.fleet;
  config_ = setup.config;
  last_ = now;
}

void RecordedRun::handled(const model::Event& event, Instant now) {
  last_ = std::max(last_, now);
  const auto row = [&](model::RequestId id) -> Row* {
    const auto at = open_.find(id);
    return at == open_.end() ? nullptr : &rows_[at->second];
  };
  if (const auto* arrived = std::get_if<model::RequestArrived>(&event)) {
    open_[arrived->request] = rows_.size();
    rows_.push_back({*arrived, now, {}, {}, {}, {}, 0});
  } else if (const auto* gone = std::get_if<model::ClientGone>(&event)) {
    if (Row* r = row(gone->request)) r->left = now;
  } else if (const auto* first = std::get_if<model::FirstToken>(&event)) {
    if (Row* r = row(first->request)) r->first_token = now;
  } else if (const auto* ended = std::get_if<model::AttemptEnded>(&event)) {
    take(*ended, now);
  } else if (const auto* seen = std::get_if<model::EndpointObserved>(&event)) {
    Engine& engine = engines_[seen->endpoint];
    engine.seen = true;
    engine.kv_tokens = std::max(engine.kv_tokens, seen->state.kv_capacity_tokens);
    engine.slots = std::max(engine.slots, seen->state.slots);
    if (engine.gone) outages_.push_back({seen->endpoint, *engine.gone, now});
    engine.gone.reset();
  } else if (const auto* lost = std::get_if<model::EndpointUnreachable>(&event)) {
    Engine& engine = engines_[lost->endpoint];
    if (engine.seen && lost->no_connection && !engine.gone) engine.gone = now;
  }
}

void RecordedRun::take(const model::AttemptEnded& event, Instant now) {
  const auto at = open_.find(event.request);
  if (at == open_.end()) return;
  Row& row = rows_[at->second];
  row.tokens = std::max(row.tokens, event.tokens);
  if (event.client_left) row.left = row.left.value_or(now);
  if (event.result != model::AttemptResult::Ok) return;
  row.usage = event.usage;
  if (!row.left) row.completed = now;
}

// The first target of its route.
model::ModelId RecordedRun::model_of(const Row& row) const {
  for (const model::Route& route : fleet_->routes) {
    if (route.id == row.arrived.route && !route.targets.empty()) return route.targets[0].model;
  }
  return {};
}

model::ModelId RecordedRun::busiest() const {
  std::map<model::ModelId, std::int64_t> asked;
  for (const Row& row : rows_) {
    if (generates(row.arrived.api)) ++asked[model_of(row)];
  }
  asked.erase(model::ModelId{});
  const auto most = std::ranges::max_element(
      asked, {}, [](const auto& entry) { return entry.second; });
  return most == asked.end() ? model::ModelId{} : most->first;
}

Result<Recording> RecordedRun::finish(const flow::Flow& core, const std::string& trace_file) const {
  if (!fleet_) return invalid("the log has no configuration, so nobody could be served.");
  const model::ModelId model = busiest();
  if (!model) return invalid("the log has no request that asks for an answer.");
  Recording out;
  std::vector<const Row*> rows;
  std::int64_t others = 0, several = 0;
  for (const Row& row : rows_) {
    if (!generates(row.arrived.api) || model_of(row) != model) {
      ++others;
      continue;
    }
    rows.push_back(&row);
    several += row.arrived.choices > 1 ? 1 : 0;
  }
  if (others > 0) {
    out.notes.push_back(std::to_string(others) + " requests for other models, for embeddings or "
                                                 "for counts are left out.");
  }
  if (several > 0) {
    out.notes.push_back(std::to_string(several) +
                        " requests that asked for several answers are played as one answer each.");
  }
  out.form.load.trace.emplace();
  out.form.load.trace->format = TraceFormat::Mooncake;
  out.form.load.trace->file = trace_file;
  add_load(rows, out);
  add_fleet(core, model, out);
  out.form.gateway.gateway = flow::gateway_of(config_);
  out.form.gateway.limits.limits = out.form.gateway.gateway.limits;
  out.form.world.scenario.check = true;
  out.form.world.scenario.replay = false;
  return out;
}

void RecordedRun::add_load(const std::vector<const Row*>& rows, Recording& out) const {
  double told_bytes = 0, told_tokens = 0, answers = 0, answer_tokens = 0;
  for (const Row* row : rows) {
    if (row->usage.prompt_tokens > 0 && row->arrived.prompt.bytes > 0) {
      told_bytes += static_cast<double>(row->arrived.prompt.bytes);
      told_tokens += static_cast<double>(row->usage.prompt_tokens);
    }
    if (row->completed && row->usage.completion_tokens > 0) {
      answers += 1;
      answer_tokens += static_cast<double>(row->usage.completion_tokens);
    }
  }
  const double bytes_per_token = told_tokens > 0 ? told_bytes / told_tokens : kBytesPerToken;
  const double answer = std::max(1.0, mean(answer_tokens, answers));
  const Instant start = rows.front()->at;
  Histogram ttft, e2e;
  double prompt_tokens = 0, cached_tokens = 0, leavers = 0, patience = 0, plain = 0;
  std::int64_t guessed = 0;
  BlockIds ids;
  for (const Row* row : rows) {
    const model::Prompt& prompt = row->arrived.prompt;
    const auto tokens = std::clamp<std::int64_t>(
        std::llround(static_cast<double>(prompt.bytes) / bytes_per_token), 1, kTokensMax);
    // Of an answer that nobody saw to its end only the mean of the others is known.
    std::int64_t output = row->usage.completion_tokens;
    if (output <= 0 && row->completed) output = row->tokens;
    if (output <= 0) {
      output = std::llround(answer);
      ++guessed;
    }
    const auto at = std::chrono::duration_cast<std::chrono::milliseconds>(row->at - start).count();
    out.trace += "{\"timestamp\": " + std::to_string(at) +
                 ", \"input_length\": " + std::to_string(tokens) +
                 ", \"output_length\": " + std::to_string(std::min(output, kTokensMax)) +
                 ", \"hash_ids\": [";
    for (std::int64_t block = 0; block * kBlockTokens < tokens; ++block) {
      const double end = static_cast<double>((block + 1) * kBlockTokens) * bytes_per_token;
      const auto cut = std::ranges::find_if(prompt.chain, [&](const model::PromptNode& node) {
        return static_cast<double>(node.bytes) >= std::min(end, static_cast<double>(prompt.bytes));
      });
      // What no cut covers is nobody else's.
      const std::uint64_t hash = cut != prompt.chain.end() ? cut->hash
                                                           : row->arrived.request.value();
      if (block > 0) out.trace += ", ";
      out.trace += std::to_string(ids.of(hash, block));
    }
    out.trace += "]}\n";
    plain += row->arrived.stream ? 0 : 1;
    if (row->left) {
      leavers += 1;
      patience += to_seconds(*row->left - row->at);
    }
    if (!row->completed) continue;
    ++out.figures.completed;
    e2e.record(to_seconds(*row->completed - row->at));
    if (row->first_token) ttft.record(to_seconds(*row->first_token - row->at));
    if (row->usage.cached_tokens >= 0 && row->usage.prompt_tokens > 0) {
      prompt_tokens += static_cast<double>(row->usage.prompt_tokens);
      cached_tokens += static_cast<double>(row->usage.cached_tokens);
    }
  }
  const auto count = static_cast<double>(rows.size());
  out.figures.requests = static_cast<std::int64_t>(rows.size());
  out.figures.ttft_mean_s = ttft.mean();
  out.figures.ttft_p99_s = ttft.quantile(0.99);
  out.figures.e2e_mean_s = e2e.mean();
  out.figures.e2e_p99_s = e2e.quantile(0.99);
  out.figures.cache_hit = mean(cached_tokens, prompt_tokens);
  Load& load = out.form.load.load;
  load.requests = static_cast<std::int64_t>(rows.size());
  load.leavers = leavers / count;
  if (leavers > 0) load.patience = from_seconds(patience / leavers);
  load.plain = plain / count;
  load.capped = 0;
  load.sdk.retries_max = 0;  // who asked again is in the record
  if (guessed > 0) {
    out.notes.push_back(std::to_string(guessed) +
                        " answers had no known length and are played with the mean of the "
                        "others, " + std::to_string(std::llround(answer)) + " tokens.");
  }
}

// Pools of the model as groups of engines that are as fast as the core believed at the end.
void RecordedRun::add_fleet(const flow::Flow& core, model::ModelId model, Recording& out) const {
  std::vector<model::EndpointId> numbers;
  std::string name;
  for (const model::Model& m : fleet_->models) {
    if (m.id == model) name = m.name;
  }
  for (const model::Pool& pool : fleet_->pools) {
    if (pool.model != model) continue;
    GroupForm form;
    form.name = pool.name;
    EngineGroup& group = form.group;
    group.model = name;
    group.count = 0;
    group.usd_per_hour = pool.usd_per_hour;
    group.concurrency_max = pool.concurrency_max;
    group.dispatch = pool.dispatch;
    std::int64_t kv = 0;
    int slots = 0;
    for (const model::Endpoint& endpoint : fleet_->endpoints) {
      if (endpoint.pool != pool.id) continue;
      ++group.count;
      numbers.push_back(endpoint.id);
      const auto engine = engines_.find(endpoint.id);
      if (engine == engines_.end()) continue;
      kv = std::max(kv, engine->second.kv_tokens);
      slots = std::max(slots, engine->second.slots);
    }
    if (group.count == 0) continue;
    const flow::PoolView view = core.pool(pool.id);
    const perf::Coefficients& k = view.coefficients;
    group.steps = Steps{};
    group.steps->prefill_ms = std::clamp(k.a * 1e3, 1e-3, 1e5);
    group.steps->prefill_token_ms = std::clamp(k.b * 1e3, 0.0, 1e3);
    group.steps->prefill_square_ms = std::clamp(k.c * 1e3, 0.0, 1.0);
    group.steps->decode_ms = std::clamp(k.d * 1e3, 1e-3, 1e5);
    group.steps->decode_sequence_ms = std::clamp(k.e1 * 1e3, 0.0, 1e3);
    group.steps->decode_token_ms = std::clamp(k.f * 1e3, 0.0, 1.0);
    group.spec.kv_tokens = kv > 0 ? kv : k.kv_capacity_tokens > 0 ? k.kv_capacity_tokens
                                                                 : kKvUnknown;
    group.spec.sequences_max = slots > 0 ? slots : k.sequences_max > 0 ? k.sequences_max
                                                                       : kSlotsUnknown;
    group.spec.step_tokens_max = std::max<std::int64_t>(1, k.chunk_tokens);
    // Host time is in what was observed already. How far the engines may be from what is believed
    // of them, each seed draws.
    group.spec.host_step_us = group.spec.host_sequence_us = group.spec.host_admission_us = 0;
    group.spec.distortion = std::clamp(std::max(view.sigma.prefill, view.sigma.decode),
                                       kDistortionLeast, kDistortionMost);
    out.form.fleet.push_back(std::move(form));
  }
  add_outages(numbers, rows_.front().at, out);
}

// A time in which nobody accepted a connection is a death and a return.
void RecordedRun::add_outages(const std::vector<model::EndpointId>& engines, Instant start,
                              Recording& out) const {
  std::vector<Outage> all = outages_;
  for (const auto& [endpoint, engine] : engines_) {
    if (engine.gone) all.push_back({endpoint, *engine.gone, last_});
  }
  for (const Outage& outage : all) {
    const auto at = std::ranges::find(engines, outage.endpoint);
    if (at == engines.end() || outage.until <= start) continue;
    FaultForm fault;
    fault.kind = Fault::Kind::Die;
    fault.at = std::max(Duration::zero(), outage.from - start);
    fault.lasts = outage.until - start - fault.at;
    fault.engines = {static_cast<int>(at - engines.begin())};
    out.form.faults.push_back(std::move(fault));
  }
  std::ranges::sort(out.form.faults, {}, &FaultForm::at);
}

}  // namespace signalbox::sim
