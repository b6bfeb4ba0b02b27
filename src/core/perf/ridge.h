// SPDX-License-Identifier: Apache-2.0
// Bayesian least squares for a few factors that are 1 a priori, in information form: the evidence
// S = Σ w·x·xᵀ and r = Σ w·x·(y − xᵀ1) is kept apart from the prior, which never fades. Forgetting
// is directional (Cao, Schwartz, Automatica 2000): only what the new x sees again loses weight, so
// directions that the traffic does not excite keep all that was ever learnt. Pure.
#pragma once

#include <array>
#include <cmath>
#include <cstddef>

namespace signalbox::perf {

template <std::size_t N>
using Vector = std::array<double, N>;
template <std::size_t N>
using Matrix = std::array<std::array<double, N>, N>;  // symmetric

template <std::size_t N>
double dot(const Vector<N>& a, const Vector<N>& b) {
  double sum = 0;
  for (std::size_t i = 0; i < N; ++i) sum += a[i] * b[i];
  return sum;
}

template <std::size_t N>
Vector<N> times(const Matrix<N>& m, const Vector<N>& v) {
  Vector<N> out{};
  for (std::size_t i = 0; i < N; ++i) out[i] = dot(m[i], v);
  return out;
}

// Of a positive definite matrix, by Gauss-Jordan; pivots are positive, so no exchange is needed.
template <std::size_t N>
Matrix<N> inverse(Matrix<N> m) {
  Matrix<N> out{};
  for (std::size_t i = 0; i < N; ++i) out[i][i] = 1;
  for (std::size_t p = 0; p < N; ++p) {
    const double pivot = 1 / m[p][p];
    for (std::size_t j = 0; j < N; ++j) m[p][j] *= pivot, out[p][j] *= pivot;
    for (std::size_t i = 0; i < N; ++i) {
      if (i == p) continue;
      const double factor = m[i][p];
      for (std::size_t j = 0; j < N; ++j) {
        m[i][j] -= factor * m[p][j];
        out[i][j] -= factor * out[p][j];
      }
    }
  }
  return out;
}

template <std::size_t N>
struct Evidence {
  Matrix<N> S{};
  Vector<N> r{};

  // Takes in y = xᵀ·factors with variance 1/weight, after forgetting the share `rate` (0..1) of
  // what is known along x.
  void add(const Vector<N>& x, double y, double weight, double rate) {
    forget(x, rate);
    double deviation = y;
    for (double part : x) deviation -= part;
    for (std::size_t i = 0; i < N; ++i) {
      for (std::size_t j = 0; j < N; ++j) S[i][j] += weight * x[i] * x[j];
      r[i] += weight * x[i] * deviation;
    }
  }

 private:
  // S' = S − rate·(S·x)(S·x)ᵀ/(xᵀ·S·x): S'·x = (1 − rate)·S·x, and S'·v = S·v for every v with
  // vᵀ·S·x = 0. r loses the same share, so the estimate stays where it is.
  void forget(const Vector<N>& x, double rate) {
    const Vector<N> sx = times(S, x);
    const double known = dot(x, sx);
    if (!(known > 1e-12) || rate <= 0) return;
    const double share = rate / known;
    const double xr = dot(x, r);
    for (std::size_t i = 0; i < N; ++i) {
      for (std::size_t j = 0; j < N; ++j) S[i][j] -= share * sx[i] * sx[j];
      r[i] -= share * sx[i] * xr;
    }
  }
};

// Mean and covariance of the factors.
template <std::size_t N>
struct Posterior {
  Vector<N> mean{};
  Matrix<N> covariance{};
};

// `precision` is the inverse of the prior covariance; the prior mean is 1.
template <std::size_t N>
Posterior<N> solve(const Evidence<N>& e, Matrix<N> precision) {
  for (std::size_t i = 0; i < N; ++i) {
    for (std::size_t j = 0; j < N; ++j) precision[i][j] += e.S[i][j];
  }
  Posterior<N> p;
  p.covariance = inverse(precision);
  p.mean = times(p.covariance, e.r);
  for (double& m : p.mean) m += 1;
  return p;
}

// The evidence when the last two factors are held equal.
template <std::size_t N>
Evidence<N - 1> tied(const Evidence<N>& e) {
  Evidence<N - 1> out;
  for (std::size_t i = 0; i < N; ++i) {
    const std::size_t ti = i < N - 1 ? i : N - 2;
    for (std::size_t j = 0; j < N; ++j) out.S[ti][j < N - 1 ? j : N - 2] += e.S[i][j];
    out.r[ti] += e.r[i];
  }
  return out;
}

// Eigenvalues of what the evidence says about the last two factors alone, when the others have the
// prior precision `others` each.
struct PairInformation {
  double strong = 0;
  double weak = 0;
};
template <std::size_t N>
PairInformation pair_information(const Evidence<N>& e, double others) {
  const std::size_t p = N - 2;
  const std::size_t q = N - 1;
  double pp = e.S[p][p], pq = e.S[p][q], qq = e.S[q][q];
  if constexpr (N == 3) {
    const double own = e.S[0][0] + others;
    pp -= e.S[0][p] * e.S[0][p] / own;
    pq -= e.S[0][p] * e.S[0][q] / own;
    qq -= e.S[0][q] * e.S[0][q] / own;
  }
  const double middle = (pp + qq) / 2;
  const double radius = std::sqrt((pp - qq) * (pp - qq) / 4 + pq * pq);
  return {middle + radius, middle - radius};
}

}  // namespace signalbox::perf
