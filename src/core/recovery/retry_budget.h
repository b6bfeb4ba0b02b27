// SPDX-License-Identifier: Apache-2.0
// Bounds the retries under way in one pool to a share of its requests, so that failures do not
// multiply the load that caused them. Under the core's lock.
#pragma once

#include "core/recovery/config.h"

namespace signalbox::recovery {

class RetryBudget {
 public:
  explicit RetryBudget(const Config& config) : config_(config) {}

  void set_config(const Config& config) { config_ = config; }

  // Every attempt in the pool, first ones and retries. retry: a place was taken with left() true.
  enum class Kind { First, Retry };
  void started(Kind kind);
  void ended(Kind kind);

  // Whether one more retry may start: fewer run than max(retries_min, retry_share · attempts).
  bool left() const;
  int active() const { return active_; }
  int retries() const { return retries_; }

 private:
  Config config_;
  int active_ = 0;
  int retries_ = 0;
};

}  // namespace signalbox::recovery
