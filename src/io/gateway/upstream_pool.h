// SPDX-License-Identifier: Apache-2.0
// Idle engine connections of one worker, by endpoint, newest first. Bounded per endpoint, in age.
// Keeps: each one was made as the present configuration would make it.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <vector>

#include "base/time.h"
#include "core/model/ids.h"
#include "io/gateway/published.h"
#include "io/gateway/upstream.h"

namespace signalbox::gateway {

class UpstreamPool {
 public:
  struct Limits {
    std::size_t idle_max = 64;  // per endpoint
    Duration age_max{};         // an older idle connection is closed rather than used
  };

  explicit UpstreamPool(net::Loop& loop) : loop_(loop) {}

  void set_limits(const Limits& limits) { limits_ = limits; }

  // An idle connection to the endpoint, or null.
  std::unique_ptr<Upstream> take(model::EndpointId endpoint);
  // Keeps a connection whose exchange is over.
  void give_back(std::unique_ptr<Upstream> upstream);
  // The engine closed an idle connection.
  void drop(Upstream& upstream);
  // Destroys at the end of the turn: the connection may be on the call stack.
  void bury(std::unique_ptr<Upstream> upstream) { buried_.push_back(std::move(upstream)); }

  // At the end of each turn.
  void end_turn() { buried_.clear(); }
  // Closes what is too old; about once a second.
  void sweep();
  // Closes idle connections to endpoints that are gone, or reached in another way now. One that is
  // in use comes back to no pool.
  void publish(std::shared_ptr<const Published> published);
  std::size_t idle() const;

 private:
  bool current(const Upstream& upstream) const;
  void close(std::unique_ptr<Upstream> upstream);

  net::Loop& loop_;
  std::shared_ptr<const Published> published_;  // null before the first
  Limits limits_;
  std::map<model::EndpointId, std::vector<std::unique_ptr<Upstream>>> idle_;
  std::vector<std::unique_ptr<Upstream>> buried_;
};

}  // namespace signalbox::gateway
