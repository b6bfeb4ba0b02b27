// SPDX-License-Identifier: Apache-2.0
// A decayed ratio of sums per (model, script).
#include "core/cache/token_estimate.h"

#include <cmath>

namespace signalbox::cache {
namespace {

// Tokens per byte of current vocabularies (100k and more entries) on typical text.
constexpr std::array<double, 4> kPrior = {0.24, 0.25, 0.32, 0.30};
constexpr double kPriorBytes = 2048;  // the prior weighs as much as this many bytes of evidence
constexpr double kKeep = 0.98;        // memory of about fifty prompts

std::size_t row(model::Script script) { return static_cast<std::size_t>(script); }

}  // namespace

double TokenEstimate::per_byte(model::ModelId model, model::Script script) const {
  const double prior = kPrior[row(script)];
  if (model.value() >= models_.size()) return prior;
  const Mean& mean = models_[model.value()][row(script)];
  return (mean.tokens + prior * kPriorBytes) / (mean.bytes + kPriorBytes);
}

std::int64_t TokenEstimate::tokens(model::ModelId model, model::Script script,
                                   std::int64_t bytes) const {
  return std::llround(per_byte(model, script) * static_cast<double>(bytes));
}

void TokenEstimate::observe(model::ModelId model, model::Script script, std::int64_t bytes,
                            std::int64_t tokens) {
  if (bytes <= 0 || tokens <= 0) return;
  const double b = static_cast<double>(bytes);
  const double t = static_cast<double>(tokens);
  if (t > 4 * b || 64 * t < b) return;
  if (model.value() >= models_.size()) models_.resize(model.value() + 1);
  Mean& mean = models_[model.value()][row(script)];
  mean.bytes = mean.bytes * kKeep + b;
  mean.tokens = mean.tokens * kKeep + t;
}

}  // namespace signalbox::cache
