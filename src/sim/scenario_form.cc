// SPDX-License-Identifier: Apache-2.0
// Reads the form, checks what several settings together say, and makes the scenario of it.
#include "sim/scenario_form.h"

#include <algorithm>
#include <memory>
#include <set>

#include "base/rng.h"
#include "core/flow/config_of.h"
#include "core/perf/catalogue.h"
#include "core/spec/reader.h"
#include "sim/engine/catalogue.h"
#include "sim/peers/registry.h"

namespace signalbox::sim {
namespace {

using spec::quote;
using spec::suggestion;

// The measured engine that `profile` means: of the model before the `@`, or of `model`.
Result<const truth::Profile*> profile_of(std::string_view model, std::string_view profile) {
  const std::size_t at = profile.find('@');
  if (at == profile.npos) return truth::find_profile(model, profile);
  return truth::find_profile(profile.substr(0, at), profile.substr(at + 1));
}

constexpr std::string_view kOurs = "signalbox";

std::string item(const std::string& list, std::size_t i) {
  return list + "[" + std::to_string(i) + "]";
}

// `sentence` begins with a path in backquotes when it is about one: it stands at that place then.
void add_at(const std::string& block, const std::string& sentence, spec::Report& report) {
  std::string path = block;
  if (sentence.starts_with('`')) path += "." + sentence.substr(1, sentence.find('`', 1) - 1);
  const spec::Place& place = report.place_of(path);
  report.add(place, block, sentence);
}

// The engines of each entry, numbered on from entry to entry.
struct Numbers {
  std::size_t first = 0;
  std::size_t count = 0;
};

std::vector<Numbers> numbers_of(const std::vector<GroupForm>& fleet) {
  std::vector<Numbers> numbers;
  std::size_t next = 0;
  for (const GroupForm& form : fleet) {
    const auto count = static_cast<std::size_t>(std::max(0, form.group.count));
    numbers.push_back({next, count});
    next += count;
  }
  return numbers;
}

bool in_zone(const ScenarioForm& form, const FaultForm& fault, std::size_t entry) {
  return !fault.zone.empty() && form.fleet[entry].group.zone == fault.zone;
}

// The engines among which a fault's numbers count.
Numbers reach_of(const ScenarioForm& form, const FaultForm& fault) {
  const std::vector<Numbers> numbers = numbers_of(form.fleet);
  for (std::size_t i = 0; i < form.fleet.size(); ++i) {
    if (!fault.group.empty() && form.fleet[i].name == fault.group) return numbers[i];
  }
  return numbers.empty() ? Numbers{}
                         : Numbers{0, numbers.back().first + numbers.back().count};
}

// Those that are drawn when no kinds are named.
constexpr std::initializer_list<Fault::Kind> kDrawn = {
    Fault::Kind::Die,      Fault::Kind::Slow, Fault::Kind::Stall,  Fault::Kind::Fail,
    Fault::Kind::Throttle, Fault::Kind::Cut,  Fault::Kind::Freeze, Fault::Kind::Forget};

class Checker {
 public:
  Checker(const ScenarioForm& form, spec::Report& report) : form_(form), report_(report) {}

  void run() {
    policy();
    for (std::size_t i = 0; i < form_.fleet.size(); ++i) group(i);
    for (std::size_t i = 0; i < form_.fleet.size(); ++i) role(i);
    load();
    for (std::size_t i = 0; i < form_.faults.size(); ++i) fault(i);
    drawn_faults();
    expectations();
  }

 private:
  void policy() {
    if (form_.policy == kOurs) return;
    std::vector<std::string_view> names{kOurs};
    for (const peers::Peer& peer : peers::all()) names.push_back(peer.name);
    if (std::find(names.begin(), names.end(), form_.policy) != names.end()) return;
    report_.add("policy", quote(form_.policy) + " is nobody who decides" +
                              suggestion(form_.policy, names));
  }

  void group(std::size_t i) {
    const GroupForm& g = form_.fleet[i];
    const std::string path = item("fleet", i);
    if (!g.name.empty() && !names_.insert(g.name).second) {
      report_.add(path + ".name", quote(g.name) + " is the name of an earlier entry; change it.");
    }
    if (g.group.spec.kv_tokens < g.group.spec.block_tokens) {
      report_.add(path + ".engine.kv_tokens", "holds not one block of `block_tokens`; raise it.");
    }
    if (g.profile.empty()) return;
    if (g.group.steps) {
      report_.add(path + ".steps", "is a second source of step times beside `profile`; keep one.");
    }
    const auto profile = profile_of(g.group.model, g.profile);
    if (!profile) report_.add(path + ".profile", profile.error().message);
  }

  // Requests go to engines that prefill; somebody has to go on for each model.
  void role(std::size_t i) {
    const EngineGroup& g = form_.fleet[i].group;
    if (g.role == model::Role::Both) return;
    const model::Role other =
        g.role == model::Role::Prefill ? model::Role::Decode : model::Role::Prefill;
    for (const GroupForm& peer : form_.fleet) {
      if (peer.group.model == g.model && peer.group.role == other) return;
    }
    report_.add(item("fleet", i) + ".role", "no entry of the fleet does the other half for " +
                                                quote(g.model) + "; add one with role `" +
                                                std::string(spec::enum_name(other)) + "`.");
  }

