// SPDX-License-Identifier: Apache-2.0
// Takes, keeps, ages and buries idle engine connections.
#include "io/gateway/upstream_pool.h"

#include <algorithm>

namespace signalbox::gateway {

std::unique_ptr<Upstream> UpstreamPool::take(model::EndpointId endpoint) {
  const auto found = idle_.find(endpoint);
  if (found == idle_.end()) return nullptr;
  auto& list = found->second;
  if (list.empty()) return nullptr;
  // Newest first: if the newest is too old, all are, and sweep() closes them.
  if (loop_.now() - list.back()->idle_since() >= limits_.age_max) return nullptr;
  std::unique_ptr<Upstream> upstream = std::move(list.back());
  list.pop_back();
  return upstream;
}

void UpstreamPool::give_back(std::unique_ptr<Upstream> upstream) {
  auto& list = idle_[upstream->endpoint()];
  if (list.size() >= limits_.idle_max) {
    upstream->abandon();
    bury(std::move(upstream));
    return;
  }
  list.push_back(std::move(upstream));
}

void UpstreamPool::drop(Upstream& upstream) {
  const auto found = idle_.find(upstream.endpoint());
  if (found == idle_.end()) return;
  auto& list = found->second;
  const auto at = std::find_if(list.begin(), list.end(),
                               [&](const auto& entry) { return entry.get() == &upstream; });
  if (at == list.end()) return;
  upstream.abandon();
  bury(std::move(*at));
  list.erase(at);
}

void UpstreamPool::sweep() {
  for (auto entry = idle_.begin(); entry != idle_.end();) {
    auto& list = entry->second;
    const auto young = std::find_if(list.begin(), list.end(), [&](const auto& upstream) {
      return loop_.now() - upstream->idle_since() < limits_.age_max;
    });
    for (auto old = list.begin(); old != young; ++old) {
      (*old)->abandon();
      bury(std::move(*old));
    }
    list.erase(list.begin(), young);
    entry = list.empty() ? idle_.erase(entry) : std::next(entry);
  }
}

void UpstreamPool::forget(model::EndpointId endpoint) {
  const auto found = idle_.find(endpoint);
  if (found == idle_.end()) return;
  for (auto& upstream : found->second) {
    upstream->abandon();
    bury(std::move(upstream));
  }
  idle_.erase(found);
}

std::size_t UpstreamPool::idle() const {
  std::size_t count = 0;
  for (const auto& [endpoint, list] : idle_) count += list.size();
  return count;
}

}  // namespace signalbox::gateway
