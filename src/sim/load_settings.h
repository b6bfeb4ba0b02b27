// SPDX-License-Identifier: Apache-2.0
// The load of a scenario: who comes when, what they ask, how their programs and they themselves
// behave. Plain values, each setting declared once.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "base/describe.h"
#include "base/time.h"
#include "sim/trace/quantiles.h"
#include "sim/trace/rate_curve.h"
#include "sim/trace/trace.h"

namespace signalbox::sim {

// A length in tokens: lognormal, or by its quantiles; always cut to [least, most].
struct Lengths {
  double median = 400;
  double spread = 0.8;  // deviation of the logarithm; 0: all are the median
  std::int64_t least = 1;
  std::int64_t most = 4096;
  std::vector<trace::Quantile> quantiles = {};  // instead of median and spread, if there are any
};

template <typename Visitor>
void describe(Visitor& v, Lengths& c) {
  v(c.median, "median", "Half of the lengths are shorter, in tokens.", Range{0, 1e7});
  v(c.spread, "spread", "Deviation of the logarithm; 0: all are the median.", Range{0, 5});
  v(c.least, "least", "Shorter ones are made this long.", Range{1, 1e7});
  v(c.most, "most", "Longer ones are cut to this.", Range{1, 1e7});
  v(c.quantiles, "quantiles", "Points of the distribution, instead of median and spread.",
    Range{0, 1000});
}

// An on/off process: arrivals come in bursts of random length. The mean rate stays what it is.
struct Bursts {
  Duration on{};        // mean length of a burst; 0: no bursts
  Duration off{};       // and of the time between two
  double quiet = 0;     // rate between bursts, relative to that within
};

template <typename Visitor>
void describe(Visitor& v, Bursts& c) {
  v(c.on, "on", "Mean length of a burst; 0: there are none.", Range{0, 1e6});
  v(c.off, "off", "Mean time between two bursts.", Range{0, 1e6});
  v(c.quiet, "quiet", "Rate between bursts, relative to the rate within one.", Range{0, 1});
}

// When the independent ones come: gaps of a Gamma distribution, on a clock that runs as fast as the
// curve and the bursts say.
struct Arrivals {
  double cv = 1;                          // deviation of gaps over their mean; 1: Poisson
  Bursts bursts;
  trace::RateCurve curve;                 // relative to the load's rate
};

template <typename Visitor>
void describe(Visitor& v, Arrivals& c) {
  v(c.cv, "cv", "Coefficient of variation of the gaps; 0: regular, 1: Poisson.", Range{0, 30});
  v(c.bursts, "bursts", "Arrivals in bursts.");
  v(c.curve, "curve", "The rate over time, relative to the load's: a ramp, a tide.");
}

// The client's library, by default as the OpenAI SDKs are (openai-python `_base_client.py`).
struct Sdk {
  Duration timeout = std::chrono::seconds(600);       // to the first byte; 0: none
  int retries_max = 2;                                // after 408, 409, 429, 5xx, no connection
  Duration backoff = std::chrono::milliseconds(500);  // before the first; doubles; less up to 25 %
  Duration backoff_max = std::chrono::seconds(8);
  Duration retry_after_max = std::chrono::seconds(120);  // longer ones end the trying
};

template <typename Visitor>
void describe(Visitor& v, Sdk& c) {
  v(c.timeout, "timeout", "Longest wait for the first byte of an answer; 0: for ever.",
    Range{0, 1e6});
  v(c.retries_max, "retries_max", "Times that a failed request is sent again.", Range{0, 100});
  v(c.backoff, "backoff", "Wait before the first retry, less up to a quarter; then it doubles.",
    Range{0, 1e4});
  v(c.backoff_max, "backoff_max", "Longest such wait.", Range{0, 1e5});
  v(c.retry_after_max, "retry_after_max", "A longer Retry-After is not waited for.",
    Range{0, 1e6});
}

// What becomes of a recorded prompt that no engine can hold.
enum class TooLong : std::uint8_t {
  Cut,   // its end is left out
  Skip,  // the call is left out; in a session, with all that waits for it
};

// Either synthetic sessions, or a trace.
//
// Synthetic sessions begin whatever happens to earlier ones. A session's next prompt is its last
// one, the answer, and something new. A trace without sessions is open loop: calls come at their
// times. In a trace of sessions a call waits for the answer it follows.
struct Load {
  std::int64_t requests = 2000;     // tasks in all: what is tried again or asked twice is one
  Duration lasts{};                 // nobody comes later; 0: no end
  Duration warm_up{};               // who comes earlier is served, and not counted as a task
  double sessions_per_second = 10;  // mean, before the arrivals' curve
  Lengths system;                   // system prompts, shared by sessions
  int system_prompts = 8;
  double zipf = 1;                  // exponent of their popularity
  Lengths turn;                     // what each turn adds
  Lengths answer{120, 0.8, 1, 2048};
  double follow_up = 0.5;           // chance that a completed turn is followed by another
  Duration think = std::chrono::seconds(2);  // mean time before it
  double leavers = 0.05;            // share of tasks whose user leaves
  Duration patience = std::chrono::seconds(1);  // of these, mean
  double plain = 0.2;               // share of requests that are not streamed
  double capped = 0.5;              // share of requests with max_tokens
  double adapters = 0;              // share of requests for one of two LoRA adapters
  int tenants = 0;
  int tenant_cap = 0;               // requests of a tenant in flight; 0: unlimited
  double others_per_second = 0;     // requests that reach the engines past us
  Arrivals arrivals;                // of sessions, unless the trace has their starts
  double pressers = 0;              // share of tasks whose user asks twice if no answer begins
  Duration impatience = std::chrono::seconds(5);  // of these, mean
  Sdk sdk;

