// SPDX-License-Identifier: Apache-2.0
// What all workers of a gateway share: the core's door, metrics, logs, and the names of requests.
// Every member is safe from any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/model/ids.h"
#include "io/gateway/metrics.h"
#include "io/host/core_host.h"
#include "io/telemetry/log_file.h"

namespace signalbox::gateway {

// Request ids as text. Those of ours are unique, carry the RequestId and go to engines, which may
// key what they run by them. Those that clients brought are theirs: many requests may have the same
// one; they are given back to them and remembered for the latest requests.
class RequestNames {
 public:
  // `origin` tells processes apart.
  explicit RequestNames(std::uint32_t origin) : origin_(origin) {}

  // The name that we give.
  std::string name(model::RequestId id) const;
  // Whether it looks like one that this process gives.
  bool is_ours(std::string_view name) const;
  // The client gave its request a name of its own, which does not look like ours.
  void remember(const std::string& name, model::RequestId id);
  // What the client knows it by: its own name while that is remembered, else ours.
  std::string known_as(model::RequestId id) const;
  // All that are known by it, oldest first; none for a name that never was or is forgotten.
  std::vector<model::RequestId> find(std::string_view name) const;

 private:
  static constexpr std::size_t kRememberedMax = 10'000;
  std::uint32_t origin_;
  mutable std::mutex mutex_;
  std::unordered_map<std::string, std::deque<model::RequestId>> given_;  // oldest first
  std::unordered_map<model::RequestId, std::string> name_of_;
  std::deque<model::RequestId> order_;
};

struct Shared {
  Shared(host::CoreHost& core, Metrics& gateway_metrics, std::uint32_t origin)
      : host(core), metrics(gateway_metrics), names(origin) {}

  host::CoreHost& host;
  Metrics& metrics;
  RequestNames names;
  std::atomic<telemetry::LogFile*> access_log{nullptr};
  std::atomic<std::int64_t> connections{0};
  std::atomic<std::int64_t> connections_max{0};
  std::atomic<std::int64_t> body_bytes{0};  // of requests that are here
  std::atomic<bool> draining{false};
};

}  // namespace signalbox::gateway
