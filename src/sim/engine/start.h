// SPDX-License-Identifier: Apache-2.0
// How an engine comes up: stage after stage, each with a time of its own. Pure.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "base/describe.h"
#include "base/rng.h"
#include "base/time.h"

namespace signalbox::truth {

enum class Stage : std::uint8_t { Provision, Pull, Load, Init, Compile, WarmUp };
inline constexpr std::array kStages = {Stage::Provision, Stage::Pull,    Stage::Load,
                                       Stage::Init,      Stage::Compile, Stage::WarmUp};

// Means; all zero: an engine is there at once. Measured ones are in data/truth/coldstart.csv.
struct StartTimes {
  Duration provision{};  // of a node
  Duration pull{};       // of the image and the weights
  Duration load{};       // of the weights into the GPU
  Duration init{};       // of the process and its ranks
  Duration compile{};    // of kernels and graphs, without a cache
  Duration warm_up{};    // until the first request runs at speed
  Duration wake{};       // of an engine that sleeps: its weights come back from host memory
  double compile_cached = 0.2;  // of `compile`, where the node has done it before
  double spread = 0.2;          // relative deviation of each
};

template <typename Visitor>
void describe(Visitor& v, StartTimes& c) {
  v(c.provision, "provision", "Of a node.", Range{0, 1e5});
  v(c.pull, "pull", "Of the image and the weights.", Range{0, 1e5});
  v(c.load, "load", "Of the weights into the GPU.", Range{0, 1e5});
  v(c.init, "init", "Of the process and its ranks.", Range{0, 1e5});
  v(c.compile, "compile", "Of kernels and graphs, on a node that never did it.", Range{0, 1e5});
  v(c.warm_up, "warm_up", "Until it runs at speed.", Range{0, 1e5});
  v(c.wake, "wake", "Of an engine that sleeps.", Range{0, 1e5});
  v(c.compile_cached, "compile_cached", "Share of `compile` on a node that did it before.",
    Range{0, 1});
  v(c.spread, "spread", "Relative deviation of each time.", Range{0, 2});
}

// What is there already.
enum class StartFrom : std::uint8_t {
  Nothing,  // every stage
  Node,     // the node has image, weights and compiled kernels: the process starts anew
};

// How long each stage takes this time, in the order of kStages; a mean of zero stays zero.
using StageTimes = std::array<Duration, kStages.size()>;
StageTimes draw_start(const StartTimes& means, StartFrom from, Rng& rng);
Duration draw_wake(const StartTimes& means, Rng& rng);
Duration total(const StageTimes& times);
// The stage that lasts at `since` the beginning; the last one when all are over.
Stage stage_at(const StageTimes& times, Duration since);

}  // namespace signalbox::truth
