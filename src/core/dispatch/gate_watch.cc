// SPDX-License-Identifier: Apache-2.0
// Pairs of first tokens are counted by how far apart they came. Without a barrier they are spread
// evenly; with one, nearly all of those that are close came at one moment.
#include "core/dispatch/gate_watch.h"

#include <algorithm>
#include <cmath>

namespace signalbox::dispatch {
namespace {

constexpr Duration kTogether = std::chrono::milliseconds(10);
constexpr Duration kApart = std::chrono::milliseconds(60);
constexpr double kWindows = 5;          // of kTogether between the two
constexpr double kDueApart = 0.05;      // s
constexpr double kShareDueApart = 0.1;  // of a pass
constexpr double kPairs = 24;           // before a verdict
constexpr double kPairsKept = 512;
constexpr double kDensity = 4;          // so much oftener at one moment than at any other
constexpr double kWeight = 0.1;         // of the newest pass
constexpr std::size_t kLast = 64;

void learn(double& mean, double value) {
  mean = mean > 0 ? mean + kWeight * (value - mean) : value;
}

}  // namespace

void GateWatch::first_token(std::uint32_t instance, std::uint32_t rank, Instant came,
                            Instant alone, Instant now) {
  if (instance >= engines_.size()) engines_.resize(instance + 1);
  Engine& engine = engines_[instance];
  const Token token{now, came, alone, rank};
  compare(engine, token);
  if (!engine.together.empty() && now - engine.together.back().at > kTogether) close(engine);
  if (engine.together.size() < kLast) engine.together.push_back(token);
  if (engine.last.size() == kLast) engine.last.erase(engine.last.begin());
  engine.last.push_back(token);
}

void GateWatch::compare(const Engine& engine, const Token& token) {
  const double apart = std::max(kDueApart, kShareDueApart * pass_);
  for (auto other = engine.last.rbegin(); other != engine.last.rend(); ++other) {
    const Duration gap = token.at - other->at;
    if (gap > kApart) break;
    if (other->rank == token.rank) continue;
    if (std::abs(to_seconds(token.alone - other->alone)) < apart) continue;
    (gap <= kTogether ? near_ : far_) += 1;
  }
  if (near_ + far_ < kPairsKept) return;
  near_ /= 2;
  far_ /= 2;
}

// The pass began when the one before had ended, or when the first of these came.
void GateWatch::close(Engine& engine) {
  const Instant end = engine.together.front().at;
  const auto first = std::ranges::min_element(engine.together, {}, &Token::came);
  if (engine.begun) {
    ++passes_;
    const Instant begin = std::max(engine.ended, first->came);
    learn(pass_, to_seconds(end - begin));
    learn(cycle_, to_seconds(end - engine.ended));
    double waited = 0;
    for (const Token& t : engine.together) waited += std::max(0.0, to_seconds(begin - t.came));
    learn(wait_, waited / static_cast<double>(engine.together.size()));
  }
  engine.begun = true;
  engine.ended = end;
  engine.together.clear();
}

Barrier GateWatch::barrier() const {
  if (near_ + far_ < kPairs) return Barrier::Unknown;
  return near_ * kWindows > kDensity * std::max(1.0, far_) ? Barrier::Yes : Barrier::No;
}

}  // namespace signalbox::dispatch
