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
constexpr double kForgetMax = 0.3;        // share of the evidence that one observation may displace
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

// Deviations of logarithms and of factors around 1.
double linear(double log_deviation) { return std::expm1(std::min(log_deviation, 10.0)); }
double logarithmic(double relative_deviation) { return std::log1p(relative_deviation); }

double square(double x) { return x * x; }

// How much faster evidence fades, and how much further off it may lie, while all of it deviates
// to the same side.
double haste(double signs) { return std::abs(signs) > kDrift ? kDriftHaste : 1; }

double lighter(const Coefficients& k, double batch, double kv) {
  return k.step(batch, kv) - k.d;  // what e and f add to a step
}

}  // namespace

Calibrator::Calibrator(Prior prior, CalibratorConfig config)
    : prior_(std::move(prior)), config_(config), endpoints_(config.endpoints) {
  prepare(prefill_, {linear(prior_.sigma.fixed), linear(prior_.sigma.prefill)});
  prepare(decode_, {linear(prior_.sigma.decode)});
  publish();
}

// The prior of the tied factors is independent; split, the pair shares its factor's deviation and
// each part has split_share of it on its own.
template <std::size_t N>
void Calibrator::prepare(Block<N>& block, const std::array<double, N - 1>& sigma) {
  for (std::size_t i = 0; i < N - 1; ++i) block.tied_precision[i][i] = 1 / square(sigma[i]);
  const double shared = square(sigma[N - 2]);
  const double own = square(sigma[N - 2] * config_.split_share);
  Matrix<N> covariance{};
  if constexpr (N == 3) covariance[0][0] = square(sigma[0]);
  covariance[N - 2][N - 2] = covariance[N - 1][N - 1] = shared + own;
  covariance[N - 2][N - 1] = covariance[N - 1][N - 2] = shared;
  block.split_precision = inverse(covariance);
  block.others_precision = block.tied_precision[0][0];
  block.split_deviation = std::sqrt(own);
  block.noise = config_.noise_initial;
  refresh(block);
}

template <std::size_t N>
bool Calibrator::hears(Block<N>& block, Witness witness, Instant now) const {
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
template <std::size_t N>
void Calibrator::measure_noise(Block<N>& block, double residual) const {
  const double difference = std::abs(residual - block.last_residual) / std::numbers::sqrt2;
  block.last_residual = residual;
  const bool above = difference > kMedianOfNormal * block.noise;
  block.noise = std::clamp(block.noise * (above ? 1 + kNoiseRate : 1 / (1 + kNoiseRate)),
                           kNoiseMin, kNoiseMax);
}

// The weight of an equation: 1/variance, less for outliers. Also measures the scatter.
template <std::size_t N>
double Calibrator::weigh(Block<N>& block, const Equation<N>& q, double predicted) const {
  // While the prior is far too fast, the scatter belongs to what is seen, not what is predicted.
  const double level = std::max(predicted, q.y / 2);
  const double scale = square(level * q.quality) / q.samples;
  const double variance = square(block.noise) * scale + q.other_variance;
  const double ignorance = dot(q.x, times(block.belief.covariance, q.x));
  const double residual = q.y - predicted;
  if (q.other_variance < variance / 2) measure_noise(block, residual / std::sqrt(scale));
  const double deviations = std::abs(residual) / std::sqrt(variance + ignorance);
  // What all observations lately deviate towards is no outlier.
  const double limit = config_.outlier_deviations * haste(block.signs);
  return std::min(1.0, limit / std::max(deviations, 1e-9)) / variance;
}

template <std::size_t N>
void Calibrator::learn(Block<N>& block, const Equation<N>& q) {
  const double predicted = dot(q.x, block.belief.mean);
  const double weight = weigh(block, q, predicted);
  const double sign = q.y > predicted ? 1 : -1;
  block.signs += kDriftRate * (sign - block.signs);
  // An equation of low weight displaces little of what is known.
  const double nominal = 1 / square(block.noise * std::max(predicted, q.y / 2));
  const double rate = haste(block.signs) / config_.memory_observations * weight / nominal;
  block.evidence.add(q.x, q.y, weight, std::min(rate, kForgetMax));
  ++block.count;
  refresh(block);
  const double log = std::log(bounded(block, N - 2));
  if (block.count <= kHistoryFrom) block.history_log = log;
  block.history_log += kHistoryRate * (log - block.history_log);
  publish();
}

template <std::size_t N>
void Calibrator::refresh(Block<N>& block) const {
  const auto info = pair_information(block.evidence, block.others_precision);
  // Hysteresis: once split, twice the condition number is borne.
  const double limit = config_.condition_max * (block.split ? 2 : 1);
  const bool telling = info.weak * square(block.split_deviation) > 1;
  block.split = telling && info.strong < limit * info.weak;
  const auto one = solve(tied(block.evidence), block.tied_precision);
  block.factor = one.mean[N - 2];
  if (block.split) {
    block.belief = solve(block.evidence, block.split_precision);
    return;
  }
  for (std::size_t i = 0; i < N; ++i) {
    const std::size_t ti = std::min(i, N - 2);
    block.belief.mean[i] = one.mean[ti];
    for (std::size_t j = 0; j < N; ++j) {
      block.belief.covariance[i][j] = one.covariance[ti][std::min(j, N - 2)];
    }
  }
}

template <std::size_t N>
double Calibrator::bounded(const Block<N>& block, std::size_t i) const {
  return std::clamp(block.belief.mean[i], 1 / config_.factor_max, config_.factor_max);
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
  pool_.f = k.f * bounded(decode_, 1);
  const auto deviation = [&](const auto& block, std::size_t i) {
    const double known = std::sqrt(std::max(0.0, block.belief.covariance[i][i]));
    return std::hypot(logarithmic(known / bounded(block, i)), block.noise);
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
  Equation<3> q;
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
  const double work = dot(q.x, prefill_.belief.mean);
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
  Equation<2> q;
  q.x = {k.d, lighter(k, e.batch, e.kv)};
  const double others = (pool_.b * e.others_fresh + pool_.c * e.others_attention) / e.steps;
  const double own = endpoints_.factor(e.endpoint, now);
  const double step = e.seconds / e.steps;
  q.y = step / own - others;
  q.other_variance = square(kOthers * others) + square(kClock / e.steps);
  q.quality = quality_of(e.witness);
  const double work = dot(q.x, decode_.belief.mean);
  if (q.y <= 0 || !(work > 0)) return false;
  if (others < work) endpoints_.observe(e.endpoint, step / (work + others), now);
  learn(decode_, q);
  return true;
}

Factors Calibrator::factors() const {
  const auto bound = [&](double f) {
    return std::clamp(f, 1 / config_.factor_max, config_.factor_max);
  };
  return {bounded(prefill_, 0), bound(prefill_.factor), bound(decode_.factor)};
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
  const auto drift = [&](const auto& block, std::size_t i) {
    if (block.count <= kHistoryFrom) return 1.0;
    return bounded(block, i) / std::exp(block.history_log);
  };
  return own * std::max(drift(prefill_, 1), drift(decode_, 0));
}

}  // namespace signalbox::perf
