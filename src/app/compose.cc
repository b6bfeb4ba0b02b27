// SPDX-License-Identifier: Apache-2.0
// Groups what engines serve into models and pools.
#include "app/compose.h"

#include <algorithm>
#include <set>

namespace signalbox::app {

namespace {

// What another engine of the same model has told stays.
void add_adapters(spec::Model& model, const std::string& id,
                  const std::vector<engine::ModelInfo>& infos) {
  for (const engine::ModelInfo& adapter : infos) {
    if (adapter.parent != id) continue;
    const bool known = std::find(model.loras.begin(), model.loras.end(), adapter.id) !=
                       model.loras.end();
    if (!known) model.loras.push_back(adapter.id);
  }
}

}  // namespace

std::string resource_name(const std::string& text, const std::vector<std::string>& taken) {
  constexpr std::size_t kLongest = 50;
  std::string name;
  for (const char c : text) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
    if (plain) name += c;
    else if (c >= 'A' && c <= 'Z') name += static_cast<char>(c - 'A' + 'a');
    else if (!name.empty() && name.back() != '-') name += '-';
    if (name.size() == kLongest) break;
  }
  while (!name.empty() && name.back() == '-') name.pop_back();
  if (name.empty()) name = "model";
  std::string candidate = name;
  for (int i = 2; std::find(taken.begin(), taken.end(), candidate) != taken.end(); ++i) {
    candidate = name + "-" + std::to_string(i);
  }
  return candidate;
}

void compose(spec::Config& config, const std::vector<spec::Url>& addresses,
             const std::map<std::string, engine::Discovery>& found) {
  config.models.clear();
  config.pools.clear();
  std::vector<std::string> model_names;
  std::vector<std::string> pool_names;
  std::map<std::string, std::string> model_of;                              // by model id
  std::map<std::pair<std::string, model::EngineKind>, std::size_t> pool_of; // index in pools

  std::set<std::string> seen;
  for (const spec::Url& url : addresses) {
    const std::string key = spec::host_port(url);
    const auto entry = found.find(key);
    if (entry == found.end() || !seen.insert(key).second) continue;
    const engine::Discovery& discovery = entry->second;
    for (const engine::ModelInfo& info : discovery.facts.models) {
      if (!info.parent.empty()) continue;
      const auto [model, fresh] = model_of.try_emplace(info.id);
      if (fresh) {
        model->second = resource_name(info.id, model_names);
        model_names.push_back(model->second);
        spec::Model made;
        made.name = model->second;
        if (made.name != info.id) made.public_name = info.id;
        made.params_b = info.params_b;
        made.context_tokens = std::max<std::int64_t>(0, info.context_tokens);
        config.models.push_back(std::move(made));
      }
      add_adapters(*std::find_if(config.models.begin(), config.models.end(),
                                 [&](const auto& made) { return made.name == model->second; }),
                   info.id, discovery.facts.models);
      const auto [pool, new_pool] =
          pool_of.try_emplace({info.id, discovery.kind}, config.pools.size());
      if (new_pool) {
        spec::Pool made;
        made.name = resource_name(model->second + "-" + std::string(name(discovery.kind)),
                                  pool_names);
        pool_names.push_back(made.name);
        made.model.name = model->second;
        made.engine = discovery.kind;
        config.pools.push_back(std::move(made));
      }
      auto& endpoints = config.pools[pool->second].endpoints;
      // An engine may list a model twice.
      if (endpoints.empty() || endpoints.back() != url) endpoints.push_back(url);
    }
  }
  const auto by_name = [](const auto& a, const auto& b) { return a.name < b.name; };
  std::sort(config.models.begin(), config.models.end(), by_name);
  std::sort(config.pools.begin(), config.pools.end(), by_name);
}

}  // namespace signalbox::app
