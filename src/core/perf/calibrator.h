// SPDX-License-Identifier: Apache-2.0
// Learns how fast the engines of one pool are: three factors scale the prior (`fixed` scales a,
// `prefill` b and c, `decode` d, e and f), and one factor an endpoint says how it differs from its
// pool. What traffic cannot tell stays as the prior has it. Pure, O(1) an observation, bounded;
// under its owner's lock. The same observations in the same order give the same factors.
#pragma once

#include <array>
#include <cstdint>

#include "base/describe.h"
#include "base/time.h"
#include "core/model/ids.h"
#include "core/perf/coefficients.h"
#include "core/perf/endpoint_factors.h"
#include "core/perf/evidence.h"
#include "core/perf/prior.h"
#include "core/perf/ridge.h"

namespace signalbox::perf {

struct Factors {
  double fixed = 1;
  double prefill = 1;
  double decode = 1;
};

// Coefficients with the standard deviation of log(actual / predicted) for one request's share of
// each kind: what is not known of the factor, and the scatter that no factor explains.
struct Belief {
  Coefficients coefficients;
  Uncertainty sigma;
};

struct CalibratorConfig {
  double memory_observations = 200;
  double factor_max = 100;
  double outlier_deviations = 2;
  double noise_initial = 0.10;
  double condition_max = 200;
  Duration witness_hold = std::chrono::seconds(60);
  EndpointFactors::Config endpoints;
};

template <typename Visitor>
void describe(Visitor& v, CalibratorConfig& c) {
  v(c.memory_observations, "memory_observations",
    "Observations after which what is known along an excited direction has been renewed.",
    Range{10, 1e6});
  v(c.factor_max, "factor_max", "Greatest factor on the prior; the least is its inverse.",
    Range{2, 1e6});
  v(c.outlier_deviations, "outlier_deviations",
    "Deviations beyond which an observation loses weight (Huber).", Range{0.5, 10});
  v(c.noise_initial, "noise_initial",
    "Relative scatter of observations that is assumed before it is measured.", Range{0.01, 1});
  v(c.condition_max, "condition_max",
    "Greatest condition number of the evidence at which a factor splits.", Range{1, 1e6});
  v(c.witness_hold, "witness_hold",
    "How long a better witness keeps worse ones from being heard.", Range{0, 86'400});
  v(c.endpoints, "endpoints", "Factors of single endpoints.");
}

class Calibrator {
 public:
  explicit Calibrator(Prior prior, CalibratorConfig config = {});

  // False when the evidence was not used: impossible numbers, a better witness spoke lately, or
  // nothing is left of the seconds once the work of others is taken out.
  bool observe(const PrefillEvidence& e, Instant now);
  bool observe(const DecodeEvidence& e, Instant now);

  // Of the pool.
  const Coefficients& coefficients() const { return pool_; }
  Factors factors() const;
  Uncertainty sigma() const { return sigma_; }
  const Prior& prior() const { return prior_; }
  // Observations used, of prefill and of decode.
  std::uint64_t prefills() const { return prefill_.count; }
  std::uint64_t decodes() const { return decode_.count; }
  // 1: c has parted from b. 1: e and f have parted from d; 2: and from each other.
  int prefill_level() const { return prefill_.level; }
  int decode_level() const { return decode_.level; }

  // prior × pool factors × endpoint factor. Unknown endpoints are like their pool.
  Belief effective(model::EndpointId endpoint, Instant now) const;
  double endpoint_factor(model::EndpointId endpoint, Instant now) const;
  // The straggler signal: how much slower than its pool; in pools of one or two judged endpoints
  // also how much slower than the pool has been over its last thousands of observations.
  double slowness(model::EndpointId endpoint, Instant now) const;
  // The endpoint is gone.
  void forget(model::EndpointId endpoint) { endpoints_.forget(endpoint); }
  // Grows whenever coefficients may have changed.
  std::uint64_t version() const { return version_; }

 private:
  // One independent part of the problem: a, b, c from prefills, or d, e, f from decoding. Levels
  // go from few factors to one for each coefficient.
  struct Block {
    std::array<Matrix3, 3> priors{};  // covariance by level
    double own_deviation = 0;         // of a coefficient's factor around its group's
    double others_precision = 0;      // prior precision of the first coefficient's factor
    Evidence evidence;
    Posterior belief;                 // of the factors' logarithms, at the level in use
    int level = 0;
    double factor = 1;           // of the group at level 0
    double noise = 0;            // scatter of one request, of its logarithm
    double last_residual = 0;    // of logarithms
    double signs = 0;            // moving mean of the residuals' signs: drift when far from 0
    double recent_log = 0;       // moving means of log(calibrated / prior) of what is seen: quick
    double history_log = 0;      // and slow
    std::uint64_t count = 0;
    std::array<Instant, 3> heard{};  // by witness
    std::array<bool, 3> has_heard{};
  };
  // y = xᵀ·factors, with the variance that is not the block's noise.
  struct Equation {
    Vector3 x{};
    double y = 0;
    double other_variance = 0;
    double samples = 1;
    double quality = 1;  // noise of this witness over that of the best
  };
  // log(y / predicted) = xᵀ·(change of the factors' logarithms), with the variance
  // beside the block's noise: of the curve, the work of others, the clock.
  struct Straight {
    Vector3 x{};
    double residual = 0;
    double variance = 0;
  };

  void prepare();
  bool hears(Block& block, Witness witness, Instant now) const;
  void measure_noise(Block& block, double residual) const;
  Straight straighten(const Block& block, const Equation& q) const;
  double weigh(Block& block, const Equation& q, const Straight& line) const;
  void learn(Block& block, const Equation& q);
  bool tells(const Block& block, PairInformation info, bool already) const;
  int level_of(const Block& block) const;
  void refresh(Block& block) const;
  Posterior believe(const Block& block, int level) const;
  double bounded(const Block& block, std::size_t i) const;
  double expected(const Block& block, const Vector3& x) const;
  double whole(const Block& block) const;  // the factor of the group
  void publish();

  Prior prior_;
  CalibratorConfig config_;
  Block prefill_;  // a | b, c; then a | b | c
  Block decode_;   // d, e, f; then d | e, f; then d | e | f
  EndpointFactors endpoints_;
  Coefficients pool_;
  Uncertainty sigma_;
  std::uint64_t version_ = 0;
};

}  // namespace signalbox::perf
