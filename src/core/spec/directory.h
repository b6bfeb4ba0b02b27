// SPDX-License-Identifier: Apache-2.0
// Gives names their ids. An id stays with its name across reloads and is never given to another; a
// name that left long ago is forgotten, and would come back with a new id. Pools and endpoints come
// back with a new one at once: requests of their earlier life may still be running. One thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <tuple>

#include "core/model/ids.h"

namespace signalbox::spec {

// Ids of one sort, from 1.
template <typename Key, typename IdType>
class IdTable {
 public:
  IdType get(const Key& key, std::uint64_t now) {
    Entry& entry = entries_[key];
    if (!entry.id) entry.id = IdType(++last_);
    entry.used = now;
    return entry.id;
  }
  // The same, but a name that the last compilation did not ask for gets a new id.
  IdType get_of_this_life(const Key& key, std::uint64_t now) {
    if (const auto at = entries_.find(key); at != entries_.end() && at->second.used + 1 < now) {
      entries_.erase(at);
    }
    return get(key, now);
  }
  // Forgets names not used at `now`, oldest first, until at most `most` names of the past remain.
  void prune(std::uint64_t now, std::size_t most) {
    std::size_t past = 0;
    std::map<std::uint64_t, std::size_t> ages;
    for (const auto& [key, entry] : entries_) {
      if (entry.used < now) ++ages[entry.used], ++past;
    }
    std::uint64_t cut = 0;  // entries used up to here go
    for (auto age = ages.begin(); past > most && age != ages.end(); ++age) {
      past -= age->second;
      cut = age->first;
    }
    std::erase_if(entries_, [&](const auto& item) { return item.second.used <= cut; });
  }
  std::size_t size() const { return entries_.size(); }

 private:
  struct Entry {
    IdType id;
    std::uint64_t used = 0;
  };
  std::map<Key, Entry> entries_;
  typename IdType::Value last_ = 0;
};

class Directory {
 public:
  static constexpr std::size_t kPastNamesMax = 16'384;  // of each sort

  // Starts a compilation: names asked for from here on are the present ones.
  void begin() { ++now_; }
  // Ends it: forgets what is long gone.
  void end();

  model::ModelId model(const std::string& name) { return models_.get(name, now_); }
  model::PoolId pool(const std::string& name) { return pools_.get_of_this_life(name, now_); }
  model::TenantId tenant(const std::string& name) { return tenants_.get(name, now_); }
  model::ObjectiveId objective(const std::string& name) { return objectives_.get(name, now_); }
  // By public name, so that a Route that replaces a Model's own keeps the id.
  model::RouteId route(const std::string& name) { return routes_.get(name, now_); }
  model::EndpointId endpoint(model::PoolId pool, const std::string& address, int rank) {
    return endpoints_.get_of_this_life({pool, address, rank}, now_);
  }

 private:
  std::uint64_t now_ = 0;
  IdTable<std::string, model::ModelId> models_;
  IdTable<std::string, model::PoolId> pools_;
  IdTable<std::string, model::TenantId> tenants_;
  IdTable<std::string, model::ObjectiveId> objectives_;
  IdTable<std::string, model::RouteId> routes_;
  IdTable<std::tuple<model::PoolId, std::string, int>, model::EndpointId> endpoints_;
};

}  // namespace signalbox::spec
