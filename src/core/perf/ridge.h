// SPDX-License-Identifier: Apache-2.0
// Bayesian least squares for three numbers that are 0 a priori: the evidence S = Σ w·x·xᵀ and
// r = Σ w·x·y is kept apart from the prior, which never fades. Forgetting is directional
// (Cao, Schwartz, Automatica 2000): only what the new x sees again loses weight, so directions
// that the traffic does not excite keep all that was ever learnt. Pure.
#pragma once

#include <array>
#include <cstddef>

namespace signalbox::perf {

using Vector3 = std::array<double, 3>;
using Matrix3 = std::array<Vector3, 3>;

double dot(const Vector3& a, const Vector3& b);
Vector3 times(const Matrix3& m, const Vector3& v);
Matrix3 times(const Matrix3& a, const Matrix3& b);
// Of a regular matrix, by Gauss-Jordan with row exchange.
Matrix3 inverse(Matrix3 m);

struct Evidence {
  Matrix3 S{};
  Vector3 r{};

  // Takes in y = xᵀ·θ with variance 1/weight, after forgetting the share `rate` (0..1) of
  // what is known along x: S' = S − rate·(S·x)(S·x)ᵀ/(xᵀ·S·x), so that S'·x = (1 − rate)·S·x, and
  // S'·v = S·v for every v with vᵀ·S·x = 0. r loses the same share: the estimate stays in place.
  void add(const Vector3& x, double y, double weight, double rate);
};

// Mean and covariance of θ.
struct Posterior {
  Vector3 mean{};
  Matrix3 covariance{};
};

// `prior` is the covariance around the mean 0. It may be singular: numbers that are tied have
// equal rows, and stay equal.
Posterior solve(const Evidence& evidence, const Matrix3& prior);

// Eigenvalues of a symmetric 2 x 2 matrix: what the evidence says about two numbers.
struct PairInformation {
  double strong = 0;
  double weak = 0;
};
PairInformation pair_information(double pp, double pq, double qq);
// About numbers p and q alone, when the third (o) has the prior precision `others`.
PairInformation pair_information(const Evidence& e, std::size_t p, std::size_t q, std::size_t o,
                                 double others);

}  // namespace signalbox::perf
