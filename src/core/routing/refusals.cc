// SPDX-License-Identifier: Apache-2.0
// Who may serve a request at all: buckets by their facts, endpoints by their standing. Counts come
// from what State keeps, so that no endpoint is touched.
#include <algorithm>

#include "core/routing/search.h"

namespace signalbox::routing {

bool Search::admits(const State::Bucket& bucket, Reason& why) const {
  const EndpointFacts& facts = bucket.facts;
  if (facts.role != model::Role::Both && facts.role != query_.role) {
    why = Reason::Role;
  } else if (!facts.tenants.empty() &&
             !std::ranges::binary_search(facts.tenants, query_.tenant)) {
    why = Reason::Tenant;
  } else if (query_.lora != 0 && !std::ranges::binary_search(facts.loras, query_.lora)) {
    why = Reason::Lora;
  } else {
    return true;
  }
  return false;
}

void Search::collect_buckets() {
  for (const model::PoolId pool : query_.pools) {
    if (pool.value() >= state_.buckets_of_pool_.size()) continue;
    for (const std::uint32_t number : state_.buckets_of_pool_[pool.value()]) {
      count_refusals(*state_.buckets_[number]);
    }
  }
  for (const model::EndpointId id : query_.tried) {
    Reason why{};
    if (state_.contains(id) && !state_.feasible(id, query_, &why) && why == Reason::AlreadyTried) {
      refuse(why, 1, id);
    }
  }
}

void Search::count_refusals(State::Bucket& bucket) {
  Reason why{};
  if (!admits(bucket, why)) {
    model::EndpointId any;
    for (int s = 0; s < kStandings && !any; ++s) any = example(bucket, static_cast<Standing>(s));
    refuse(why, bucket.members, any);
    return;
  }
  const auto standing = [&](Standing s, Reason reason) {
    const int count = bucket.standing[static_cast<std::size_t>(s)];
    if (count > 0) refuse(reason, count, example(bucket, s));
  };
  standing(Standing::OtherModel, Reason::OtherModel);
  standing(Standing::Draining, Reason::Draining);
  standing(Standing::Asleep, Reason::Asleep);
  standing(Standing::Ejected, Reason::Ejected);
  standing(Standing::EjectedFull, Reason::Ejected);
  standing(Standing::Full, Reason::Full);
  for (const auto& [fit, fits] : bucket.fits) {
    if (fit >= need_) break;
    if (fits.open > 0) refuse(Reason::Memory, fits.open, fits.example);
  }
}

void Search::refuse(Reason reason, int count, model::EndpointId example) {
  Refusals& refusals = decision_.refusals[static_cast<std::size_t>(reason)];
  refusals.count += static_cast<std::uint32_t>(count);
  if (!refusals.example) refusals.example = example;
}

// The endpoint that came last into this standing, if it is still there.
model::EndpointId Search::example(const State::Bucket& bucket, Standing standing) const {
  const model::EndpointId id = bucket.example[static_cast<std::size_t>(standing)];
  const Seat* seat = state_.find(id);
  const bool there = seat != nullptr && seat->standing == standing &&
                     state_.buckets_[seat->bucket].get() == &bucket;
  return there ? id : model::EndpointId{};
}

// Whether a place that could take the request is only full: among those not tried, or, once these
// are used up, among all.
bool Search::any_full(Tried tried) const {
  int full = 0;
  for (const model::PoolId pool : query_.pools) {
    if (pool.value() >= state_.buckets_of_pool_.size()) continue;
    for (const std::uint32_t number : state_.buckets_of_pool_[pool.value()]) {
      const State::Bucket& bucket = *state_.buckets_[number];
      Reason why{};
      if (!admits(bucket, why)) continue;
      for (auto it = bucket.fits.lower_bound(need_); it != bucket.fits.end(); ++it) {
        full += it->second.full;
      }
      if (tried == Tried::Allow && query_.ejected_allowed) {
        full += bucket.standing[static_cast<std::size_t>(Standing::EjectedFull)];
      }
    }
  }
  if (tried == Tried::Allow) return full > 0;
  for (const model::EndpointId id : query_.tried) {
    const Seat* seat = state_.find(id);
    if (seat == nullptr || seat->standing != Standing::Full || need_ > seat->fit) continue;
    Reason why{};
    const bool asked =
        std::ranges::find(query_.pools, seat->facts.pool) != query_.pools.end();
    if (asked && admits(*state_.buckets_[seat->bucket], why)) --full;
  }
  return full > 0;
}

bool Search::was_tried(model::EndpointId id) const {
  return std::ranges::find(query_.tried, id) != query_.tried.end();
}

}  // namespace signalbox::routing
