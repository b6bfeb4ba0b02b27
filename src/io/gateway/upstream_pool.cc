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
  if (!current(*upstream)) return close(std::move(upstream));
  auto& list = idle_[upstream->endpoint()];
  if (list.size() >= limits_.idle_max) return close(std::move(upstream));
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
    for (auto old = list.begin(); old != young; ++old) close(std::move(*old));
    list.erase(list.begin(), young);
    entry = list.empty() ? idle_.erase(entry) : std::next(entry);
  }
}

void UpstreamPool::publish(std::shared_ptr<const Published> published) {
  published_ = std::move(published);
  for (auto entry = idle_.begin(); entry != idle_.end();) {
    auto& list = entry->second;
    const auto gone = std::stable_partition(list.begin(), list.end(), [&](const auto& upstream) {
      return current(*upstream);
    });
    for (auto at = gone; at != list.end(); ++at) close(std::move(*at));
    list.erase(gone, list.end());
    entry = list.empty() ? idle_.erase(entry) : std::next(entry);
  }
}

bool UpstreamPool::current(const Upstream& upstream) const {
  if (!published_) return true;
  const EndpointAccess* access = published_->endpoint(upstream.endpoint());
  return access != nullptr && upstream.reaches(*access);
}

void UpstreamPool::close(std::unique_ptr<Upstream> upstream) {
  upstream->abandon();
  bury(std::move(upstream));
}

std::size_t UpstreamPool::idle() const {
  std::size_t count = 0;
  for (const auto& [endpoint, list] : idle_) count += list.size();
  return count;
}

}  // namespace signalbox::gateway
