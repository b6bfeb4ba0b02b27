// SPDX-License-Identifier: Apache-2.0
// Two linked lists through one array of entries.
#include "core/admission/wait_queue.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace signalbox::admission {

// Behind all that have waited as long or longer. Who comes back had been at the front.
void WaitQueue::insert(List& list, Links Entry::*links, std::uint32_t entry) {
  const Instant since = entries_[entry].since;
  std::uint32_t after = 0;
  if (list.last != 0 && since < entries_[list.last].since) {
    after = list.first;
    while (entries_[after].since <= since) after = (entries_[after].*links).after;
  }
  const std::uint32_t before = after == 0 ? list.last : (entries_[after].*links).before;
  entries_[entry].*links = {before, after};
  (before == 0 ? list.first : (entries_[before].*links).after) = entry;
  (after == 0 ? list.last : (entries_[after].*links).before) = entry;
  ++list.size;
}

void WaitQueue::unlink(List& list, Links Entry::*links, std::uint32_t entry) {
  const Links at = entries_[entry].*links;
  (at.before == 0 ? list.first : (entries_[at.before].*links).after) = at.after;
  (at.after == 0 ? list.last : (entries_[at.after].*links).before) = at.before;
  --list.size;
}

bool WaitQueue::takes(std::int64_t bytes) const {
  return size() < static_cast<std::size_t>(std::max(0, config_.queue_requests_max)) &&
         bytes <= config_.queue_bytes_max.value - bytes_;
}

bool WaitQueue::push(model::ModelId model, model::RequestId request, std::int64_t bytes,
                     Instant since) {
  if (!takes(bytes)) return false;
  if (free_.empty()) {
    free_.push_back(static_cast<std::uint32_t>(entries_.size()));
    entries_.emplace_back();
  }
  const std::uint32_t entry = free_.back();
  free_.pop_back();
  const bool fresh = by_request_.try_emplace(request, entry).second;
  CHECK(fresh);
  entries_[entry] = Entry{request, model, bytes, since, {}, {}};
  insert(all_, &Entry::all, entry);
  insert(by_model_[model], &Entry::same_model, entry);
  bytes_ += bytes;
  return true;
}

void WaitQueue::erase(std::uint32_t entry) {
  const Entry& e = entries_[entry];
  const auto list = by_model_.find(e.model);
  unlink(all_, &Entry::all, entry);
  if (list->second.stop == entry) list->second.stop = e.same_model.after;
  unlink(list->second, &Entry::same_model, entry);
  if (list->second.size == 0) by_model_.erase(list);
  bytes_ -= e.bytes;
  by_request_.erase(e.request);
  entries_[entry] = {};
  free_.push_back(entry);
}

model::RequestId WaitQueue::front(model::ModelId model) const {
  const auto at = by_model_.find(model);
  return at == by_model_.end() ? model::RequestId() : entries_[at->second.first].request;
}

model::RequestId WaitQueue::next(model::RequestId request) const {
  const auto at = by_request_.find(request);
  if (at == by_request_.end()) return {};
  return entries_[entries_[at->second].same_model.after].request;
}

void WaitQueue::stop_at(model::RequestId request) {
  const auto at = by_request_.find(request);
  CHECK(at != by_request_.end());
  by_model_.at(entries_[at->second].model).stop = at->second;
}

model::RequestId WaitQueue::resume(model::ModelId model) {
  const auto at = by_model_.find(model);
  if (at == by_model_.end()) return {};
  const std::uint32_t stop = std::exchange(at->second.stop, 0);
  return entries_[stop == 0 ? at->second.first : stop].request;
}

void WaitQueue::pop(model::ModelId model) {
  const auto at = by_model_.find(model);
  CHECK(at != by_model_.end());
  erase(at->second.first);
}

bool WaitQueue::remove(model::ModelId model, model::RequestId request) {
  const auto at = by_request_.find(request);
  if (at == by_request_.end() || entries_[at->second].model != model) return false;
  erase(at->second);
  return true;
}

Instant WaitQueue::next_deadline() const {
  if (all_.first == 0) return kNever;
  const Instant since = entries_[all_.first].since;
  return config_.queue_wait_max >= kNever - since ? kNever : since + config_.queue_wait_max;
}

model::RequestId WaitQueue::pop_expired(Instant now) {
  if (all_.first == 0 || next_deadline() > now) return {};
  const model::RequestId request = entries_[all_.first].request;
  erase(all_.first);
  return request;
}

std::size_t WaitQueue::size(model::ModelId model) const {
  const auto at = by_model_.find(model);
  return at == by_model_.end() ? 0 : at->second.size;
}

std::vector<model::ModelId> WaitQueue::models() const {
  std::vector<model::ModelId> models;
  for (const auto& [model, list] : by_model_) models.push_back(model);
  return models;
}

}  // namespace signalbox::admission
