// SPDX-License-Identifier: Apache-2.0
// What is known of an endpoint at one moment, as the score and the search want it.
#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "core/routing/state.h"

namespace signalbox::routing {
namespace {

constexpr float kUnlimited = 1e12f;
// Overlap and release shrink with every token; writing them a little low saves most updates.
constexpr float kHeadroom = 0.98f;

// What waits for its first token on an endpoint.
struct Backlog {
  float rest = 0;       // seconds behind the head
  double drain = -1e18; // when all of it is through
  float tokens_rest = 0;
  double head_end = -1e18;
  double head_seconds = 0;
  double head_tokens = 0;
};

Backlog backlog(const Seat& seat, const InFlight& records) {
  Backlog b;
  Duration rest = seat.prefill_queued + seat.others_prefill;
  std::int64_t tokens = seat.tokens_queued + seat.others_tokens;
  if (seat.waiting.head != InFlight::kNone) {
    const InFlight::Record& head = records.at(seat.waiting.head);
    rest -= head.prefill;
    tokens -= head.fresh;
    b.head_seconds = to_seconds(head.prefill);
    b.head_tokens = static_cast<double>(head.fresh);
    b.head_end = to_seconds(seat.head_since.time_since_epoch()) + b.head_seconds;
    b.drain = b.head_end + to_seconds(rest);
  }
  b.rest = static_cast<float>(to_seconds(rest));
  b.tokens_rest = static_cast<float>(tokens);
  return b;
}

float wait_at(const Backlog& b, double now) {
  return at_least(b.rest, static_cast<float>(b.drain - now));
}

float queued_at(const Backlog& b, double now) {
  if (b.head_seconds <= 0 || b.head_end <= now) return b.tokens_rest;
  const double left = std::min(1.0, (b.head_end - now) / b.head_seconds);
  return b.tokens_rest + static_cast<float>(b.head_tokens * left);
}

float seconds_of(Duration limit) {
  return limit == Duration::max() ? 0 : static_cast<float>(std::max(1e-9, to_seconds(limit)));
}

float prompt_of(const Query& query) {
  return static_cast<float>(std::max<std::int64_t>(1, query.prompt_tokens));
}

float output_of(const Query& query) {
  return static_cast<float>(
      std::clamp<std::int64_t>(std::llround(query.output_mean), 1, 10'000'000));
}

int decoding_of(const Seat& s) {
  return std::max(0, s.in_flight() - s.queued - s.others_waiting);
}

double step_now_of(const Seat& s) {
  const auto kv = static_cast<double>(s.kv() - s.kv_queued);
  return s.facts.coefficients.step(decoding_of(s), kv);
}

// D. Where the fixed cost of a prefill is not known, that of a step stands for it.
double pass_of(const Seat& s) {
  const double fixed = s.facts.coefficients.a;
  return decoding_of(s) == 0 && fixed > 0 ? fixed : step_now_of(s);
}

// H: who comes while others decode comes, in the mean, in the middle of a step.
double pass_wait_of(const Seat& s) { return decoding_of(s) > 0 ? step_now_of(s) / 2 : 0; }

float kv_used_coordinate(const Seat& s) {
  const std::int64_t capacity = s.capacity();
  return capacity > 0 ? static_cast<float>(s.kv_used() - capacity) : -kUnlimited;
}

// Seconds until one more token of KV is free: completions are taken as evenly spread over twice
// the mean remaining output.
float release_of(const Seat& s, double step_now) {
  const std::int64_t used = s.kv_used();
  if (used <= 0 || s.in_flight() == 0 || s.capacity() <= 0) return 0;
  const auto left =
      static_cast<double>(s.remaining.total() + s.others * s.others_remaining) / s.in_flight();
  return static_cast<float>(2 * left * step_now / static_cast<double>(used));
}

float overlap_of(const Seat& s, std::int64_t output) {
  return static_cast<float>(s.remaining.overlap(output) +
                            s.others * std::min(s.others_remaining, output));
}

}  // namespace

float State::uncertainty(const Seat& seat, Instant now) const {
  double sum = seat.facts.uncertainty;
  if (!seat.seen) {
    sum += config_.stale_uncertainty;
  } else {
    const double ages = to_seconds(now - seat.seen_at) / to_seconds(config_.stale_after);
    if (ages > 1) sum += config_.stale_uncertainty * ages;
  }
  return static_cast<float>(std::min(sum, std::max(config_.uncertainty_max,
                                                   seat.facts.uncertainty)));
}

Inputs State::load_inputs(const Seat& s, Instant now, float decay, float need,
                          std::int64_t output) const {
  const double at = to_seconds(now.time_since_epoch());
  const perf::Coefficients& c = s.facts.coefficients;
  const Backlog b = backlog(s, records_);
  Inputs in;
  in.endpoint = s.id;
  in.reach = static_cast<float>(s.facts.reach_seconds);
  in.wait = wait_at(b, at);
  in.queued = queued_at(b, at);
  in.kv_wait = at_least(need + kv_used_coordinate(s), 0.0f) * release_of(s, step_now_of(s));
  in.in_flight = static_cast<float>(s.in_flight());
  in.decoding = static_cast<float>(decoding_of(s));
  in.kv = static_cast<float>(s.kv());
  in.pass = static_cast<float>(pass_of(s));
  in.pass_wait = static_cast<float>(pass_wait_of(s));
  in.arrivals = s.arrivals * decay;
  in.overlap = overlap_of(s, output);
  in.usd_per_second = static_cast<float>(s.facts.usd_per_second);
  in.uncertainty = uncertainty(s, now);
  in.b = static_cast<float>(c.b);
  in.c = static_cast<float>(c.c);
  in.d = static_cast<float>(c.d);
  in.e1 = static_cast<float>(c.e1);
  in.e2 = static_cast<float>(c.e2);
  in.f = static_cast<float>(c.f);
  in.batch_break = static_cast<float>(c.batch_break);
  in.chunk = static_cast<float>(c.chunk_tokens);
  return in;
}

Point State::point(const Seat& s) const {
  if (s.standing == Standing::Full || s.standing == Standing::EjectedFull) return closed_point();
  const Inputs in = load_inputs(s, Instant{}, 1, 0, 1);
  const Place<float> p = place(Ask{}, in);
  const Backlog b = backlog(s, records_);
  Point point;
  point.drain = b.drain;
  point.at[kWaitRest] = b.rest;
  point.at[kReach] = p.reach;
  point.at[kPrefillB] = p.b;
  point.at[kPrefillC] = p.c;
  point.at[kQueued] = b.tokens_rest;
  point.at[kPassPerToken] = p.pass_per_token;
  point.at[kPass] = p.pass;
  point.at[kKvUsed] = kv_used_coordinate(s);
  point.at[kRelease] = release_of(s, step_now_of(s)) * kHeadroom;
  point.at[kFit] = -s.fit;
  point.at[kStepNext] = p.step_next;
  point.at[kStepE] = p.e;
  point.at[kStepF] = p.f;
  point.at[kInFlight] = p.in_flight;
  point.at[kArrivals] = s.arrivals;
  point.at[kOverlapShort] = overlap_of(s, kShortOutput) * kHeadroom;
  point.at[kOverlapLong] = overlap_of(s, kLongOutput) * kHeadroom;
  return point;
}

// The share of arrivals that we see is taken to be our share of what is in flight.
double State::others_ratio(const ModelLoad& load) const {
  if (load.ours <= 0) return 1;
  return std::min(8.0, static_cast<double>(load.ours + load.others) /
                           static_cast<double>(load.ours));
}

float State::decay(const Query& query, double growth) const {
  const ModelLoad* load = model_load(query.model);
  return static_cast<float>((load != nullptr ? others_ratio(*load) : 1) / growth);
}

Ask State::ask(const Query& query, Instant now) const { return ask(query, growth(now)); }

Ask State::ask(const Query& query, double growth) const {
  Ask ask;
  ask.prompt = prompt_of(query);
  ask.output = output_of(query);
  ask.latency_weight = static_cast<float>(query.latency_weight);
  ask.seconds_per_usd = static_cast<float>(query.seconds_per_usd);
  ask.ttft_max = seconds_of(query.ttft);
  ask.tpot_max = seconds_of(query.tpot);
  ask.e2e_max = seconds_of(query.e2e);
  ask.tie_band = static_cast<float>(config_.tie_band);
  const ModelLoad* load = model_load(query.model);
  if (load == nullptr || load->members == 0) return ask;
  const double engines = std::max(1, load->serving);
  const double mean = static_cast<double>(load->ours + load->others) / engines;
  const double busy = std::clamp(load->work / growth / engines * others_ratio(*load), 0.0,
                                 config_.utilisation_max);
  ask.shadow = static_cast<float>(mean * busy / (1 - busy));
  ask.mean_b = static_cast<float>(std::max(0.0, load->sum_b / load->members));
  ask.mean_c = static_cast<float>(std::max(0.0, load->sum_c / load->members));
  return ask;
}

Inputs State::inputs(model::EndpointId id, const Query& query, Instant now) const {
  const Seat* seat = find(id);
  CHECK(seat != nullptr);
  const double grown = growth(now);
  const Ask ask = this->ask(query, grown);
  Inputs in = load_inputs(*seat, now, decay(query, grown), ask.prompt + ask.output,
                          static_cast<std::int64_t>(ask.output));
  if (query.match != nullptr) in.cached = static_cast<float>(query.match->cached_tokens(id));
  in.cached = std::clamp(in.cached, 0.0f, ask.prompt - 1);
  return in;
}

float State::need(const Query& query) {
  return prompt_of(query) + output_of(query);
}

bool State::feasible(model::EndpointId id, const Query& query, Reason* why) const {
  const Seat* seat = find(id);
  CHECK(seat != nullptr);
  const auto refuse = [why](Reason reason) {
    if (why != nullptr) *why = reason;
    return false;
  };
  const EndpointFacts& facts = seat->facts;
  if (facts.role != model::Role::Both && facts.role != query.role) return refuse(Reason::Role);
  if (!facts.tenants.empty() && !std::ranges::binary_search(facts.tenants, query.tenant)) {
    return refuse(Reason::Tenant);
  }
  if (query.lora != 0 && !std::ranges::binary_search(facts.loras, query.lora)) {
    return refuse(Reason::Lora);
  }
  switch (seat->standing) {
    case Standing::OtherModel: return refuse(Reason::OtherModel);
    case Standing::Draining: return refuse(Reason::Draining);
    case Standing::Asleep: return refuse(Reason::Asleep);
    case Standing::Ejected:
    case Standing::EjectedFull: return refuse(Reason::Ejected);
    case Standing::Full: return refuse(Reason::Full);
    case Standing::Open: break;
  }
  if (need(query) > seat->fit) return refuse(Reason::Memory);
  if (std::ranges::find(query.tried, id) != query.tried.end()) {
    return refuse(Reason::AlreadyTried);
  }
  return true;
}

Load State::load(model::EndpointId id, Instant now) const {
  const Seat* seat = find(id);
  CHECK(seat != nullptr);
  Load load;
  load.ours = seat->ours;
  load.queued = seat->queued;
  load.held = seat->held_count;
  load.others = seat->others;
  load.limit = limit(*seat);
  load.kv_tokens = seat->kv();
  load.kv_used = seat->kv_used();
  load.kv_capacity = seat->capacity();
  load.wait_seconds = static_cast<double>(
      wait_at(backlog(*seat, records_), to_seconds(now.time_since_epoch())));
  load.step_seconds = step_now_of(*seat);
  load.arrivals = static_cast<double>(seat->arrivals) / growth(now);
  load.uncertainty = static_cast<double>(uncertainty(*seat, now));
  return load;
}

}  // namespace signalbox::routing
