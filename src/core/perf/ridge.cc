// SPDX-License-Identifier: Apache-2.0
// Small dense algebra, three by three.
#include "core/perf/ridge.h"

#include <cmath>
#include <utility>

namespace signalbox::perf {

double dot(const Vector3& a, const Vector3& b) { return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]; }

Vector3 times(const Matrix3& m, const Vector3& v) {
  return {dot(m[0], v), dot(m[1], v), dot(m[2], v)};
}

Matrix3 times(const Matrix3& a, const Matrix3& b) {
  Matrix3 out{};
  for (std::size_t i = 0; i < 3; ++i) {
    for (std::size_t j = 0; j < 3; ++j) {
      out[i][j] = a[i][0] * b[0][j] + a[i][1] * b[1][j] + a[i][2] * b[2][j];
    }
  }
  return out;
}

Matrix3 inverse(Matrix3 m) {
  Matrix3 out{{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}};
  for (std::size_t p = 0; p < 3; ++p) {
    std::size_t best = p;
    for (std::size_t i = p + 1; i < 3; ++i) {
      if (std::abs(m[i][p]) > std::abs(m[best][p])) best = i;
    }
    std::swap(m[p], m[best]);
    std::swap(out[p], out[best]);
    const double pivot = 1 / m[p][p];
    for (std::size_t j = 0; j < 3; ++j) m[p][j] *= pivot, out[p][j] *= pivot;
    for (std::size_t i = 0; i < 3; ++i) {
      if (i == p) continue;
      const double factor = m[i][p];
      for (std::size_t j = 0; j < 3; ++j) {
        m[i][j] -= factor * m[p][j];
        out[i][j] -= factor * out[p][j];
      }
    }
  }
  return out;
}

void Evidence::add(const Vector3& x, double y, double weight, double rate) {
  const Vector3 sx = times(S, x);
  const double known = dot(x, sx);
  const double share = known > 1e-12 ? rate / known : 0;
  const double faded = share * dot(x, r);
  const double gained = weight * y;
  for (std::size_t i = 0; i < 3; ++i) {
    for (std::size_t j = 0; j < 3; ++j) S[i][j] += weight * x[i] * x[j] - share * sx[i] * sx[j];
    r[i] += gained * x[i] - faded * sx[i];
  }
}

// (C⁻¹ + S)⁻¹ = C·(1 + S·C)⁻¹, which needs no inverse of C.
Posterior solve(const Evidence& evidence, const Matrix3& prior) {
  Matrix3 inner = times(evidence.S, prior);
  for (std::size_t i = 0; i < 3; ++i) inner[i][i] += 1;
  Posterior p;
  p.covariance = times(prior, inverse(inner));
  p.mean = times(p.covariance, evidence.r);
  return p;
}

PairInformation pair_information(double pp, double pq, double qq) {
  const double middle = (pp + qq) / 2;
  const double radius = std::sqrt((pp - qq) * (pp - qq) / 4 + pq * pq);
  return {middle + radius, middle - radius};
}

PairInformation pair_information(const Evidence& e, std::size_t p, std::size_t q, std::size_t o,
                                 double others) {
  const double own = e.S[o][o] + others;
  return pair_information(e.S[p][p] - e.S[o][p] * e.S[o][p] / own,
                          e.S[p][q] - e.S[o][p] * e.S[o][q] / own,
                          e.S[q][q] - e.S[o][q] * e.S[o][q] / own);
}

}  // namespace signalbox::perf
