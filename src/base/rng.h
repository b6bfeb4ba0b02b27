// SPDX-License-Identifier: Apache-2.0
// Random numbers as an argument. One seed per run, one stream per name, so that a new draw in one
// place never shifts the draws of another. xoshiro256** (Blackman, Vigna 2018), seeded by
// splitmix64; the draws are our own so that every standard library gives the same run.
#pragma once

#include <cstdint>
#include <string_view>

namespace signalbox {

class Rng {
 public:
  Rng(std::uint64_t seed, std::string_view stream);

  std::uint64_t next();
  // Uniform in [0, bound). bound must be > 0.
  std::uint64_t below(std::uint64_t bound);
  // Uniform in [0, 1).
  double uniform();
  double uniform(double low, double high) { return low + (high - low) * uniform(); }
  // Exponential with the given mean (> 0).
  double exponential(double mean);
  // Normal, mean 0, deviation 1 (Marsaglia's polar method).
  double normal();
  bool chance(double probability) { return uniform() < probability; }

 private:
  std::uint64_t state_[4];
  double spare_ = 0;
  bool has_spare_ = false;
};

}  // namespace signalbox
