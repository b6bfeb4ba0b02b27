// SPDX-License-Identifier: Apache-2.0
// How many tokens a stretch of content makes: tokens per byte, learnt per model and script from
// what the engines' usage reports, as an exponentially decayed mean over bytes, from a prior on.
// Under the core's lock.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "core/model/ids.h"
#include "core/model/prompt.h"

namespace signalbox::cache {

class TokenEstimate {
 public:
  // Estimated tokens of `bytes` bytes (>= 0), rounded.
  std::int64_t tokens(model::ModelId model, model::Script script, std::int64_t bytes) const;
  double per_byte(model::ModelId model, model::Script script) const;
  // A prompt of `bytes` was `tokens` long. Non-positive figures and ratios outside
  // [1/64, 4] (images, empty prompts) teach nothing.
  void observe(model::ModelId model, model::Script script, std::int64_t bytes, std::int64_t tokens);

 private:
  struct Mean {
    double bytes = 0;
    double tokens = 0;
  };
  using Scripts = std::array<Mean, 4>;

  std::vector<Scripts> models_;  // by id; models are declared, so the table is bounded
};

}  // namespace signalbox::cache