  void load() {
    const LoadForm& l = form_.load;
    if (l.trace) {
      if (const auto fault = fault_of(*l.trace)) add_at("load.trace", *fault, report_);
    }
    if (!l.curve) return;
    if (const auto fault = fault_of(*l.curve)) add_at("load.curve", *fault, report_);
    if (l.load.arrivals.curve.points.empty()) return;
    report_.add("load.curve", "is a second curve beside `arrivals.curve`; keep one.");
  }

  void fault(std::size_t i) {
    const FaultForm& f = form_.faults[i];
    const std::string path = item("faults", i);
    const std::string kind(spec::enum_name(f.kind));
    const auto belongs = [&](const char* name, bool given, bool wanted) {
      if (given == wanted) return;
      if (wanted) {
        report_.add(path, "kind " + kind + " needs `" + name + "`; add it.");
      } else {
        report_.add(path + "." + name, "has no meaning for kind " + kind + "; remove it.");
      }
    };
    belongs("factor", f.factor.has_value(), amount_of(f.kind) == Amount::Factor);
    belongs("share", f.share.has_value(), amount_of(f.kind) == Amount::Share);
    belongs("lasts", f.lasts > Duration::zero(), !is_of_a_moment(f.kind));
    if (is_of_all(f.kind)) {
      belongs("group", !f.group.empty(), false);
      belongs("zone", !f.zone.empty(), false);
      belongs("engines", !f.engines.empty(), false);
    } else if (f.group.empty() && f.engines.empty() && f.zone.empty()) {
      report_.add(path, "says not which engines; add `engines`, `group` or `zone`.");
    }
    zone(f, path);
    engines(f, path);
  }

  void zone(const FaultForm& f, const std::string& path) {
    if (f.zone.empty()) return;
    if (!f.group.empty() || !f.engines.empty()) {
      report_.add(path + ".zone", "means all its engines; remove `group` and `engines`.");
    }
    for (const GroupForm& form : form_.fleet) {
      if (form.group.zone == f.zone) return;
    }
    report_.add(path + ".zone", "no entry of the fleet is in " + quote(f.zone) + ".");
  }

  void engines(const FaultForm& f, const std::string& path) {
    if (!f.group.empty() && !names_.contains(f.group)) {
      const std::vector<std::string_view> names(names_.begin(), names_.end());
      report_.add(path + ".group", "no entry of the fleet is called " + quote(f.group) +
                                       (names.empty() ? "; give it that `name`."
                                                      : suggestion(f.group, names)));
      return;
    }
    const auto count = static_cast<std::int64_t>(reach_of(form_, f).count);
    for (std::size_t i = 0; i < f.engines.size(); ++i) {
      if (f.engines[i] >= 0 && f.engines[i] < count) continue;
      report_.add(item(path + ".engines", i), "there are " + std::to_string(count) +
                                                  " engines, with numbers from 0 on.");
    }
  }

  void drawn_faults() {
    const DrawnFaults& d = form_.drawn_faults;
    if (d.from >= d.until) {
      report_.add("drawn_faults.until", "is not after `from`; make it later.");
    }
    for (std::size_t i = 0; i < d.kinds.size(); ++i) {
      if (!is_of_all(d.kinds[i])) continue;
      report_.add(item("drawn_faults.kinds", i),
                  "hits no single engine, so it is not drawn; write it in `faults`.");
    }
  }

  void expectations() {
    if (!form_.faults.empty() || form_.drawn_faults.count > 0) return;
    for (std::size_t i = 0; i < form_.expect.size(); ++i) {
      if (!form_.expect[i].baseline) continue;
      report_.add(item("expect", i),
                  "`baseline` is the same run without its faults, and this one has none.");
    }
  }

