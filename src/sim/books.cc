// SPDX-License-Identifier: Apache-2.0
// Keeps and compares.
#include "sim/books.h"

#include <algorithm>
#include <cmath>

namespace signalbox::sim {
namespace {

constexpr std::int64_t kHour = 3'600'000'000'000;
constexpr Duration kRounded = std::chrono::microseconds(10);  // of shares, a nanosecond each

std::string differs(const char* what, double ours, double theirs) {
  return std::string("INV-4: ") + what + ": expected " + std::to_string(ours) +
         ", the ledger has " + std::to_string(theirs);
}

void add(ledger::Totals& sum, const ledger::Totals& part) {
  for (std::size_t i = 0; i < sum.outcomes.size(); ++i) sum.outcomes[i] += part.outcomes[i];
  sum.attempts += part.attempts;
  sum.prompt_tokens += part.prompt_tokens;
  sum.cached_tokens += part.cached_tokens;
  sum.completion_tokens += part.completion_tokens;
  sum.busy += part.busy;
  sum.idle += part.idle;
}

bool same_work(const ledger::Totals& a, const ledger::Totals& b) {
  return a.attempts == b.attempts && a.prompt_tokens == b.prompt_tokens &&
         a.cached_tokens == b.cached_tokens && a.completion_tokens == b.completion_tokens &&
         a.busy == b.busy;
}

}  // namespace

void Books::Line::advance(Instant now) {
  elapsed += now - at;
  money += static_cast<Wide>(hourly) * (now - at).count();
  at = now;
}

void Books::applied(const model::Fleet& fleet, Instant now) {
  for (const model::Tenant& t : fleet.tenants) tenants_ = std::max(tenants_, t.id.value());
  for (const model::Model& m : fleet.models) models_ = std::max(models_, m.id.value());
  for (const model::Pool& p : fleet.pools) pools_ = std::max(pools_, p.id.value());
  for (auto& [id, line] : lines_) {
    const model::EndpointId endpoint = id;
    line.removed = std::none_of(fleet.endpoints.begin(), fleet.endpoints.end(),
                                [&](const model::Endpoint& e) { return e.id == endpoint; });
  }
  for (const model::Endpoint& endpoint : fleet.endpoints) {
    const auto pool = std::find_if(fleet.pools.begin(), fleet.pools.end(),
                                   [&](const model::Pool& p) { return p.id == endpoint.pool; });
    Line& line = lines_.try_emplace(endpoint.id, Line{now, 0, {}, 0, {}, false}).first->second;
    line.advance(now);
    line.hourly = std::llround(pool->usd_per_hour * 1e9);
  }
  for (auto at = lines_.begin(); at != lines_.end();) {
    const auto line = at++;
    if (line->second.removed && line->second.running.empty()) close(line->first, now);
  }
}

// Paid for until now.
void Books::close(model::EndpointId endpoint, Instant now) {
  Line& line = lines_.at(endpoint);
  line.advance(now);
  gone_elapsed_ += line.elapsed;
  gone_nanodollars_ += line.money / kHour;
  lines_.erase(endpoint);
}

void Books::started(model::EndpointId endpoint, Instant now) {
  lines_.at(endpoint).running.insert(now);
}

void Books::ended(model::EndpointId endpoint, const model::Usage& usage, Instant since,
                  Instant now) {
  ++attempts_;
  prompt_tokens_ += std::max<std::int64_t>(0, usage.prompt_tokens);
  cached_tokens_ += std::max<std::int64_t>(0, usage.cached_tokens);
  completion_tokens_ += std::max<std::int64_t>(0, usage.completion_tokens);
  Line& line = lines_.at(endpoint);
  line.running.erase(line.running.find(since));
  if (line.running.empty() && line.removed) close(endpoint, now);
}

std::optional<std::string> Books::compare(const ledger::Ledger& ledger, Instant now) const {
  if (auto wrong = compare_time(ledger, now)) return wrong;
  return compare_sums(ledger);
}

// busy + idle + open = elapsed, and = elapsed × price to the nanodollar per endpoint. What is open
// belongs to those that run, so nothing of it is older than they are.
std::optional<std::string> Books::compare_time(const ledger::Ledger& ledger, Instant now) const {
  ledger::Ledger settled = ledger;
  settled.settle(now);
  Duration elapsed = gone_elapsed_;
  Wide nanodollars = gone_nanodollars_;
  Duration open_at_most{};
  for (auto [id, line] : lines_) {
    line.advance(now);
    if (!line.running.empty()) open_at_most += now - *line.running.begin() + kRounded;
    elapsed += line.elapsed;
    nanodollars += line.money / kHour;
  }
  const ledger::Totals& all = settled.all();
  const ledger::Cost booked = all.busy + all.idle + settled.open();
  if (booked.engine_time != elapsed) {
    return differs("seconds of engines", to_seconds(elapsed), to_seconds(booked.engine_time));
  }
  if (settled.open().engine_time > open_at_most) {
    return differs("seconds of those that run, at most", to_seconds(open_at_most),
                   to_seconds(settled.open().engine_time));
  }
  if (booked.nanodollars != static_cast<std::int64_t>(nanodollars)) {
    return differs("nanodollars", static_cast<double>(nanodollars),
                   static_cast<double>(booked.nanodollars));
  }
  return std::nullopt;
}

std::optional<std::string> Books::compare_sums(const ledger::Ledger& ledger) const {
  const ledger::Totals& all = ledger.all();
  const auto number = [](auto x) { return static_cast<double>(x); };
  if (all.attempts != attempts_) {
    return differs("attempts", number(attempts_), number(all.attempts));
  }
  if (all.prompt_tokens != prompt_tokens_) {
    return differs("prompt tokens", number(prompt_tokens_), number(all.prompt_tokens));
  }
  if (all.cached_tokens != cached_tokens_) {
    return differs("cached tokens", number(cached_tokens_), number(all.cached_tokens));
  }
  if (all.completion_tokens != completion_tokens_) {
    return differs("completion tokens", number(completion_tokens_), number(all.completion_tokens));
  }
  ledger::Totals tenants, models, pools;
  for (std::uint32_t i = 0; i <= tenants_; ++i) add(tenants, ledger.tenant(model::TenantId(i)));
  for (std::uint32_t i = 0; i <= models_; ++i) add(models, ledger.model(model::ModelId(i)));
  for (std::uint32_t i = 0; i <= pools_; ++i) add(pools, ledger.pool(model::PoolId(i)));
  if (!same_work(all, tenants)) return "INV-4: the sum over tenants is not the sum over requests";
  if (!same_work(all, models)) return "INV-4: the sum over models is not the sum over requests";
  if (!same_work(all, pools)) return "INV-4: the sum over pools is not the sum over requests";
  if (all.idle != pools.idle) return "INV-4: idle time over pools is not that over endpoints";
  if (all.outcomes != tenants.outcomes || all.outcomes != models.outcomes) {
    return "INV-4: outcomes over tenants or models are not those over requests";
  }
  return std::nullopt;
}

}  // namespace signalbox::sim
