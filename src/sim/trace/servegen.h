// SPDX-License-Identifier: Apache-2.0
// Traffic of production models by client, as ServeGen published it (alibaba/ServeGen, arXiv
// 2505.09999): rates and burstiness in windows of ten minutes, lengths as quantiles; and streams
// drawn from that. Pure.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/describe.h"
#include "base/result.h"
#include "base/time.h"
#include "sim/trace/gaps.h"
#include "sim/trace/quantiles.h"
#include "sim/trace/rate_curve.h"
#include "sim/trace/trace.h"

namespace signalbox::trace {

inline constexpr Duration kServeGenWindow = std::chrono::seconds(600);

struct ServeGen {
  // Ten minutes in which a client calls; those without are left out.
  struct Window {
    Duration at{};
    double rate = 0;   // calls per second
    GapShape gaps;
  };
  // From `at` on; in tokens. Parts of the input are drawn apart and added.
  struct Lengths {
    Duration at{};
    std::vector<Quantiles> inputs;
    Quantiles output;
  };
  struct Client {
    std::int64_t id = 0;
    std::vector<Window> windows;   // in rising order
    std::vector<Lengths> lengths;  // in rising order; empty: as all clients together
  };
  std::vector<Client> clients;     // by id
  Lengths pooled;                  // of clients whose lengths are not recorded
  Duration lasts{};                // to the end of the last window

  double mean_rate() const;        // calls per second over all that was recorded
};

// Rows of one `model`. `rates`: `model,client,t_s,rate_rps,pattern,shape`. `lengths`:
// `model,client,t_s,field,mean,p01,...,p999,max`; of the fields those are read that are
// `input_tokens`, or `text_tokens` and `image_tokens`, and `output_tokens`. It is an error when a
// client has no lengths and there are none for `all`.
Result<ServeGen> read_servegen(std::string_view model, std::string_view rates,
                               std::string_view lengths);

// What to draw: a stretch of the record, as if there were `scale` times the calls.
struct ServeGenDraw {
  Duration start{};
  Duration length = std::chrono::minutes(20);
  double scale = 1;
  std::int64_t calls_max = 2'000'000;  // more expected calls are refused
};

template <typename Visitor>
void describe(Visitor& v, ServeGenDraw& c) {
  v(c.start, "start", "Time of the record at which the stream begins.", Range{0, 1e8});
  v(c.length, "length", "How long the stream is.", Range{1, 1e8});
  v(c.scale, "scale", "Factor of every client's rate.", Range{1e-6, 1e6});
  v(c.calls_max, "calls_max", "Calls of a stream at most.", Range{1, 1e8});
}

// An open-loop trace. Each client is a renewal process of its window's gaps, stationary within each
// window, so that expected calls are exactly rate × time; lengths of input and output are drawn
// apart, as they are recorded. Nothing is known of prefixes: every prompt is new.
Result<Trace> draw(const ServeGen& servegen, const ServeGenDraw& wanted, std::uint64_t seed);

// The total rate of one model: `model,t_s,rate_rps`, windows of ten minutes; a window that was not
// recorded is as the one before it.
Result<RateCurve> read_servegen_rates(std::string_view model, std::string_view total_rates);

}  // namespace signalbox::trace
