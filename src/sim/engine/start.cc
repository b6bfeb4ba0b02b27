// SPDX-License-Identifier: Apache-2.0
// Draws the stages of a start.
#include "sim/engine/start.h"

#include <cmath>

namespace signalbox::truth {
namespace {

// Lognormal with that mean: never negative, and the slow tail is the longer one.
Duration drawn(Duration mean, double spread, Rng& rng) {
  const double factor = std::exp(spread * rng.normal() - spread * spread / 2);
  return from_seconds(to_seconds(mean) * factor);
}

}  // namespace

StageTimes draw_start(const StartTimes& m, StartFrom from, Rng& rng) {
  const bool anew = from == StartFrom::Nothing;
  const Duration none = Duration::zero();
  const Duration compile = anew ? m.compile : from_seconds(to_seconds(m.compile) *
                                                           m.compile_cached);
  const StageTimes means = {anew ? m.provision : none, anew ? m.pull : none, m.load, m.init,
                            compile, m.warm_up};
  StageTimes times{};
  for (std::size_t i = 0; i < means.size(); ++i) times[i] = drawn(means[i], m.spread, rng);
  return times;
}

Duration draw_wake(const StartTimes& m, Rng& rng) { return drawn(m.wake, m.spread, rng); }

Duration total(const StageTimes& times) {
  Duration sum{};
  for (const Duration time : times) sum += time;
  return sum;
}

Stage stage_at(const StageTimes& times, Duration since) {
  for (std::size_t i = 0; i + 1 < times.size(); ++i) {
    if (since < times[i]) return kStages[i];
    since -= times[i];
  }
  return kStages.back();
}

}  // namespace signalbox::truth
