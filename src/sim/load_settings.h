// SPDX-License-Identifier: Apache-2.0
// The load of a scenario: who comes when, what they ask, how their programs and they themselves
// behave. Plain values, each setting declared once.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/describe.h"
#include "base/time.h"
#include "sim/arrivals.h"
#include "sim/lengths.h"
#include "sim/sdk.h"
#include "sim/trace/trace.h"

namespace signalbox::sim {

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

// What two settings together make impossible, as a full sentence; nothing: all is well. Ranges are
// checked by whoever reads the settings.
std::optional<std::string> fault_of(const Load& load);

}  // namespace signalbox::sim

template <>
struct signalbox::EnumNames<signalbox::sim::TooLong> {
  using TooLong = sim::TooLong;
  static constexpr std::pair<TooLong, std::string_view> values[] = {{TooLong::Cut, "cut"},
                                                                    {TooLong::Skip, "skip"}};
};
