// SPDX-License-Identifier: Apache-2.0
// Hands out turns to watches. Retired watches are freed from a timer of their own, since one of
// their callbacks may be what retired them.
#include "io/observe/observer.h"

#include <algorithm>
#include <map>
#include <utility>

#include "base/check.h"
#include "io/observe/watch.h"

namespace signalbox::observe {
namespace {

constexpr std::size_t kStorageKept = 8;

}  // namespace

Observer::Observer(net::Loop& loop, Config config, Rng rng, Sink sink)
    : loop_(loop),
      config_(config),
      rng_(rng),
      sink_(std::move(sink)),
      sweep_([this] { retired_.clear(); }),
      settle_([this] {
        if (std::exchange(settling_, false) && sink_.settled) sink_.settled();
      }),
      scratch_(new char[kScratch]) {}

Observer::~Observer() {
  queue_.clear();
  for (auto& watch : watches_) watch->close();
}

void Observer::set_targets(std::vector<Target> targets) {
  pumping_ = true;  // nobody gets a turn while the lists change
  std::multimap<std::string, std::unique_ptr<Watch>> before;
  for (auto& watch : watches_) before.emplace(watch->identity(), std::move(watch));
  watches_.clear();
  std::vector<Watch*> fresh;
  std::vector<std::pair<Watch*, std::vector<Member>>> kept;
  for (Target& target : targets) {
    if (auto same = before.find(Watch::identity(target)); same != before.end()) {
      same->second->set_pace(target.interval, target.answer_within);
      kept.emplace_back(same->second.get(), std::move(target.members));
      watches_.push_back(std::move(same->second));
      before.erase(same);
    } else {
      watches_.push_back(std::make_unique<Watch>(*this, std::move(target)));
      fresh.push_back(watches_.back().get());
    }
  }
  for (auto& [identity, watch] : before) retire(std::move(watch));
  settling_ = true;
  unsettled_ = static_cast<std::size_t>(std::count_if(
      watches_.begin(), watches_.end(), [](const auto& watch) { return !watch->settled(); }));
  if (unsettled_ == 0) loop_.arm_after(settle_, Duration::zero());
  for (Watch* watch : fresh) watch->start();
  // Members last: they are told states, and whoever listens may call this function again.
  for (auto& [watch, members] : kept) {
    if (!watch->closed()) watch->set_members(std::move(members));
  }
  pumping_ = false;
  pump();
}

void Observer::retire(std::unique_ptr<Watch> watch) {
  queue_.erase(std::remove(queue_.begin(), queue_.end(), watch.get()), queue_.end());
  watch->close();
  retired_.push_back(std::move(watch));
  loop_.arm_after(sweep_, Duration::zero());
}

void Observer::enqueue(Watch& watch) {
  queue_.push_back(&watch);
  pump();
}

void Observer::pump() {
  if (std::exchange(pumping_, true)) return;
  while (active_ < static_cast<std::size_t>(config_.concurrency_max) && !queue_.empty()) {
    Watch* next = queue_.front();
    queue_.pop_front();
    ++active_;
    next->granted();
  }
  pumping_ = false;
}

void Observer::finished() {
  CHECK(active_ > 0);
  --active_;
  pump();
}

void Observer::settled_one() {
  if (unsettled_ > 0 && --unsettled_ == 0 && settling_) loop_.arm_after(settle_, Duration::zero());
}

std::string Observer::take_storage() {
  if (storage_.empty()) return {};
  std::string out = std::move(storage_.back());
  storage_.pop_back();
  return out;
}

void Observer::give_storage(std::string storage) {
  if (storage.capacity() > 64 && storage_.size() < kStorageKept) {
    storage_.push_back(std::move(storage));
  }
}

}  // namespace signalbox::observe