  std::shared_ptr<const trace::Trace> trace;  // null: synthetic
  int sessions_at_once = 0;         // of a trace: the next starts when one ends; 0: by arrivals
  Duration ramp = std::chrono::seconds(60);  // in which the first of them begin, one by one
  TooLong too_long = TooLong::Cut;
};

template <typename Visitor>
void describe(Visitor& v, Load& c) {
  v(c.requests, "requests", "Tasks in all; whoever tries again still has one.", Range{1, 1e9});
  v(c.lasts, "lasts", "Time after which nobody comes any more; 0: no end.", Range{0, 1e9});
  v(c.warm_up, "warm_up", "Who comes earlier is served, and not counted.", Range{0, 1e9});
  v(c.sessions_per_second, "sessions_per_second", "Sessions that begin per second.",
    Range{1e-6, 1e5});
  v(c.arrivals, "arrivals", "How sessions are spread over time.");
  v(c.system, "system", "System prompts, shared by sessions.");
  v(c.system_prompts, "system_prompts", "How many of them there are.", Range{1, 1e6});
  v(c.zipf, "zipf", "Exponent of their popularity; 0: all alike.", Range{0, 5});
  v(c.turn, "turn", "What each turn adds to the prompt.");
  v(c.answer, "answer", "Lengths of answers.");
  v(c.follow_up, "follow_up", "Chance that a completed turn is followed by another.",
    Range{0, 1});
  v(c.think, "think", "Mean time before it.", Range{0, 1e6});
  v(c.leavers, "leavers", "Share of tasks whose user leaves before the end.", Range{0, 1});
  v(c.patience, "patience", "Mean time after which they do.", Range{0, 1e6});
  v(c.pressers, "pressers", "Share of tasks whose user asks again while no answer begins.",
    Range{0, 1});
  v(c.impatience, "impatience", "Mean time after which they do.", Range{0, 1e6});
  v(c.plain, "plain", "Share of requests that are not streamed.", Range{0, 1});
  v(c.capped, "capped", "Share of requests with max_tokens.", Range{0, 1});
  v(c.adapters, "adapters", "Share of sessions for one of two LoRA adapters.", Range{0, 1});
  v(c.tenants, "tenants", "Tenants; 0: nobody is told apart.", Range{0, 1e4});
  v(c.tenant_cap, "tenant_cap", "Requests of a tenant in flight; 0: unlimited.", Range{0, 1e6});
  v(c.others_per_second, "others_per_second", "Requests that reach engines past the gateway.",
    Range{0, 1e5});
  v(c.sdk, "sdk", "What the client's library does by itself.");
  v(c.sessions_at_once, "sessions_at_once",
    "Sessions of a trace that run at any time; 0: they begin as they arrive.", Range{0, 1e6});
  v(c.ramp, "ramp", "Time in which the first of them begin, evenly.", Range{0, 1e6});
  v(c.too_long, "too_long", "What becomes of a recorded prompt that no engine can hold.");
}

}  // namespace signalbox::sim

template <>
struct signalbox::EnumNames<signalbox::sim::TooLong> {
  using TooLong = sim::TooLong;
  static constexpr std::pair<TooLong, std::string_view> values[] = {{TooLong::Cut, "cut"},
                                                                    {TooLong::Skip, "skip"}};
};
