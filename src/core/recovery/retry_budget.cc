// SPDX-License-Identifier: Apache-2.0
// Two counters.
#include "core/recovery/retry_budget.h"

#include <algorithm>

#include "base/check.h"

namespace signalbox::recovery {

void RetryBudget::started(Kind kind) {
  ++active_;
  if (kind == Kind::Retry) ++retries_;
}

void RetryBudget::ended(Kind kind) {
  CHECK(--active_ >= 0);
  if (kind == Kind::Retry) CHECK(--retries_ >= 0);
}

bool RetryBudget::left() const {
  const double share = config_.retry_share * active_;
  return retries_ < std::max(static_cast<double>(config_.retries_min), share);
}

}  // namespace signalbox::recovery
