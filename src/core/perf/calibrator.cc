// SPDX-License-Identifier: Apache-2.0
// Turns evidence into equations, weighs them, and publishes coefficients.
#include "core/perf/calibrator.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>

namespace signalbox::perf {
namespace {

constexpr double kNoiseMin = 0.02;
constexpr double kNoiseMax = 0.5;
constexpr double kNoiseRate = 0.03;
constexpr double kMedianOfNormal = 0.6745;  // of |x|, deviation 1
constexpr double kClock = 2e-4;           // s; how finely engines and we measure
constexpr double kOthers = 0.3;           // relative error of the work of others taken out
constexpr double kDriftRate = 1.0 / 16;   // of the moving mean of signs
constexpr double kDrift = 0.7;            // four deviations of that mean under mere noise
constexpr double kDriftHaste = 20;        // how much faster evidence fades while drifting
constexpr double kShareMute = 0.2;        // a group below this share of the time has no say,
constexpr double kShareRange = 0.2;       // one this much above it has its full say,
constexpr double kGainMute = 16;          // or when without it the misfit is this many squares
constexpr double kGainRange = 24;         // of deviations greater, and this many more
constexpr double kInformationMax = 1e6;   // what one observation may tell of the factors: 0.1 %
constexpr double kForgetMax = 0.3;        // share of the evidence that one observation may displace
constexpr double kRecentRate = 1.0 / 16;  // of the means that tell a pool's present from its past
constexpr double kHistoryRate = 1.0 / 2000;
constexpr std::uint64_t kHistoryFrom = 50;

double quality_of(Witness witness) {
  switch (witness) {
    case Witness::Answer: return 1;
    case Witness::Histogram: return 1.3;
    case Witness::OwnClock: return 1.5;
  }
  return 1;
}

bool usable(double x) { return std::isfinite(x) && x >= 0 && x < 1e15; }

double square(double x) { return x * x; }

// How much faster evidence fades, and how much further off it may lie, while all of it deviates
// to the same side.
double haste(double signs) { return std::abs(signs) > kDrift ? kDriftHaste : 1; }

// Whether a group of coefficients shows in the measured times: 0 when its share of them is small,
// 1 when it is not. `own` and `other` are what the evidence has of its factor and the other's.
double shows(double own, double other) {
  if (!(own > 0)) return 0;
  const double share = std::sqrt(own) / (std::sqrt(own) + std::sqrt(other));
  return std::clamp((share - kShareMute) / kShareRange, 0.0, 1.0);
}

// Sum of weighted squares that `theta` leaves unexplained, but for a constant.
double misfit(const Evidence& e, const Vector3& theta) {
  return dot(theta, times(e.S, theta)) - 2 * dot(e.r, theta);
}

// Variance that log(Σ x·exp(factor)) has beyond its linear form, for factors of covariance P:
// half the trace of (H·P)², H the second derivatives.
double curvature(const Vector3& shares, const Matrix3& covariance) {
  Matrix3 h{};
  for (std::size_t i = 0; i < 3; ++i) {
    for (std::size_t j = 0; j < 3; ++j) h[i][j] = (i == j ? shares[i] : 0) - shares[i] * shares[j];
  }
  const Matrix3 hp = times(h, covariance);
  const Matrix3 twice = times(hp, hp);
  return std::max(0.0, (twice[0][0] + twice[1][1] + twice[2][2]) / 2);
}

}  // namespace

Calibrator::Calibrator(Prior prior, CalibratorConfig config)
    : prior_(std::move(prior)), config_(config), endpoints_(config.endpoints) {
  prepare();
  publish();
}

// Factors of one group share its variance; where they may part, each has its own beside.
void Calibrator::prepare() {
  const double fixed = square(prior_.sigma.fixed);
  const double shared = square(prior_.sigma.prefill);
  const double own = shared * square(prior_.split_share);
  prefill_.priors[0] = {{{fixed, 0, 0}, {0, shared, shared}, {0, shared, shared}}};
  prefill_.priors[1] = {{{fixed, 0, 0}, {0, shared + own, shared}, {0, shared, shared + own}}};
  prefill_.own_deviation = std::sqrt(own);
  prefill_.others_precision = 1 / fixed;
  const double s = square(prior_.sigma.decode);
  const double t = s + s * square(prior_.split_share);
  decode_.priors[0] = {{{s, s, s}, {s, s, s}, {s, s, s}}};
  decode_.priors[1] = {{{t, s, s}, {s, t, t}, {s, t, t}}};
  decode_.priors[2] = {{{t, s, s}, {s, t, s}, {s, s, t}}};
  decode_.own_deviation = std::sqrt(t - s);
  decode_.others_precision = 1 / s;
  for (Block* block : {&prefill_, &decode_}) {
    block->noise = config_.noise_initial;
    refresh(*block);
  }
}

bool Calibrator::hears(Block& block, Witness witness, Instant now) const {
  const auto rank = static_cast<std::size_t>(witness);
  for (std::size_t better = 0; better < rank; ++better) {
    if (block.has_heard[better] && now - block.heard[better] < config_.witness_hold) return false;
  }
  block.heard[rank] = now;
  block.has_heard[rank] = true;
  return true;
}

// The scatter is a median of differences between successive residuals, so that neither a common
// error of the prediction nor a few outliers count as scatter. It moves by a fixed step towards it.
void Calibrator::measure_noise(Block& block, double residual) const {
  const double difference = std::abs(residual - block.last_residual) / std::numbers::sqrt2;
  block.last_residual = residual;
  const bool above = difference > kMedianOfNormal * block.noise;
  block.noise = std::clamp(block.noise * (above ? 1 + kNoiseRate : 1 / (1 + kNoiseRate)),
                           kNoiseMin, kNoiseMax);
}

// The equation in logarithms, log y = log Σ x·exp(factor), straightened at what is believed: each
// factor counts by its share of the time.
Calibrator::Straight Calibrator::straighten(const Block& block, const Equation& q) const {
  const double predicted = expected(block, q.x);
  Straight line;
  for (std::size_t i = 0; i < 3; ++i) line.x[i] = q.x[i] * bounded(block, i) / predicted;
  line.variance = curvature(line.x, block.belief.covariance) + q.other_variance / square(q.y);
  const double bound = 2 * std::log(config_.factor_max);
  line.residual = std::clamp(std::log(q.y / predicted), -bound, bound);
  return line;
}

// The weight of an equation: 1/variance, less for outliers. Also measures the scatter.
double Calibrator::weigh(Block& block, const Equation& q, const Straight& line) const {
  const double scale = square(q.quality) / q.samples;
  const double variance = square(block.noise) * scale + line.variance;
  const double ignorance = dot(line.x, times(block.belief.covariance, line.x));
  if (line.variance < variance / 2) measure_noise(block, line.residual / std::sqrt(scale));
  const double deviations = std::abs(line.residual) / std::sqrt(variance + ignorance);
  // What all observations lately deviate towards is no outlier.
  const double limit = config_.outlier_deviations * haste(block.signs);
  return std::min(std::min(1.0, limit / std::max(deviations, 1e-9)) / variance, kInformationMax);
}

void Calibrator::learn(Block& block, const Equation& q) {
  const Straight line = straighten(block, q);
  const double weight = weigh(block, q, line);
  const double sign = line.residual > 0 ? 1 : -1;
  block.signs += kDriftRate * (sign - block.signs);
  // An equation of low weight displaces little of what is known.
  const double rate =
      haste(block.signs) / config_.memory_observations * weight * square(block.noise);
  double y = line.residual;
  for (std::size_t i = 0; i < 3; ++i) y += line.x[i] * std::log(bounded(block, i));
  block.evidence.add(line.x, y, weight, std::min(rate, kForgetMax));
  ++block.count;
  refresh(block);
  const double now = expected(block, q.x);
  const double log = std::log(now / (q.x[0] + q.x[1] + q.x[2]));
  block.recent_log += kRecentRate * (log - block.recent_log);
  if (block.count <= kHistoryFrom) block.history_log = block.recent_log;
  block.history_log += kHistoryRate * (log - block.history_log);
  publish();
}

// Hysteresis: once parted, twice the condition number is borne.
bool Calibrator::tells(const Block& block, PairInformation info, bool already) const {
  const double limit = config_.condition_max * (already ? 2 : 1);
  return info.weak * square(block.own_deviation) > 1 && info.strong < limit * info.weak;
}

int Calibrator::level_of(const Block& block) const {
  const Evidence& e = block.evidence;
  const auto last_two = pair_information(e, 1, 2, 0, block.others_precision);
  if (&block == &prefill_) return tells(block, last_two, block.level > 0) ? 1 : 0;
  const auto& S = e.S;
  const auto first = pair_information(S[0][0], S[0][1] + S[0][2],
                                      S[1][1] + 2 * S[1][2] + S[2][2]);
  if (!tells(block, first, block.level > 0)) return 0;
  return tells(block, last_two, block.level > 1) ? 2 : 1;
}

void Calibrator::refresh(Block& block) const {
  // Rounding could only break this on evidence beyond all physics; then the prior starts anew.
  if (!std::isfinite(dot(block.evidence.r, times(block.evidence.S, block.evidence.r)))) {
    block.evidence = {};
  }
  block.level = level_of(block);
  block.belief = believe(block, 0);
  block.factor = std::exp(block.belief.mean[2]);
  if (block.level > 0) block.belief = believe(block, block.level);
}

// The measured time is of the whole, and a wide prior would let a part that hardly shows take the
// blame for one that does. So a lesser part moves only when the other alone does not explain what
// was seen: by a test of the likelihood ratio. The covariance is all that is not known.
Posterior Calibrator::believe(const Block& block, int level) const {
  const Evidence& e = block.evidence;
  const Matrix3& free = block.priors[static_cast<std::size_t>(level)];
  const Posterior whole = solve(e, free);
  if (&block != &prefill_) return whole;
  const double work = e.S[1][1] + 2 * e.S[1][2] + e.S[2][2];
  const double fixed_shows = shows(e.S[0][0], work), work_shows = shows(work, e.S[0][0]);
  if (fixed_shows == 1 && work_shows == 1) return whole;
  const auto held = [&](double needed) {
    Matrix3 prior = free;
    prior[0][0] *= std::max(fixed_shows, needed);
    for (std::size_t i = 1; i < 3; ++i) {
      for (std::size_t j = 1; j < 3; ++j) prior[i][j] *= std::max(work_shows, needed);
    }
    return solve(e, prior).mean;
  };
  const double gain = misfit(e, held(0)) - misfit(e, whole.mean);
  const double needed = std::clamp((gain - kGainMute) / kGainRange, 0.0, 1.0);
  return {needed == 1 ? whole.mean : held(needed), whole.covariance};
}

double Calibrator::bounded(const Block& block, std::size_t i) const {
  return std::clamp(std::exp(block.belief.mean[i]), 1 / config_.factor_max, config_.factor_max);
}

double Calibrator::expected(const Block& block, const Vector3& x) const {
  return x[0] * bounded(block, 0) + x[1] * bounded(block, 1) + x[2] * bounded(block, 2);
}

double Calibrator::whole(const Block& block) const {
  return std::clamp(block.factor, 1 / config_.factor_max, config_.factor_max);
}

void Calibrator::publish() {
  const Coefficients& k = prior_.coefficients;
  pool_ = k;
  pool_.a = k.a * bounded(prefill_, 0);
  pool_.b = k.b * bounded(prefill_, 1);
  pool_.c = k.c * bounded(prefill_, 2);
  pool_.d = k.d * bounded(decode_, 0);
  pool_.e1 = k.e1 * bounded(decode_, 1);
  pool_.e2 = k.e2 * bounded(decode_, 1);
  pool_.f = k.f * bounded(decode_, 2);
  const auto deviation = [&](const Block& block, std::size_t i) {
    const double known = std::sqrt(std::max(0.0, block.belief.covariance[i][i]));
    return std::hypot(known, block.noise);
  };
  sigma_ = {deviation(prefill_, 0), deviation(prefill_, 1), deviation(decode_, 0)};
  ++version_;
}

bool Calibrator::observe(const PrefillEvidence& e, Instant now) {
  const bool sane = usable(e.seconds) && e.seconds > 0 && usable(e.fresh) && e.fresh > 0 &&
                    usable(e.attention) && usable(e.requests) && e.requests >= 1 &&
                    usable(e.decoding) && usable(e.decoding_kv);
  if (!sane || !hears(prefill_, e.witness, now)) return false;
  const Coefficients& k = prior_.coefficients;
  Equation q;
  q.x = {k.a * e.requests, k.b * e.fresh, k.c * e.attention};
  double others = 0;  // steps of those that decode beside it take the place of a
  if (e.decoding > 0) {
    q.x[0] = 0;
    const double chunk = static_cast<double>(std::max<std::int64_t>(1, k.chunk_tokens));
    others = std::max(e.requests, e.fresh / chunk) * pool_.step(e.decoding, e.decoding_kv);
  }
  const double own = endpoints_.factor(e.endpoint, now);
  q.y = e.seconds / own - others;
  q.other_variance = square(kOthers * others) + square(kClock * e.requests);
  q.samples = e.requests;
  q.quality = quality_of(e.witness);
  const double work = expected(prefill_, q.x);
  if (q.y <= 0 || !(work > 0)) return false;
  if (others < work) endpoints_.observe(e.endpoint, e.seconds / (work + others), now);
  learn(prefill_, q);
  return true;
}

bool Calibrator::observe(const DecodeEvidence& e, Instant now) {
  const bool sane = usable(e.seconds) && e.seconds > 0 && usable(e.steps) && e.steps >= 1 &&
                    usable(e.batch) && e.batch > 0 && usable(e.kv) && usable(e.others_fresh) &&
                    usable(e.others_attention);
  if (!sane || !hears(decode_, e.witness, now)) return false;
  const Coefficients& k = prior_.coefficients;
  Equation q;
  q.x = {k.d, k.step(e.batch, 0) - k.d, k.f * e.kv};
  const double others = (pool_.b * e.others_fresh + pool_.c * e.others_attention) / e.steps;
  const double own = endpoints_.factor(e.endpoint, now);
  const double step = e.seconds / e.steps;
  q.y = step / own - others;
  q.other_variance = square(kOthers * others) + square(kClock / e.steps);
  q.quality = quality_of(e.witness);
  const double work = expected(decode_, q.x);
  if (q.y <= 0 || !(work > 0)) return false;
  if (others < work) endpoints_.observe(e.endpoint, step / (work + others), now);
  learn(decode_, q);
  return true;
}

Factors Calibrator::factors() const {
  return {bounded(prefill_, 0), whole(prefill_), whole(decode_)};
}

double Calibrator::endpoint_factor(model::EndpointId endpoint, Instant now) const {
  return endpoints_.factor(endpoint, now);
}

Belief Calibrator::effective(model::EndpointId endpoint, Instant now) const {
  Belief belief{pool_, sigma_};
  const double own = endpoints_.factor(endpoint, now);
  if (own == 1) return belief;
  Coefficients& k = belief.coefficients;
  for (double* part : {&k.a, &k.b, &k.c, &k.d, &k.e1, &k.e2, &k.f}) *part *= own;
  return belief;
}

double Calibrator::slowness(model::EndpointId endpoint, Instant now) const {
  const double own = endpoints_.factor(endpoint, now);
  if (endpoints_.judged() > 2) return own;
  const auto drift = [&](const Block& block) {
    if (block.count <= kHistoryFrom) return 1.0;
    return std::exp(block.recent_log - block.history_log);
  };
  return own * std::max(drift(prefill_), drift(decode_));
}

}  // namespace signalbox::perf
