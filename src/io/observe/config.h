// SPDX-License-Identifier: Apache-2.0
// How often and how patiently engines are looked at.
#pragma once

#include <chrono>

#include "base/describe.h"
#include "base/time.h"

namespace signalbox::observe {

struct Config {
  Duration interval = std::chrono::seconds(1);            // between looks; engines may want longer
  double jitter = 0.1;                                    // an interval may be longer by this share
  Duration models_interval = std::chrono::seconds(30);    // between looks at the list of models
  Duration connect_within = std::chrono::seconds(1);
  Duration answer_within = std::chrono::seconds(2);       // from the request to the whole answer
  Duration retry_min = std::chrono::milliseconds(100);    // after the first failure, then doubled
  Duration retry_max = std::chrono::milliseconds(800);    // so that recovery is seen within 1 s
  Bytes answer_bytes_max{4 << 20};
  int concurrency_max = 128;                              // looks in progress at once
};

template <typename Visitor>
void describe(Visitor& v, Config& c) {
  v(c.interval, "interval", "Time between two looks at an engine's load.", Range{0.05, 60});
  v(c.jitter, "jitter", "Share by which an interval is lengthened at random.", Range{0, 1});
  v(c.models_interval, "models_interval", "Time between two looks at an engine's models.",
    Range{1, 3600});
  v(c.connect_within, "connect_within", "Time an engine has to accept a connection.",
    Range{0.01, 60});
  v(c.answer_within, "answer_within", "Time an engine has to answer a look.", Range{0.01, 60});
  v(c.retry_min, "retry_min", "Wait after the first failed look; doubles with each further one.",
    Range{0.01, 10});
  v(c.retry_max, "retry_max", "Longest wait after a failed look.", Range{0.01, 60});
  v(c.answer_bytes_max, "answer_bytes_max", "Largest answer that is read.", Range{4096, 1e9});
  v(c.concurrency_max, "concurrency_max", "Looks in progress at once.", Range{1, 65536});
}

}  // namespace signalbox::observe
