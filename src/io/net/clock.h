// SPDX-License-Identifier: Apache-2.0
// The real clock. The one place where the server reads time; the core gets it as an argument.
#pragma once

#include <cstdint>

#include "base/time.h"

namespace signalbox::net {

// CLOCK_MONOTONIC. Comparable across the threads and processes of one machine until it reboots.
Instant now();

// Nanoseconds since 1970 for logs; never used to decide.
std::int64_t unix_nanos();

}  // namespace signalbox::net
