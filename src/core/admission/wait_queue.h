// SPDX-License-Identifier: Apache-2.0
// Requests that wait for an endpoint of their model: first come, first served per model, bounded in
// number and bytes over all models. Under the core's lock. All calls are O(1), unless said.
// Every request may wait equally long, so the order of arrival is the order of deadlines.
#pragma once

#include <cstdint>
#include <map>
#include <unordered_map>
#include <vector>

#include "base/time.h"
#include "core/admission/config.h"
#include "core/model/ids.h"

namespace signalbox::admission {

class WaitQueue {
 public:
  explicit WaitQueue(const Config& config) : config_(config) {}

  // Holds for those who wait already, too; a lower limit sends nobody away before the deadline.
  void set_config(const Config& config) { config_ = config; }

  // Whether one more may wait that holds so many bytes in memory, >= 0.
  bool takes(std::int64_t bytes) const;
  // False: too many requests or bytes wait, and the request was not taken. It must not be waiting
  // already. `since`: now, or when it had begun to wait before; then it gets its place back, in
  // O(those before it).
  [[nodiscard]] bool push(model::ModelId model, model::RequestId request, std::int64_t bytes,
                          Instant since);
  // The one that waits longest for the model; 0: nobody.
  model::RequestId front(model::ModelId model) const;
  // The one behind `request` among those that wait for the same model; 0: none, or it waits not.
  model::RequestId next(model::RequestId request) const;
  // A walk over those who wait for a model, in slices: it stops at a waiting request, and goes on
  // there, or with the one behind it should it have left; else, and after the last, at the front.
  // Each stop is good for one resumption.
  void stop_at(model::RequestId request);
  model::RequestId resume(model::ModelId model);
  // Removes the front. The model's queue must not be empty.
  void pop(model::ModelId model);
  // Removes the request; false: it does not wait for the model.
  bool remove(model::ModelId model, model::RequestId request);

  // When the oldest of all has waited long enough; kNever: nobody waits.
  Instant next_deadline() const;
  // Removes and returns the oldest of all if its deadline has come; else 0.
  model::RequestId pop_expired(Instant now);

  bool empty(model::ModelId model) const { return size(model) == 0; }
  std::size_t size(model::ModelId model) const;
  std::size_t size() const { return by_request_.size(); }
  std::int64_t bytes() const { return bytes_; }
  // Models that somebody waits for, ascending. O(those).
  std::vector<model::ModelId> models() const;

 private:
  struct Links {
    std::uint32_t before = 0;
    std::uint32_t after = 0;
  };
  struct Entry {
    model::RequestId request;
    model::ModelId model;
    std::int64_t bytes = 0;
    Instant since{};
    Links all;         // among all, by arrival
    Links same_model;  // among those of its model, by arrival
  };
  struct List {
    std::uint32_t first = 0;
    std::uint32_t last = 0;
    std::uint32_t stop = 0;  // where a walk goes on; 0: at the front
    std::size_t size = 0;
  };

  void insert(List& list, Links Entry::*links, std::uint32_t entry);
  void unlink(List& list, Links Entry::*links, std::uint32_t entry);
  void erase(std::uint32_t entry);

  Config config_;
  std::vector<Entry> entries_{1};    // 0: none; grows with use up to the limit, then is reused
  std::vector<std::uint32_t> free_;
  std::unordered_map<model::RequestId, std::uint32_t> by_request_;  // looked up, never walked
  std::map<model::ModelId, List> by_model_;                         // no empty lists
  List all_;
  std::int64_t bytes_ = 0;
};

}  // namespace signalbox::admission
