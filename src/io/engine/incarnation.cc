// SPDX-License-Identifier: Apache-2.0
// A new start time, or a counter that fell; refusals only where no start time is told.
#include "io/engine/incarnation.h"

#include <cmath>

namespace signalbox::engine {
namespace {

bool sane(double start_time) { return start_time > 1e9 && start_time < 4.1e9; }

bool fell(std::int64_t before, std::int64_t now) { return before >= 0 && now >= 0 && now < before; }

}  // namespace

std::uint64_t IncarnationTracker::observe(double start_time, const model::EngineState& whole) {
  bool told = sane(start_time);
  // Start times come in whole seconds: two lives within one are told apart by their counters.
  bool restarted = fell(prompt_tokens_, whole.prompt_tokens_total) ||
                   fell(generated_tokens_, whole.generated_tokens_total);
  if (told && start_time_ >= 0) {
    restarted = restarted || std::fabs(start_time - start_time_) > 1;
  } else {
    restarted = restarted || refused_;
  }
  if (life_ == 0 || restarted) ++life_;
  refused_ = false;
  if (told) start_time_ = start_time;
  if (restarted || whole.prompt_tokens_total >= 0) prompt_tokens_ = whole.prompt_tokens_total;
  if (restarted || whole.generated_tokens_total >= 0) {
    generated_tokens_ = whole.generated_tokens_total;
  }
  return life_;
}

}  // namespace signalbox::engine
