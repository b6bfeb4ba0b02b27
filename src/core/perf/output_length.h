// SPDX-License-Identifier: Apache-2.0
// How many tokens an answer will have: decayed quantiles per tenant × model × route, each level
// shrunk towards the next wider one (model × route, model, everything). Pure; bounded number of
// keys, the longest unused are forgotten; under its owner's lock.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/bounded.h"
#include "base/decayed_quantile.h"
#include "base/describe.h"
#include "core/model/ids.h"

namespace signalbox::perf {

struct LengthKey {
  model::TenantId tenant;
  model::ModelId model;
  model::RouteId route;
};

struct OutputLengthsConfig {
  int keys_max = 4096;
  double half_life_answers = 500;
  double shrink_answers = 20;
  double prior_median_tokens = 150;
  double prior_spread = 1.2;
};

template <typename Visitor>
void describe(Visitor& v, OutputLengthsConfig& c) {
  v(c.keys_max, "keys_max", "Tenant, model and route combinations that are remembered.",
    Range{1, 1e6});
  v(c.half_life_answers, "half_life_answers",
    "Answers after which an answer counts half.", Range{1, 1e6});
  v(c.shrink_answers, "shrink_answers",
    "Answers of its own that a combination needs to outweigh the wider level.", Range{0, 1e6});
  v(c.prior_median_tokens, "prior_median_tokens",
    "Median output tokens assumed before any answer was seen.", Range{1, 1e6});
  v(c.prior_spread, "prior_spread",
    "Standard deviation of the logarithm of output tokens, before any was seen.", Range{0.1, 3});
}

class OutputLengths {
 public:
  using Config = OutputLengthsConfig;

  explicit OutputLengths(Config config = {});

  // One finished answer of `tokens` output tokens that might have had `max_tokens` (0: no limit).
  // An answer that was cut there tells that it would have been longer, not how long it is: else
  // a few short caps would teach that all answers are short.
  void observe(const LengthKey& key, std::int64_t tokens, std::int64_t max_tokens = 0);

  // Tokens of an answer that may have at most `max_tokens` (0: no limit); at least 1.
  struct Estimate {
    double mean = 0;
    double sd = 0;
    double p50 = 0;
    double p90 = 0;
  };
  Estimate estimate(const LengthKey& key, std::int64_t max_tokens) const;

  std::size_t keys() const { return levels_.size(); }

 private:
  struct LevelKey {
    std::uint32_t tenant = 0;
    std::uint32_t model = 0;
    std::uint32_t route = 0;
    std::uint8_t level = 0;
    bool operator==(const LevelKey&) const = default;
  };
  struct Hash {
    std::size_t operator()(const LevelKey& k) const noexcept;
  };
  double trust(const DecayedQuantile& sketch) const;
  double uncut(const LengthKey& key, double cap) const;
  static constexpr int kLevels = 4;  // everything, model, model × route, all three
  static LevelKey key_at(const LengthKey& key, int level);

  Config config_;
  LruMap<LevelKey, DecayedQuantile, Hash> levels_;
};

}  // namespace signalbox::perf
