// SPDX-License-Identifier: Apache-2.0
// Membership: endpoints, their buckets, and where each stands in the search.
#include "core/routing/state.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace signalbox::routing {
namespace {

constexpr std::uint32_t kNone = InFlight::kNone;
constexpr float kUnlimited = 1e12f;

bool same_bucket(const EndpointFacts& a, const EndpointFacts& b) {
  return a.pool == b.pool && a.model == b.model && a.accelerator == b.accelerator &&
         a.role == b.role && a.usd_per_second == b.usd_per_second && a.loras == b.loras &&
         a.tenants == b.tenants;
}

float fit(const Seat& seat) {
  const std::int64_t context =
      seat.context_told > 0 ? seat.context_told : seat.facts.context_tokens;
  const std::int64_t capacity = seat.capacity();
  const float by_context = context > 0 ? static_cast<float>(context) : kUnlimited;
  const float by_memory = capacity > 0 ? static_cast<float>(capacity) : kUnlimited;
  // Whoever serves at all takes a token and answers with one, whatever it tells of its memory.
  return std::max(2.0f, std::min(by_context, by_memory));
}

std::size_t slot(Standing standing) { return static_cast<std::size_t>(standing); }

}  // namespace

std::int64_t Seat::capacity() const {
  return capacity_told > 0 ? capacity_told : facts.coefficients.kv_capacity_tokens;
}

// The gauge knows of shared prefixes, our sum does not; what came and went since then is added.
std::int64_t Seat::kv_used() const {
  const std::int64_t used = gauge_kv >= 0 ? gauge_kv + kv_ours - kv_ours_at_gauge : kv();
  const std::int64_t least = std::max<std::int64_t>(0, used);
  return capacity() > 0 ? std::min(least, capacity()) : least;
}

State::State(const Config& config) : config_(config), records_(config.in_flight_max) {
  moved_ = [this](std::uint32_t owner, std::uint32_t position) {
    spots_[owner].position = position;
  };
}

const Seat* State::find(model::EndpointId id) const {
  if (id.value() >= seat_of_.size() || seat_of_[id.value()] == kNone) return nullptr;
  return &seats_[seat_of_[id.value()]];
}

Seat* State::find(model::EndpointId id) {
  return const_cast<Seat*>(std::as_const(*this).find(id));
}

State::ModelLoad& State::model_load(model::ModelId id) {
  if (id.value() >= models_.size()) models_.resize(id.value() + 1);
  return models_[id.value()];
}

const State::ModelLoad* State::model_load(model::ModelId id) const {
  return id.value() < models_.size() ? &models_[id.value()] : nullptr;
}

std::int64_t State::in_flight(model::ModelId model) const {
  const ModelLoad* load = model_load(model);
  return load == nullptr ? 0 : load->ours;
}

void State::add(model::EndpointId id, const EndpointFacts& facts) {
  CHECK(id);
  Seat* seat = find(id);
  if (seat != nullptr) {
    leave(*seat);
  } else {
    std::uint32_t number = static_cast<std::uint32_t>(seats_.size());
    if (free_seats_.empty()) {
      seats_.emplace_back();
      spots_.emplace_back();
    } else {
      number = free_seats_.back();
      free_seats_.pop_back();
    }
    if (id.value() >= seat_of_.size()) seat_of_.resize(id.value() + 1, kNone);
    seat_of_[id.value()] = number;
    seat = &seats_[number];
    seat->id = id;
    ++endpoints_;
  }
  seat->facts = facts;
  std::ranges::sort(seat->facts.loras);
  std::ranges::sort(seat->facts.tenants);
  join(*seat);
}

void State::remove(model::EndpointId id) {
  Seat* seat = find(id);
  if (seat == nullptr) return;
  while (seat->held.head != kNone) forget(*seat, seat->held.head);
  while (seat->waiting.head != kNone) forget(*seat, seat->waiting.head);
  while (seat->decoding.head != kNone) forget(*seat, seat->decoding.head);
  leave(*seat);
  free_seats_.push_back(seat_of_[id.value()]);
  seat_of_[id.value()] = kNone;
  *seat = Seat{};
  --endpoints_;
}

void State::set_coefficients(model::EndpointId id, const perf::Coefficients& c,
                             double uncertainty) {
  Seat* seat = find(id);
  if (seat == nullptr) return;
  ModelLoad& load = model_load(seat->facts.model);
  load.sum_b += c.b - seat->facts.coefficients.b;
  load.sum_c += c.c - seat->facts.coefficients.c;
  seat->facts.coefficients = c;
  seat->facts.uncertainty = uncertainty;
  settle(*seat);
}

void State::set_limit(model::EndpointId id, int concurrency_limit) {
  Seat* seat = find(id);
  if (seat == nullptr) return;
  seat->facts.concurrency_limit = concurrency_limit;
  settle(*seat);
}

void State::set_reach(model::EndpointId id, double reach_seconds) {
  Seat* seat = find(id);
  if (seat == nullptr) return;
  seat->facts.reach_seconds = reach_seconds;
  settle(*seat);
}

void State::set_availability(model::EndpointId id, Availability availability) {
  Seat* seat = find(id);
  if (seat == nullptr) return;
  seat->availability = availability;
  settle(*seat);
}

