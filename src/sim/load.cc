// SPDX-License-Identifier: Apache-2.0
// Draws sessions and turns.
#include "sim/load.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace signalbox::sim {

LoadSource::LoadSource(const Load& load, std::uint64_t seed, std::uint32_t routes,
                       std::vector<std::uint64_t> loras, std::int64_t context)
    : load_(load), rng_(seed, "load"), routes_(routes), loras_(std::move(loras)),
      context_(context) {
  double sum = 0;
  for (int i = 0; i < std::max(1, load.system_prompts); ++i) {
    systems_.push_back({mixed(seed, ++contents_), draw(load.system)});
    sum += std::pow(i + 1, -load.zipf);
    popularity_.push_back(sum);
  }
}

std::int64_t LoadSource::draw(const Lengths& lengths) {
  const double tokens = lengths.median * std::exp(lengths.spread * rng_.normal());
  return std::clamp(static_cast<std::int64_t>(std::min(tokens, 1e9)), lengths.least, lengths.most);
}

std::size_t LoadSource::popular() {
  const double at = rng_.uniform() * popularity_.back();
  const auto found = std::lower_bound(popularity_.begin(), popularity_.end(), at);
  return static_cast<std::size_t>(found - popularity_.begin());
}

Duration LoadSource::until_next_session() {
  return from_seconds(rng_.exponential(1 / load_.sessions_per_second));
}

bool LoadSource::goes_on() { return rng_.chance(load_.follow_up); }

Duration LoadSource::thinks() {
  return from_seconds(rng_.exponential(std::max(1e-3, to_seconds(load_.think))));
}

Ask LoadSource::first_turn() {
  Session session;
  if (load_.tenants > 0) {
    session.tenant =
        model::TenantId(1 + static_cast<std::uint32_t>(
                                rng_.below(static_cast<std::uint64_t>(load_.tenants))));
  }
  session.route = model::RouteId(1 + static_cast<std::uint32_t>(rng_.below(routes_)));
  if (!loras_.empty() && rng_.chance(load_.adapters)) {
    session.lora = loras_[rng_.below(loras_.size())];
  }
  session.history.push_back(systems_[popular()]);
  return turn(std::move(session));
}

Ask LoadSource::next_turn(const Ask& done) {
  Session session = done.session;
  session.history.push_back({mixed(7, ++contents_), done.answer_tokens});
  return turn(std::move(session));
}

Ask LoadSource::turn(Session session) {
  session.history.push_back({mixed(11, ++contents_), draw(load_.turn)});
  ++session.turns;
  Ask ask;
  ask.answer_tokens = draw(load_.answer);
  if (rng_.chance(load_.capped)) {
    ask.output_max = std::max<std::int64_t>(1, draw(load_.answer));
    ask.answer_tokens = std::min(ask.answer_tokens, ask.output_max);
  }
  ask.stream = !rng_.chance(load_.plain);
  if (rng_.chance(load_.leavers)) {
    ask.leaves_after = from_seconds(rng_.exponential(to_seconds(load_.patience)));
  }
  // What outgrows the context begins anew with its latest message.
  const std::int64_t room = context_ - ask.answer_tokens;
  if (tokens_of(session.history) > room) {
    session.history = {session.history.front(), session.history.back()};
    for (Span& span : session.history) {
      if (span.tokens <= room / 2) continue;
      span = {mixed(13, ++contents_), std::max<std::int64_t>(1, room / 2)};
    }
  }
  ask.session = std::move(session);
  return ask;
}

}  // namespace signalbox::sim