  const ScenarioForm& form_;
  spec::Report& report_;
  std::set<std::string, std::less<>> names_;
};

const spec::Node* child(const spec::Node& block, std::string_view key) {
  for (const spec::Node& node : block.items) {
    if (node.key == key && node.form == spec::Node::Form::Scalar) return &node;
  }
  return nullptr;
}

EngineGroup group_of(const GroupForm& form) {
  EngineGroup group = form.group;
  if (group.steps) group.spec.table = table_of(*group.steps);
  return group;
}

void add_faults(const ScenarioForm& form, const FaultForm& written, std::vector<Fault>& out) {
  const Numbers reach = reach_of(form, written);
  Fault fault;
  fault.kind = written.kind;
  fault.at = Instant{} + written.at;
  fault.lasts = written.lasts;
  fault.amount = written.factor ? *written.factor : written.share.value_or(1);
  if (is_of_all(written.kind)) {
    out.push_back(fault);
  } else if (!written.zone.empty()) {
    const std::vector<Numbers> numbers = numbers_of(form.fleet);
    for (std::size_t entry = 0; entry < numbers.size(); ++entry) {
      for (std::size_t i = 0; i < numbers[entry].count && in_zone(form, written, entry); ++i) {
        fault.engine = numbers[entry].first + i;
        out.push_back(fault);
      }
    }
  } else if (!written.engines.empty()) {
    for (const int engine : written.engines) {
      fault.engine = reach.first + static_cast<std::size_t>(engine);
      out.push_back(fault);
    }
  } else {
    for (std::size_t i = 0; i < reach.count; ++i) {
      fault.engine = reach.first + i;
      out.push_back(fault);
    }
  }
}

void draw_faults(const DrawnFaults& wanted, std::size_t engines, std::uint64_t seed,
                 std::vector<Fault>& out) {
  Rng rng(seed, "drawn faults");
  const std::vector<Fault::Kind> kinds =
      wanted.kinds.empty() ? std::vector<Fault::Kind>(kDrawn) : wanted.kinds;
  for (int i = 0; i < wanted.count; ++i) {
    Fault fault;
    fault.kind = kinds[rng.below(kinds.size())];
    fault.engine = rng.below(engines);
    fault.at = Instant{} + wanted.from +
               from_seconds(rng.uniform() * to_seconds(wanted.until - wanted.from));
    const double lasts = rng.exponential(to_seconds(wanted.lasts));
    const double share = rng.uniform(0.1, 0.9);
    const double factor = rng.uniform(2, 10);
    if (!is_of_a_moment(fault.kind)) fault.lasts = from_seconds(lasts);
    if (amount_of(fault.kind) == Amount::Share) fault.amount = share;
    if (amount_of(fault.kind) == Amount::Factor) fault.amount = factor;
    out.push_back(fault);
  }
}

}  // namespace

void prepare(GroupForm& form, const spec::Node& node) {
  const spec::Node* model = child(node, "model");
  const spec::Node* wanted = child(node, "profile");
  if (model == nullptr || wanted == nullptr) return;
  const auto profile = profile_of(model->text, wanted->text);
  if (!profile) return;
  const truth::Profile& p = **profile;
  form.group.spec = truth::EngineSpec::from(p);
  form.group.profile = p.model;
  form.group.accelerator = p.gpu;
  form.group.precision = p.precision;
  form.group.tensor_parallel = p.tensor_parallel;
  form.group.kv_bytes_per_token = static_cast<double>(p.kv_bytes_per_token);
  const perf::Accelerator* accelerator = perf::find_accelerator(p.gpu);
  form.group.usd_per_hour =
      accelerator != nullptr ? accelerator->usd_per_hour * p.tensor_parallel : 0;
}

ScenarioForm read_scenario(const spec::Document& document, spec::Report& report) {
  ScenarioForm form;
  spec::Reader reader(report, document.file);
  spec::read(reader, document.root, form, {});
  // What several settings say together can be judged once each has been read.
  if (report.clean()) Checker(form, report).run();
  return form;
}

std::optional<Scenario> make_scenario(const ScenarioForm& form, std::uint64_t seed,
                                      const ReadText& read, spec::Report& report) {
  Scenario s = form.world.scenario;
  const Scenario& objective = form.objective.scenario;
  s.ttft_wanted = objective.ttft_wanted;
  s.e2e_wanted = objective.e2e_wanted;
  s.objective_told = objective.objective_told;
  s.latency_weight = objective.latency_weight;
  s.seconds_per_usd = objective.seconds_per_usd;
  s.seed = seed;
  s.policy = form.policy;
  s.groups.clear();
  for (const GroupForm& group : form.fleet) {
    s.groups.push_back(group_of(group));
    if (!group.known) s.groups.back().profile.clear();
  }
  for (const FaultForm& fault : form.faults) add_faults(form, fault, s.faults);
  const std::vector<Numbers> numbers = numbers_of(form.fleet);
  draw_faults(form.drawn_faults, numbers.back().first + numbers.back().count, seed, s.faults);
  s.disorder = form.disorder;
  s.config = flow::config_of(form.gateway.gateway);
  s.config.decisions_kept = form.gateway.limits.limits.decisions_kept;
  s.first_token_timeout = form.gateway.timeouts.timeouts.first_token;
  s.idle_timeout = form.gateway.timeouts.timeouts.event_idle;
  s.load = form.load.load;
  if (form.load.curve) {
    auto curve = make_curve(*form.load.curve, read);
    if (!curve) report.add("load.curve.file", curve.error().message);
    else s.load.arrivals.curve = std::move(*curve);
  }
  if (form.load.trace) {
    auto trace = make_trace(*form.load.trace, read, seed);
    if (!trace) report.add("load.trace.file", trace.error().message);
    else s.load.trace = std::make_shared<const trace::Trace>(std::move(*trace));
  }
  if (!report.clean()) return std::nullopt;
  if (const auto fault = fault_of(s.load)) add_at("load", *fault, report);
  return report.clean() ? std::optional(std::move(s)) : std::nullopt;
}

bool wants_baseline(const ScenarioForm& form) {
  return std::any_of(form.expect.begin(), form.expect.end(),
                     [](const Expectation& e) { return e.baseline; });
}

}  // namespace signalbox::sim
