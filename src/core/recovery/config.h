// SPDX-License-Identifier: Apache-2.0
// Settings of recovery. The share of a pool that ejection may take out belongs to the pool
// (model::Pool::ejected_share_max).
#pragma once

#include "base/describe.h"
#include "base/time.h"

namespace signalbox::recovery {

struct Config {
  int failures_in_a_row = 5;
  Duration ejection = std::chrono::seconds(5);
  int attempts_max = 3;
  int answers_max = 2;
  double retry_share = 0.2;
  int retries_min = 3;
};

template <typename Visitor>
void describe(Visitor& v, Config& c) {
  v(c.failures_in_a_row, "failures_in_a_row",
    "Failures or broken streams in a row that eject an endpoint.", Range{1, 1000});
  v(c.ejection, "ejection", "How long an ejected endpoint stays out before one probe request.",
    Range{0.1, 3600});
  v(c.attempts_max, "attempts_max", "Endpoints tried for one request, the first one included.",
    Range{1, 10});
  v(c.answers_max, "answers_max",
    "Failing answers taken from engines for one request before the last one is passed on.",
    Range{1, 10});
  v(c.retry_share, "retry_share", "Retries under way at once, as a share of a pool's requests.",
    Range{0, 1});
  v(c.retries_min, "retries_min", "Retries that may always be under way at once in a pool.",
    Range{0, 1000});
}

}  // namespace signalbox::recovery
