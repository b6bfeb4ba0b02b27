// SPDX-License-Identifier: Apache-2.0
// Reads quarters of hours.
#include "sim/trace/tidal.h"

#include <string>

#include "sim/trace/table.h"

namespace signalbox::trace {

Result<RateCurve> read_tidal(std::string_view text) {
  enum Column { Hour, Quarter, Traffic };
  Table table(text, "tidal trace", {"hour_utc8", "quarter", "relative_traffic"});
  RateCurve curve;
  curve.between = RateCurve::Between::Step;
  std::int64_t next = -1;  // quarter of the day
  while (table.next()) {
    const std::int64_t hour = table.integer(Hour, {0, 23});
    const std::int64_t at = hour * 4 + table.integer(Quarter, {0, 3});
    const double rate = table.real(Traffic, {0, 1e6});
    if (next >= 0 && at != next) {
      table.fail("`hour_utc8` and `quarter` do not follow the row before; write every quarter of "
                 "an hour, in order.");
    }
    next = (at + 1) % 96;
    const auto rows = static_cast<std::int64_t>(curve.points.size());
    curve.points.push_back({std::chrono::minutes(15 * rows), rate});
  }
  if (!table.error() && curve.points.empty()) table.fail("there is no row; write one a quarter.");
  if (table.error()) return *table.error();
  curve.period = std::chrono::minutes(15) * static_cast<std::int64_t>(curve.points.size());
  return curve;
}

}  // namespace signalbox::trace
