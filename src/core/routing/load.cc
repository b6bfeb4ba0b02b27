// SPDX-License-Identifier: Apache-2.0
// The load of endpoints: attempts on their way, and what others have in flight.
#include <algorithm>
#include <cmath>
#include <utility>

#include "base/check.h"
#include "core/routing/state.h"

namespace signalbox::routing {
namespace {

constexpr std::uint32_t kNone = InFlight::kNone;
constexpr double kWindowsPerBase = 16;  // e^16 keeps rates within a float's range and precision
constexpr double kSmoothing = 1.0 / 64;
constexpr int kTold = 1'000'000;  // requests that an engine may claim to run, or to let wait

std::int64_t whole_output(double mean) {
  return std::clamp<std::int64_t>(std::llround(mean), 1, 10'000'000);
}

void smooth(double& mean, double value) { mean += kSmoothing * (value - mean); }

}  // namespace

double State::growth(Instant now) const {
  return std::exp(to_seconds(now - base_) / to_seconds(config_.arrivals_window));
}

void State::set_config(const Config& config, Instant now) {
  move_base(now);
  config_ = config;
}

void State::rebase(Instant now) {
  if (to_seconds(now - base_) < kWindowsPerBase * to_seconds(config_.arrivals_window)) return;
  move_base(now);
}

// Rates are kept without their decay since the base time; a new base scales them all alike.
void State::move_base(Instant now) {
  const double factor = 1 / growth(now);
  const auto scale = static_cast<float>(factor);
  for (Seat& seat : seats_) seat.arrivals *= scale;
  for (ModelLoad& load : models_) load.work *= factor;
  for (const auto& bucket : buckets_) {
    if (bucket == nullptr) continue;
    bucket->open.scale_arrivals(scale);
    bucket->ejected.scale_arrivals(scale);
  }
  base_ = now;
}

// What a request of ours adds to an endpoint, sent or held. kNone: the table is full, or knows it.
std::uint32_t State::book(Seat& seat, const RequestKey& key, const Work& work, Instant now) {
  InFlight::Record record;
  record.key = key;
  record.seat = seat_of_[seat.id.value()];
  record.fresh = std::max<std::int64_t>(0, work.fresh_tokens);
  record.cached = std::max<std::int64_t>(0, work.cached_tokens);
  record.output = whole_output(work.output_mean);
  record.plain = work.plain;
  record.prefill = from_seconds(seat.facts.coefficients.prefill_work(
      static_cast<double>(record.fresh), static_cast<double>(record.cached)));
  const std::uint32_t index = records_.insert(record);
  if (index == kNone) return kNone;
  presume(seat, now);
  ++seat.ours;
  ++seat.queued;
  seat.kv_ours += record.kv();
  seat.kv_queued += record.kv();
  seat.tokens_queued += record.fresh;
  seat.prefill_queued += record.prefill;
  seat.remaining.add(record.remaining());
  ++model_load(seat.facts.model).ours;
  return index;
}

bool State::dispatched(model::EndpointId id, const RequestKey& key, const Work& work,
                       Instant now) {
  Seat* seat = find(id);
  if (seat == nullptr) return false;
  const double batch = seat->in_flight();
  const std::uint32_t index = book(*seat, key, work, now);
  if (index == kNone) return false;
  if (seat->waiting.head == kNone) seat->head_since = now;
  seat->waiting.append(records_, index);
  const InFlight::Record& record = records_.at(index);
  seat->plain_waiting += record.plain ? 1 : 0;
  seat->plain_tokens += record.plain ? record.fresh : 0;

  rebase(now);
  const perf::Coefficients& c = seat->facts.coefficients;
  const auto fresh = static_cast<double>(record.fresh);
  const auto cached = static_cast<double>(record.cached);
  const auto output = static_cast<double>(record.output);
  const double prefill = to_seconds(record.prefill);
  const double longer = c.step(batch + 1, fresh + cached + output / 2) - c.step(batch, 0);
  const double arrival = growth(now) / to_seconds(config_.arrivals_window);
  seat->arrivals += static_cast<float>(arrival);
  ModelLoad& load = model_load(seat->facts.model);
  load.work += (prefill + output * longer) * arrival;
  smooth(load.fresh_mean, fresh);
  smooth(load.cached_mean, cached);
  smooth(load.output_mean, output);
  settle(*seat);
  return true;
}

bool State::hold(model::EndpointId id, const RequestKey& key, const Work& work, Instant turn,
                 Instant now) {
  Seat* seat = find(id);
  if (seat == nullptr) return false;
  const std::uint32_t index = book(*seat, key, work, now);
  if (index == kNone) return false;
  InFlight::Record& record = records_.at(index);
  record.held = true;
  record.turn = turn;
  seat->held.insert_by_turn(records_, index);
  ++seat->held_count;
  seat->held_tokens += record.fresh;
  seat->held_kv += record.kv();
  seat->held_prefill += record.prefill;
  settle(*seat);
  return true;
}

RequestKey State::held_front(model::EndpointId id) const {
  const Seat* seat = find(id);
  if (seat == nullptr || seat->held.head == kNone) return {};
  return records_.at(seat->held.head).key;
}

Instant State::held_front_turn(model::EndpointId id) const {
  const Seat* seat = find(id);
  if (seat == nullptr || seat->held.head == kNone) return kNever;
  return records_.at(seat->held.head).turn;
}

Inputs State::without_held(Inputs inputs) const {
  const Seat* seat = find(inputs.endpoint);
  if (seat == nullptr || seat->held_count == 0) return inputs;
  const auto less = [](float& value, double by) {
    value = std::max(0.0f, value - static_cast<float>(by));
  };
  less(inputs.wait, to_seconds(seat->held_prefill));
  less(inputs.queued, static_cast<double>(seat->held_tokens));
  less(inputs.in_flight, seat->held_count);
  less(inputs.kv, static_cast<double>(seat->held_kv));
  return inputs;
}

dispatch::Feed State::feed(model::EndpointId id) const {
  const Seat* seat = find(id);
  if (seat == nullptr) return {};
  dispatch::Feed feed;
  feed.requests = seat->queued - seat->held_count - seat->plain_waiting;
  feed.tokens = seat->tokens_queued - seat->held_tokens - seat->plain_tokens;
  if (seat->waiting.head != kNone && !records_.at(seat->waiting.head).plain) {
    feed.head_tokens = records_.at(seat->waiting.head).fresh;
  }
  feed.chunk_tokens = seat->facts.coefficients.chunk_tokens;
  return feed;
}

bool State::has_room(model::EndpointId id) const {
  const Seat* seat = find(id);
  if (seat == nullptr) return false;
  return seat->ours == seat->held_count || seat->in_flight() - seat->held_count < limit(*seat);
}

bool State::first_token(const RequestKey& key, Instant now) {
  const std::uint32_t index = records_.find(key);
  if (index == kNone || !records_.at(index).queued || records_.at(index).held) return false;
  Seat& seat = seats_[records_.at(index).seat];
  presume(seat, now);
  if (records_.at(index).queued) decodes(seat, index, now);
  seat.sign_at = now;
  settle(seat);
  return true;
}

void State::decodes(Seat& seat, std::uint32_t index, Instant since) {
  InFlight::Record& record = records_.at(index);
  if (seat.waiting.head == index) seat.head_since = since;
  seat.waiting.remove(records_, index);
  seat.decoding.append(records_, index);
  record.queued = false;
  seat.plain_waiting -= record.plain ? 1 : 0;
  seat.plain_tokens -= record.plain ? record.fresh : 0;
  --seat.queued;
  seat.kv_queued -= record.kv();
  seat.tokens_queued -= record.fresh;
  seat.prefill_queued -= record.prefill;
}

void State::presume(Seat& seat, Instant now) {
  while (seat.waiting.head != kNone) {
    const InFlight::Record& head = records_.at(seat.waiting.head);
    const Instant due = seat.head_since + head.prefill;
    if (!head.plain || due > now) return;
    decodes(seat, seat.waiting.head, due);
  }
}

void State::presume(model::EndpointId id, Instant now) {
  Seat* seat = find(id);
  if (seat == nullptr || seat->waiting.head == kNone) return;
  presume(*seat, now);
  settle(*seat);
}

double State::silence(model::EndpointId id, Instant now) const {
  const Seat* seat = find(id);
  if (seat == nullptr || seat->waiting.head == kNone) return 0;
  const InFlight::Record& head = records_.at(seat->waiting.head);
  const Duration late = now - std::max(seat->head_since + head.prefill, seat->sign_at);
  return head.plain || late < head.prefill ? 0 : to_seconds(late);
}

bool State::progress(const RequestKey& key, std::int64_t tokens, Instant now) {
  const std::uint32_t index = records_.find(key);
  if (index == kNone) return false;
  if (grow(index, tokens, now)) settle(seats_[records_.at(index).seat]);
  return true;
}

void State::progress(std::span<const Step> steps, Instant now) {
  for (const Step& step : steps) {
    const std::uint32_t index = records_.find(step.key);
    if (index == kNone || !grow(index, step.tokens, now)) continue;
    const std::uint32_t seat = records_.at(index).seat;
    if (std::exchange(seats_[seat].grown, true)) continue;
    grown_.push_back(seat);
  }
  for (const std::uint32_t seat : grown_) {
    seats_[seat].grown = false;
    settle(seats_[seat]);
  }
  grown_.clear();
}

// False: nothing is new.
bool State::grow(std::uint32_t index, std::int64_t tokens, Instant now) {
  InFlight::Record& record = records_.at(index);
  if (tokens <= record.tokens) return false;  // a digest that was overtaken
  Seat& seat = seats_[record.seat];
  seat.sign_at = now;
  seat.remaining.remove(record.remaining());
  const std::int64_t more = tokens - record.tokens;
  record.tokens = tokens;
  seat.remaining.add(record.remaining());
  seat.kv_ours += more;
  if (record.queued) seat.kv_queued += more;
  return true;
}

bool State::ended(const RequestKey& key, Instant now) {
  const std::uint32_t index = records_.find(key);
  if (index == kNone) return false;
  Seat& seat = seats_[records_.at(index).seat];
  presume(seat, now);
  const bool head = seat.waiting.head == index;
  forget(seat, index);
  if (head) seat.head_since = now;
  settle(seat);
  return true;
}

void State::forget(Seat& seat, std::uint32_t index) {
  const InFlight::Record& record = records_.at(index);
  --seat.ours;
  seat.kv_ours -= record.kv();
  seat.remaining.remove(record.remaining());
  if (record.held) {
    --seat.held_count;
    seat.held_tokens -= record.fresh;
    seat.held_kv -= record.kv();
    seat.held_prefill -= record.prefill;
  }
  if (record.queued && record.plain && !record.held) {
    --seat.plain_waiting;
    seat.plain_tokens -= record.fresh;
  }
  if (record.queued) {
    (record.held ? seat.held : seat.waiting).remove(records_, index);
    --seat.queued;
    seat.kv_queued -= record.kv();
    seat.tokens_queued -= record.fresh;
    seat.prefill_queued -= record.prefill;
  } else {
    seat.decoding.remove(records_, index);
  }
  --model_load(seat.facts.model).ours;
  records_.erase(index);
}

void State::observed(model::EndpointId id, const model::EngineState& engine, Instant now) {
  Seat* seat = find(id);
  if (seat == nullptr) return;
  ModelLoad& load = model_load(seat->facts.model);
  const perf::Coefficients& c = seat->facts.coefficients;
  const bool told = engine.running >= 0 || engine.waiting >= 0;
  // Who has told its load and does not now: what it told holds for a while, and is then nothing.
  if (!told && seat->tells && now - seat->seen_at > config_.stale_after) {
    seat->tells = false;
    load.others -= std::exchange(seat->others, 0);
    seat->others_waiting = 0;
    seat->gauge_kv = -1;
  }
  seat->seen = true;
  if (told || !seat->tells) seat->seen_at = now;
  seat->tells = seat->tells || told;
  seat->engine_asleep = engine.asleep;
  if (engine.kv_capacity_tokens > 0) seat->capacity_told = engine.kv_capacity_tokens;
  if (engine.context_tokens > 0) seat->context_told = engine.context_tokens;

  if (told) {
    // Two gauges whose sum a count does not hold are nonsense; so many are as good as all of them.
    const int there =
        std::clamp(engine.running, 0, kTold) + std::clamp(engine.waiting, 0, kTold);
    load.others -= seat->others;
    seat->others = std::max(0, there - (seat->ours - seat->held_count));
    load.others += seat->others;
    const int queued = seat->queued - seat->held_count;
    seat->others_waiting = std::clamp(std::min(engine.waiting, kTold) - queued, 0, seat->others);
  }
  // Nothing is known of their prompts and outputs: the model's recent means stand in.
  seat->others_remaining = std::max<std::int64_t>(1, whole_output(load.output_mean) / 2);
  seat->others_tokens = seat->others_waiting * std::llround(load.fresh_mean);
  seat->others_prefill = from_seconds(static_cast<double>(seat->others_waiting) *
                                      c.prefill_work(load.fresh_mean, load.cached_mean));
  const std::int64_t capacity = seat->capacity();
  if (engine.kv_usage >= 0 && capacity > 0) {
    seat->gauge_kv = std::llround(engine.kv_usage * static_cast<double>(capacity));
    seat->kv_ours_at_gauge = seat->kv_ours - seat->held_kv;
    const std::int64_t beyond =
        std::max<std::int64_t>(0, seat->gauge_kv - seat->kv_ours_at_gauge);
    seat->others_kv = seat->others > 0 ? beyond : 0;
  } else {
    const double each = load.fresh_mean + load.cached_mean + load.output_mean / 2;
    seat->others_kv = seat->others * std::llround(each);
  }
  settle(*seat);
}

bool State::idle() const {
  if (records_.size() != 0) return false;
  const auto empty = [](const Seat& s) {
    return s.ours == 0 && s.queued == 0 && s.kv_ours == 0 && s.kv_queued == 0 &&
           s.tokens_queued == 0 && s.prefill_queued == Duration::zero() && s.remaining.empty() &&
           s.waiting.head == kNone && s.waiting.tail == kNone && s.decoding.head == kNone &&
           s.decoding.tail == kNone && s.held.head == kNone && s.held.tail == kNone &&
           s.held_count == 0 && s.held_tokens == 0 && s.held_kv == 0 &&
           s.held_prefill == Duration::zero() && s.plain_waiting == 0 && s.plain_tokens == 0;
  };
  return std::ranges::all_of(seats_, empty) &&
         std::ranges::all_of(models_, [](const ModelLoad& load) { return load.ours == 0; });
}

}  // namespace signalbox::routing
