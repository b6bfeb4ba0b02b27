// SPDX-License-Identifier: Apache-2.0
// What a simulated run consists of: engines, load, faults, disorder, settings. Plain values; the
// seed draws everything that is not written here, so (scenario, seed) names one run exactly.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/describe.h"
#include "base/time.h"
#include "core/flow/config.h"
#include "core/model/fleet.h"
#include "sim/engine/spec.h"
#include "sim/engine/start.h"
#include "sim/load_settings.h"

namespace signalbox::sim {

// An engine that no table knows, by the two formulas of its step times.
struct Steps {
  double prefill_ms = 10;
  double prefill_token_ms = 0.02;
  double prefill_square_ms = 1e-6;
  double decode_ms = 8;
  double decode_sequence_ms = 0.05;
  double decode_token_ms = 4e-5;
};

template <typename Visitor>
void describe(Visitor& v, Steps& c) {
  v(c.prefill_ms, "prefill_ms", "A step with prefill: whatever is in it.", Range{1e-3, 1e5});
  v(c.prefill_token_ms, "prefill_token_ms", "And for each prompt token.", Range{0, 1e3});
  v(c.prefill_square_ms, "prefill_square_ms",
    "And for each prompt token and token of context before it.", Range{0, 1});
  v(c.decode_ms, "decode_ms", "A step without prefill: whatever is in it.", Range{1e-3, 1e5});
  v(c.decode_sequence_ms, "decode_sequence_ms", "And for each sequence.", Range{0, 1e3});
  v(c.decode_token_ms, "decode_token_ms", "And for each token of context.", Range{0, 1});
}

truth::StepTable table_of(const Steps& steps);

// What an engine tells, in its answers and its metrics. What it does not tell is absent.
struct Dialect {
  bool asked_to_stream = false;  // always, as llama.cpp is: of plain answers, too, one sees tokens
  bool usage = true;        // prompt and completion tokens in answers
  bool cached = true;       // and the cached ones
  bool timings = false;     // queue, prefill and decode time in answers
  bool incarnation = true;  // when the process started
  bool slots = true;
  bool kv = true;           // KV use and capacity
  bool counters = true;     // totals and histograms
};

template <typename Visitor>
void describe(Visitor& v, Dialect& c) {
  v(c.asked_to_stream, "asked_to_stream",
    "Plain answers are asked for as streams, so their first tokens are seen.");
  v(c.usage, "usage", "Prompt and completion tokens, in answers.");
  v(c.cached, "cached", "And the cached ones of the prompt.");
  v(c.timings, "timings", "Queue, prefill and decode time, in answers.");
  v(c.incarnation, "incarnation", "When the process started.");
  v(c.slots, "slots", "How many sequences run at once.");
  v(c.kv, "kv", "KV use and capacity.");
  v(c.counters, "counters", "Totals and histograms.");
}

// The way on which a prefill engine hands the KV of a prompt to one that decodes.
struct Link {
  double gbps = 200;                                  // of one engine, one transfer after the other
  Duration latency = std::chrono::microseconds(200);  // of each transfer
};

template <typename Visitor>
void describe(Visitor& v, Link& c) {
  v(c.gbps, "gbps", "Bandwidth of one engine in Gbit/s.", Range{0.001, 1e6});
  v(c.latency, "latency", "Of each transfer.", Range{0, 60});
}

// One pool of equal engines; each draws its own hidden distortion.
struct EngineGroup {
  std::string model = "model-a";  // pools of the same name serve the same model
  truth::EngineSpec spec;
  std::optional<Steps> steps;     // the formula of spec.table, where it is one
  std::string profile;            // of the core's catalogue; empty: the core knows nothing
  std::string accelerator;
  std::string precision;
  int tensor_parallel = 1;
  int count = 2;
  model::Role role = model::Role::Both;
  Link link;                             // with role prefill
  double kv_bytes_per_token = 327'680;   // that travels over it; of Llama-3.1-70B in bf16
  std::string zone;                      // what may fail together; empty: none
  truth::StartTimes start;
  double usd_per_hour = 2;
  int concurrency_max = 0;        // 0: what the engine tells
  model::DispatchMode dispatch = model::DispatchMode::Immediate;
  bool drain_on_abort = false;    // an answer whose client left runs on to its end
  bool pins_ranks = true;         // each rank is an endpoint; else the engine spreads requests
  int share_address = 1;          // engines, each with one rank, that answer at one address
  bool adapters_apart = false;    // every other engine lists the first adapter alone
  Dialect dialect;
};

// Of each engine: one, or one a rank.
int endpoints_of(const EngineGroup& group);

struct Fault {
  enum class Kind : std::uint8_t {
    Die,       // refuses connections; every sequence is lost; a new incarnation returns
    Slow,      // steps take `amount` times as long
    Stall,     // no step ends
    Fail,      // a share `amount` of requests is answered 5xx
    Throttle,  // a share `amount` of requests is answered 429
    Cut,       // a share `amount` of answers breaks off
    Freeze,    // metrics stay as they are
    Forget,    // the prefix cache is lost; has no duration
    Leave,     // the endpoint leaves the fleet; after the duration a new one joins
    Unlist,    // the engine lists other models than its pool's
    Reprice,   // the pool costs `amount` times as much, and its concurrency limit changes
    Drain,     // our time to drain is over
    Sever,     // nothing passes between the gateway and the engine, which goes on
    Delay,     // what passes takes `amount` times as long
    Drop,      // a share `amount` of requests gets lost on the way
    Sleep,     // the engine gives its memory away; what runs is lost; then it wakes
    Reclaim,   // its node is taken away after notice of this duration; a new one starts
    Reassign,  // a reload gives its pool another model, which nobody asks for
  };
  Kind kind = Kind::Die;
  Instant at{};
  Duration lasts{};
  std::size_t engine = 0;  // modulo the number of engines
  double amount = 1;
};

// What `amount` is of a kind; whether it hits the fleet and no engine; whether it has no duration.
enum class Amount : std::uint8_t { None, Factor, Share };
Amount amount_of(Fault::Kind kind);
bool is_of_all(Fault::Kind kind);
bool is_of_a_moment(Fault::Kind kind);

// How far events stray from the order in which things happened, within what the grammar allows.
struct Disorder {
  double late = 0;                                       // share of events
  Duration late_by = std::chrono::milliseconds(20);      // of these, mean
  double duplicate = 0;                                  // share of events told twice
  double action_late = 0;                                // share of actions that wait for a thread
  Duration timer_late = std::chrono::microseconds(200);  // most
};

template <typename Visitor>
void describe(Visitor& v, Disorder& c) {
  v(c.late, "late", "Share of events that reach the core late.", Range{0, 1});
  v(c.late_by, "late_by", "By how much, on the mean.", Range{0, 60});
  v(c.duplicate, "duplicate", "Share of events that are told twice.", Range{0, 1});
  v(c.action_late, "action_late", "Share of actions that wait for their thread.", Range{0, 1});
  v(c.timer_late, "timer_late", "How late a timer is, at most.", Range{0, 10});
}

struct Scenario {
  std::uint64_t seed = 1;
  std::string policy = "signalbox";  // who decides: our core, or a name of peers/registry.h
  std::vector<EngineGroup> groups = {EngineGroup{}};
  Load load;
  std::vector<Fault> faults;
  Disorder disorder;
  flow::Config config;
  int threads = 2;                                            // I/O threads
  Duration network = std::chrono::microseconds(300);          // one way
  Duration connect_timeout = std::chrono::seconds(1);         // for an engine that nothing reaches
  Duration scrape_interval = std::chrono::seconds(1);         // ± 10 %
  Duration scrape_lag = std::chrono::milliseconds(50);        // mean
  Duration digest_interval = std::chrono::milliseconds(50);
  Duration cache_event_lag = std::chrono::milliseconds(5);    // of KV events, for who listens
  double cache_event_loss = 0;  // share of batches that are lost, and replayed with the next
  Duration first_token_timeout = std::chrono::seconds(60);
  Duration idle_timeout = std::chrono::seconds(30);
  Duration give_up = std::chrono::hours(6);  // virtual time after which the run is stuck
  Duration ttft_wanted = std::chrono::seconds(2);             // goodput counts what meets both
  Duration e2e_wanted = std::chrono::seconds(30);
  bool objective_told = false;                                // the routes have it as Objective
  double latency_weight = 1;                                  // w of the routing score
  double seconds_per_usd = 0;                                 // and λ
  bool check = true;   // watches every event and action from outside (checker.h)
  bool replay = true;  // hands the recorded events to a second core, which has to act the same
};

// What lies between clients, gateway and engines.
template <typename Visitor>
void describe(Visitor& v, Scenario& c) {
  v(c.threads, "threads", "I/O threads of the gateway.", Range{1, 64});
  v(c.network, "network", "Time from gateway to engine, one way.", Range{0, 10});
  v(c.connect_timeout, "connect_timeout", "How long an engine that nothing reaches is waited for.",
    Range{0.001, 600});
  v(c.scrape_interval, "scrape_interval", "Between two looks at an engine, 10 % more or less.",
    Range{0.01, 3600});
  v(c.scrape_lag, "scrape_lag", "Mean age of a look when it is told.", Range{0, 600});
  v(c.digest_interval, "digest_interval", "Between two digests of all streams of a thread.",
    Range{0.001, 10});
  v(c.cache_event_lag, "cache_event_lag", "Age of KV events, for rules that listen to them.",
    Range{0, 60});
  v(c.cache_event_loss, "cache_event_loss",
    "Share of their batches that are lost and told with the next.", Range{0, 0.99});
  v(c.give_up, "give_up", "Virtual time after which a run counts as stuck.", Range{1, 1e9});
  v(c.check, "check", "Whether invariants are checked after every event.");
  v(c.replay, "replay", "Whether all events are decided again by a second core, to compare.");
}

// When an answer is good, and what speed is worth to the gateway.
template <typename Visitor>
void describe_objective(Visitor& v, Scenario& c) {
  v(c.ttft_wanted, "ttft", "Longest time to first token of a good answer.", Range{0, 1e6});
  v(c.e2e_wanted, "e2e", "Longest time to the end of a good answer.", Range{0, 1e6});
  v(c.objective_told, "told", "The gateway is told: its routes have this Objective.");
  v(c.latency_weight, "latency_weight",
    "Weight of the time to first token in the routing score, as of an Objective.",
    Range{0.1, 64});
  v(c.seconds_per_usd, "seconds_per_usd", "What a USD is worth in it, as of an Objective.",
    Range{0, 1e6});
}

// Any scenario: a fleet, settings, load, faults and disorder, drawn by the seed. The faults heal.
Scenario random_scenario(std::uint64_t seed, std::int64_t requests);

}  // namespace signalbox::sim
