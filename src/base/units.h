// SPDX-License-Identifier: Apache-2.0
// Durations and sizes as people write them in settings: `30s`, `250ms`, `1m30s`, `8MiB`. Pure.
#pragma once

#include <string>
#include <string_view>

#include "base/describe.h"
#include "base/result.h"
#include "base/time.h"

namespace signalbox {

// One or more numbers with units, greatest unit first, each unit once: d h m s ms us ns. Only the
// last number may have decimals. `0` needs no unit. Never negative. An error says what was read,
// what is wrong with it and what would be right.
Result<Duration> parse_duration(std::string_view text);

// A number with one unit: B, KiB, MiB, GiB, TiB, or the decimal kB, MB, GB, TB. Decimals are read
// when the result is a whole number of bytes. `0` needs no unit. Never negative.
Result<Bytes> parse_bytes(std::string_view text);

// Exact and canonical: parse_duration(format_duration(d)) == d for every d >= 0. A negative
// duration gets a leading `-`, which only people read.
std::string format_duration(Duration duration);

// Exact and canonical, the shortest of the exact spellings; parse_bytes reads it back.
std::string format_bytes(Bytes bytes);

}  // namespace signalbox
