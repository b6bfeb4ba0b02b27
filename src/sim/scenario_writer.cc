// SPDX-License-Identifier: Apache-2.0
// Writes a scenario down, as short as a person would.
#include <algorithm>
#include <string_view>
#include <vector>

#include "core/flow/config_of.h"
#include "core/spec/field_writer.h"
#include "sim/scenario_form.h"

namespace signalbox::sim {
namespace {

using spec::Node;

bool same(const Node& a, const Node& b) {
  return a.form == b.form && a.text == b.text &&
         std::equal(a.items.begin(), a.items.end(), b.items.begin(), b.items.end(),
                    [](const Node& x, const Node& y) { return x.key == y.key && same(x, y); });
}

const Node* child(const Node& block, std::string_view key) {
  for (const Node& item : block.items) {
    if (item.key == key) return &item;
  }
  return nullptr;
}

// The block without what `plain` says as well, but for the keys that are to be kept.
Node without(const Node& block, const Node& plain, const std::vector<std::string_view>& kept = {}) {
  Node out = block;
  out.items.clear();
  for (const Node& item : block.items) {
    const Node* other = child(plain, item.key);
    const bool keep = std::find(kept.begin(), kept.end(), item.key) != kept.end();
    if (keep || other == nullptr) {
      out.items.push_back(item);
    } else if (item.form == Node::Form::Mapping && other->form == Node::Form::Mapping) {
      Node inner = without(item, *other);
      if (!inner.items.empty()) out.items.push_back(std::move(inner));
    } else if (!same(item, *other)) {
      out.items.push_back(item);
    }
  }
  return out;
}

template <typename T>
Node tree_of(T value) {
  return spec::write(value);
}

// What an entry of the fleet is when no more is written of it than this.
Node plain_group(const Node& entry) {
  GroupForm form;
  prepare(form, entry);
  return tree_of(std::move(form));
}

GroupForm form_of(const EngineGroup& group) {
  GroupForm form;
  form.group = group;
  form.known = group.accelerator.empty() || !group.profile.empty();
  if (group.accelerator.empty()) return form;
  form.profile = group.accelerator + "x" + std::to_string(group.tensor_parallel) + "/" +
                 group.precision;
  if (form.known && group.profile != group.model) form.profile = group.profile + "@" + form.profile;
  return form;
}

FaultForm form_of(const Fault& fault, std::size_t engines) {
  FaultForm form;
  form.kind = fault.kind;
  form.at = fault.at.time_since_epoch();
  if (!is_of_a_moment(fault.kind)) form.lasts = fault.lasts;
  if (!is_of_all(fault.kind)) form.engines = {static_cast<int>(fault.engine % engines)};
  if (amount_of(fault.kind) == Amount::Factor) form.factor = fault.amount;
  if (amount_of(fault.kind) == Amount::Share) form.share = fault.amount;
  return form;
}

}  // namespace

std::optional<ScenarioForm> form_of(const Scenario& scenario) {
  if (scenario.load.trace) return std::nullopt;
  ScenarioForm form;
  form.seed = scenario.seed;
  form.policy = scenario.policy;
  std::size_t engines = 0;
  for (const EngineGroup& group : scenario.groups) {
    form.fleet.push_back(form_of(group));
    engines += static_cast<std::size_t>(group.count);
  }
  form.load.load = scenario.load;
  for (const Fault& fault : scenario.faults) form.faults.push_back(form_of(fault, engines));
  form.disorder = scenario.disorder;
  form.gateway.gateway = flow::gateway_of(scenario.config);
  form.gateway.limits.limits = form.gateway.gateway.limits;
  form.gateway.timeouts.timeouts.first_token = scenario.first_token_timeout;
  form.gateway.timeouts.timeouts.event_idle = scenario.idle_timeout;
  form.objective.scenario = form.world.scenario = scenario;
  return form;
}

spec::Node to_tree(const ScenarioForm& form) {
  Node root = without(tree_of(form), tree_of(ScenarioForm{}));
  for (Node& list : root.items) {
    if (list.key == "fleet") {
      for (Node& entry : list.items) {
        entry = without(entry, plain_group(entry), {"model", "profile", "count"});
      }
    }
    if (list.key == "faults") {
      for (Node& fault : list.items) fault = without(fault, tree_of(FaultForm{}), {"kind", "at"});
    }
  }
  return root;
}

std::string to_yaml(const ScenarioForm& form) { return spec::to_yaml(to_tree(form)); }

}  // namespace signalbox::sim
