// SPDX-License-Identifier: Apache-2.0
// Settings of admission: how much may wait here, and for how long.
#pragma once

#include "base/describe.h"
#include "base/time.h"

namespace signalbox::admission {

struct Config {
  int queue_requests_max = 4096;
  Bytes queue_bytes_max{256ll << 20};
  Duration queue_wait_max = std::chrono::seconds(60);
};

template <typename Visitor>
void describe(Visitor& v, Config& c) {
  v(c.queue_requests_max, "queue_requests_max",
    "Requests that may wait for an endpoint; more are answered 503. 0: none waits.",
    Range{0, 1e6});
  v(c.queue_bytes_max, "queue_bytes_max", "Bodies of waiting requests, in all.", Range{0, 1e12});
  v(c.queue_wait_max, "queue_wait_max", "Longest wait for an endpoint; then the answer is 503.",
    Range{0.001, 86400});
}

}  // namespace signalbox::admission