std::uint32_t State::bucket_for(const EndpointFacts& facts) {
  const std::size_t pool = facts.pool.value();
  if (pool >= buckets_of_pool_.size()) buckets_of_pool_.resize(pool + 1);
  for (const std::uint32_t number : buckets_of_pool_[pool]) {
    if (same_bucket(buckets_[number]->facts, facts)) return number;
  }
  std::uint32_t number = 0;
  while (number < buckets_.size() && buckets_[number] != nullptr) ++number;
  if (number == buckets_.size()) buckets_.emplace_back();
  buckets_[number] = std::make_unique<Bucket>();
  buckets_[number]->facts = facts;
  buckets_of_pool_[pool].push_back(number);
  return number;
}

void State::join(Seat& seat) {
  seat.bucket = bucket_for(seat.facts);
  seat.fit = fit(seat);
  seat.standing = standing(seat);
  Bucket& bucket = *buckets_[seat.bucket];
  ++bucket.members;
  ModelLoad& load = model_load(seat.facts.model);
  ++load.members;
  load.ours += seat.ours;
  load.others += seat.others;
  load.sum_b += seat.facts.coefficients.b;
  load.sum_c += seat.facts.coefficients.c;
  count(seat, seat.standing, 1);
  put_in(seat);
}

void State::leave(Seat& seat) {
  take_out(seat);
  count(seat, seat.standing, -1);
  ModelLoad& load = model_load(seat.facts.model);
  load.ours -= seat.ours;
  load.others -= seat.others;
  load.sum_b -= seat.facts.coefficients.b;
  load.sum_c -= seat.facts.coefficients.c;
  if (--load.members == 0) load.sum_b = load.sum_c = load.work = 0;
  if (--buckets_[seat.bucket]->members > 0) return;
  std::erase(buckets_of_pool_[seat.facts.pool.value()], seat.bucket);
  buckets_[seat.bucket].reset();
}

Index* State::index_of(Bucket& bucket, Standing standing) {
  switch (standing) {
    case Standing::Open:
    case Standing::Full: return &bucket.open;
    case Standing::Ejected:
    case Standing::EjectedFull: return &bucket.ejected;
    case Standing::Asleep:
    case Standing::Draining:
    case Standing::OtherModel: return nullptr;
  }
  return nullptr;
}

void State::put_in(Seat& seat) {
  const auto number = static_cast<std::uint32_t>(&seat - seats_.data());
  spots_[number].index = index_of(*buckets_[seat.bucket], seat.standing);
  if (spots_[number].index != nullptr) {
    spots_[number].index->insert(number, point(seat), moved_);
  }
}

void State::take_out(Seat& seat) {
  Spot& spot = spots_[static_cast<std::size_t>(&seat - seats_.data())];
  if (spot.index != nullptr) spot.index->remove(spot.position, moved_);
  spot.index = nullptr;
}

// Books the seat under `standing` (by = 1) or out of it (by = -1), with its present fit.
void State::count(Seat& seat, Standing standing, int by) {
  Bucket& bucket = *buckets_[seat.bucket];
  bucket.standing[slot(standing)] += by;
  if (by > 0) bucket.example[slot(standing)] = seat.id;
  if (index_of(bucket, standing) != nullptr) model_load(seat.facts.model).serving += by;
  if (standing != Standing::Open && standing != Standing::Full) return;
  Bucket::Fits& fits = bucket.fits[seat.fit];
  (standing == Standing::Open ? fits.open : fits.full) += by;
  if (by > 0) fits.example = seat.id;
  if (fits.open == 0 && fits.full == 0) bucket.fits.erase(seat.fit);
}

int State::limit(const Seat& seat) const {
  return seat.facts.concurrency_limit > 0 ? seat.facts.concurrency_limit
                                          : config_.concurrency_default;
}

// Others' requests count towards the limit, but an endpoint with none of ours is never full: a
// stale gauge may slow dispatch down, it does not stop it.
Standing State::standing(const Seat& seat) const {
  if (!seat.facts.serves) return Standing::OtherModel;
  if (seat.availability == Availability::Draining) return Standing::Draining;
  if (seat.availability == Availability::Asleep || seat.engine_asleep) return Standing::Asleep;
  const bool full = seat.ours > 0 && seat.in_flight() >= limit(seat);
  if (seat.availability == Availability::Ejected) {
    return full ? Standing::EjectedFull : Standing::Ejected;
  }
  return full ? Standing::Full : Standing::Open;
}

// After any change to a seat: brings its standing, the counts and its index up to date.
void State::settle(Seat& seat) {
  const Standing next = standing(seat);
  const float next_fit = fit(seat);
  const Spot& spot = spots_[static_cast<std::size_t>(&seat - seats_.data())];
  if (next != seat.standing || next_fit != seat.fit) {
    const bool stays = index_of(*buckets_[seat.bucket], next) == spot.index;
    count(seat, seat.standing, -1);
    if (!stays) take_out(seat);
    seat.standing = next;
    seat.fit = next_fit;
    count(seat, next, 1);
    if (!stays) return put_in(seat);
  }
  if (spot.index != nullptr) spot.index->update(spot.position, point(seat), moved_);
}

}  // namespace signalbox::routing
