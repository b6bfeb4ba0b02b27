// SPDX-License-Identifier: Apache-2.0
// A scenario as a file says it: one declaration per setting gives reading, checking and the
// reference page (docs/reference/scenario.md). Pure; files that it names are read by a function
// that the caller hands in.
//
//   const ScenarioForm form = read_scenario(document, report);
//   const std::optional<Scenario> scenario = make_scenario(form, seed, read, report);
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/spec/gateway.h"
#include "core/spec/resources.h"
#include "core/spec/problem.h"
#include "core/spec/resources.h"
#include "core/spec/tree.h"
#include "sim/expect.h"
#include "sim/scenario.h"
#include "sim/trace_form.h"

namespace signalbox::sim {

// Equal engines. The members of `group` that a profile decides are not settings of their own.
struct GroupForm {
  std::string name;                // empty: none that faults could mean
  std::string profile;
  bool known = true;
  EngineGroup group;
};

// Capacity and price as the profile has them, to be overridden.
void prepare(GroupForm& form, const spec::Node& node);

template <typename Visitor>
void describe(Visitor& v, GroupForm& c) {
  v(c.name, "name", "Name by which faults mean these engines.");
  v(c.group.model, "model", "What they serve, such as `Llama-3.1-70B`; equal names, one model.");
  v(c.profile, "profile",
    "Measured step times, `[MODEL@]GPU[xTP][/PRECISION]` such as `h100x4/fp8`; MODEL is the "
    "catalogue's name where `model` is another one; empty: see `steps`.");
  v(c.group.steps, "steps", "Step times by formula, for an engine without a profile.");
  v(c.known, "known", "Whether the gateway knows the profile; if not, it has to learn all of it.");
  v(c.group.count, "count", "Engines.", Range{1, 10'000});
  v(c.group.zone, "zone", "Name of what may fail together with these, such as a rack.");
  v(c.group.role, "role", "Phase that they run: `prefill` engines hand over to `decode` engines.");
  v(c.group.link, "link", "With role prefill: the way to those that decode.");
  v(c.group.kv_bytes_per_token, "kv_bytes_per_token",
    "What travels over it; with `profile`, known.", Range{1, 1e8});
  v(c.group.start, "start", "How long an engine takes to come up.");
  v(c.group.usd_per_hour, "usd_per_hour",
    "Price of one engine in USD; with `profile`, list price unless written.", Range{0, 1e5});
  v(c.group.concurrency_max, "concurrency_max",
    "Requests that the gateway sends to one at once; 0: as many as it tells.", Range{0, 1e6});
  v(c.group.dispatch, "dispatch", "When requests depart for them, see `dispatch` of a Pool.");
  v(c.group.drain_on_abort, "drain_on_abort", "An answer whose client left runs on to its end.");
  v(c.group.pins_ranks, "pins_ranks",
    "The gateway knows each rank as an endpoint and names it; else the engine picks the rank.");
  v(c.group.share_address, "share_address",
    "So many engines after each other are the ranks of one address, without a barrier.",
    Range{1, 64});
  v(c.group.adapters_apart, "adapters_apart", "Every other engine lists the first adapter alone.");
  v(c.group.spec, "engine", "The engine itself; with `profile`, its capacity is known.");
  v(c.group.dialect, "tells", "What the engine tells in answers and metrics.");
}

// Something that happens to some engines at one time; it heals by itself.
struct FaultForm {
  Fault::Kind kind = Fault::Kind::Die;
  Duration at{};
  Duration lasts{};
  std::string group;
  std::string zone;
  std::vector<int> engines;
  std::optional<double> factor;
  std::optional<double> share;
};

template <typename Visitor>
void describe(Visitor& v, FaultForm& c) {
  v(c.kind, "kind", "What happens.", spec::required);
  v(c.at, "at", "When, from the start of the run.", spec::Rule(Range{0, 1e9}, spec::required));
  v(c.lasts, "lasts", "How long; then it heals.", Range{0, 1e9});
  v(c.group, "group", "The engines of a fleet entry, all at the same time.");
  v(c.zone, "zone", "The engines of all entries in a zone, all at the same time.");
  v(c.engines, "engines", "Numbers of engines from 0: within `group`, else over all of the fleet.",
    Range{1, 10'000});
  v(c.factor, "factor", "Kinds slow, delay and reprice: so many times as long, as dear.",
    Range{0.01, 1000});
  v(c.share, "share", "Kinds fail, throttle, drop and cut: of requests or answers.",
    Range{0, 1});
}

// Faults that the seed draws, each of one engine: other ones for another seed.
struct DrawnFaults {
  int count = 0;
  std::vector<Fault::Kind> kinds;  // empty: every kind that hits one engine
  Duration from{};
  Duration until = std::chrono::seconds(60);
  Duration lasts = std::chrono::seconds(15);
};

template <typename Visitor>
void describe(Visitor& v, DrawnFaults& c) {
  v(c.count, "count", "How many.", Range{0, 10'000});
  v(c.kinds, "kinds", "Of which kinds; without any, of all that hit one engine.", Range{0, 18});
  v(c.from, "from", "The first may begin then.", Range{0, 1e9});
  v(c.until, "until", "The last begins before then.", Range{0, 1e9});
  v(c.lasts, "lasts", "Mean time that one lasts; it is drawn, too.", Range{0.001, 1e6});
}

// Synthetic, unless `trace` is there.
struct LoadForm {
  Load load;
  std::optional<TraceForm> trace;
  std::optional<CurveForm> curve;
};

template <typename Visitor>
void describe(Visitor& v, LoadForm& c) {
  v(c.trace, "trace", "Recorded traffic instead of drawn sessions.");
  v(c.curve, "curve", "A recorded rate over time, instead of `arrivals.curve`.");
  describe(v, c.load);
}

// Passes on the fields of those names. What is read at the start alone has no meaning here.
template <typename Visitor>
struct Only {
  Visitor& visitor;
  std::vector<std::string_view> names;

  template <typename T>
  void operator()(T& field, std::string_view name, std::string_view meaning, spec::Rule rule = {}) {
    rule.at_start = false;
    for (const std::string_view wanted : names) {
      if (wanted == name) visitor(field, name, meaning, rule);
    }
  }
};

struct TimeoutsForm {
  spec::Timeouts timeouts;
};

template <typename Visitor>
void describe(Visitor& v, TimeoutsForm& c) {
  Only<Visitor> only{v, {"first_token", "event_idle"}};
  describe(only, c.timeouts);
}

struct LimitsForm {
  spec::Limits limits;
};

template <typename Visitor>
void describe(Visitor& v, LimitsForm& c) {
  Only<Visitor> only{v, {"decisions_kept"}};
  describe(only, c.limits);
}

// The settings of the gateway that mean something here, under their own names.
struct GatewayForm {
  spec::Gateway gateway;
  LimitsForm limits;
  TimeoutsForm timeouts;
};

template <typename Visitor>
void describe(Visitor& v, GatewayForm& c) {
  v(c.limits, "limits", "The most that it takes up.");
  v(c.timeouts, "timeouts", "How long it waits for engines.");
  Only<Visitor> only{v, {"admission", "cache", "dispatch", "prediction", "ledger", "recovery",
                         "routing"}};
  describe(only, c.gateway);
}

// What stands between clients, gateway and engines: the rest of a Scenario.
struct WorldForm {
  Scenario scenario;
};

template <typename Visitor>
void describe(Visitor& v, WorldForm& c) {
  describe(v, c.scenario);
}

struct ObjectiveForm {
  Scenario scenario;
};

template <typename Visitor>
void describe(Visitor& v, ObjectiveForm& c) {
  describe_objective(v, c.scenario);
}

struct ScenarioForm {
  std::string shows;
  std::uint64_t seed = 1;
  std::string policy = "signalbox";
  std::vector<GroupForm> fleet;
  LoadForm load;
  std::vector<FaultForm> faults;
  DrawnFaults drawn_faults;
  Disorder disorder;
  GatewayForm gateway;
  ObjectiveForm objective;
  WorldForm world;
  std::vector<Expectation> expect;
};

template <typename Visitor>
void describe(Visitor& v, ScenarioForm& c) {
  v(c.shows, "shows", "A sentence on what this scenario shows.");
  v(c.seed, "seed", "Draws everything that is not written.", Range{0, 9e15});
  v(c.policy, "policy", "Who decides: `signalbox`, or a peer's rule such as `round-robin`.");
  v(c.fleet, "fleet", "The engines.", spec::Rule(Range{1, 1000}, spec::required));
  v(c.load, "load", "Who comes when, what they ask, how they behave.");
  v(c.faults, "faults", "What goes wrong.", Range{0, 10'000});
  v(c.drawn_faults, "drawn_faults", "What goes wrong besides, as the seed draws it.");
  v(c.gateway, "gateway", "Settings of the gateway, as in its own configuration.");
  v(c.objective, "objective", "When an answer is good, and what speed is worth.");
  v(c.world, "world", "What lies between clients, gateway and engines.");
  v(c.disorder, "disorder", "How far events stray from the order in which things happen.");
  v(c.expect, "expect",
    "What has to hold at the end, such as `ttft.p99 < 2s` or `goodput >= 0.95 * baseline`.",
    Range{0, 1000});
}

// Reads a document and checks all that needs no other file; every problem goes to the report with
// its place and path. The form may be used when the report stays clean.
ScenarioForm read_scenario(const spec::Document& document, spec::Report& report);

// The run of that seed. Reads the files that the form names; what is wrong with them goes to the
// report, and there is nothing then.
std::optional<Scenario> make_scenario(const ScenarioForm& form, std::uint64_t seed,
                                      const ReadText& read, spec::Report& report);

// Whether some line compares with the run without faults.
bool wants_baseline(const ScenarioForm& form);

// The form that says this scenario; nothing when it plays a trace, which no file may have. What has
// no meaning (the share of a fault that has none) is left out.
std::optional<ScenarioForm> form_of(const Scenario& scenario);

// As a tree and as YAML, without what is at its default; reading it gives the same form.
spec::Node to_tree(const ScenarioForm& form);
std::string to_yaml(const ScenarioForm& form);

// docs/reference/scenario.md.
std::string scenario_markdown();

}  // namespace signalbox::sim

template <>
struct signalbox::EnumNames<signalbox::sim::Fault::Kind> {
  using Kind = sim::Fault::Kind;
  static constexpr std::pair<Kind, std::string_view> values[] = {
      {Kind::Die, "die"},           {Kind::Slow, "slow"},     {Kind::Stall, "stall"},
      {Kind::Fail, "fail"},         {Kind::Throttle, "throttle"}, {Kind::Cut, "cut"},
      {Kind::Freeze, "freeze"},     {Kind::Forget, "forget"}, {Kind::Leave, "leave"},
      {Kind::Unlist, "unlist"},     {Kind::Reprice, "reprice"}, {Kind::Drain, "drain"},
      {Kind::Sever, "sever"},       {Kind::Delay, "delay"},   {Kind::Drop, "drop"},
      {Kind::Sleep, "sleep"},       {Kind::Reclaim, "reclaim"}, {Kind::Reassign, "reassign"}};
};
