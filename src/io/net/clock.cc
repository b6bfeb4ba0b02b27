// SPDX-License-Identifier: Apache-2.0
// Reads the real clocks.
#include "io/net/clock.h"

#include <ctime>

namespace signalbox::net {
namespace {

std::int64_t read(clockid_t clock) {
  timespec t{};
  clock_gettime(clock, &t);
  return t.tv_sec * 1'000'000'000 + t.tv_nsec;
}

}  // namespace

Instant now() { return Instant(Duration(read(CLOCK_MONOTONIC))); }

std::int64_t unix_nanos() { return read(CLOCK_REALTIME); }

}  // namespace signalbox::net
