// SPDX-License-Identifier: Apache-2.0
// Reads the day of DeepSeek's service (deepseek-ai/open-infra-index, 2025-02-27 to 28). Pure.
#pragma once

#include <string_view>

#include "base/result.h"
#include "sim/trace/rate_curve.h"

namespace signalbox::trace {

// `hour_utc8,quarter,relative_traffic`, one row a quarter of an hour without gaps: traffic relative
// to the peak, 0 being the first row's time. It repeats after the last row.
Result<RateCurve> read_tidal(std::string_view text);

}  // namespace signalbox::trace
