// SPDX-License-Identifier: Apache-2.0
// The wheel: slot = tick mod kSlots, a doubly linked list per slot, a bitmap of used slots.
#include "io/net/timer.h"

#include <bit>

#include "base/check.h"

namespace signalbox::net {
namespace {

constexpr Duration kTick = std::chrono::milliseconds(1);

}  // namespace

void Timer::disarm() {
  if (wheel_ != nullptr) wheel_->unlink(*this);
}

TimerWheel::TimerWheel(Instant start) : start_(start) {}

TimerWheel::~TimerWheel() {
  for (Timer* head : slots_) {
    while (head != nullptr) {
      Timer* next = head->next_;
      head->wheel_ = nullptr;
      head->next_ = head->previous_ = nullptr;
      head = next;
    }
  }
}

std::uint64_t TimerWheel::tick_of(Instant t) const {
  if (t <= start_) return 0;
  return static_cast<std::uint64_t>((t - start_) / kTick);
}

void TimerWheel::arm(Timer& timer, Instant deadline) {
  if (timer.wheel_ != nullptr) unlink(timer);
  timer.deadline_ = deadline;
  if (deadline == kNever) return;
  // One tick later than the deadline's own, so that it never fires early.
  timer.tick_ = std::max(tick_of(deadline) + 1, tick_ + 1);
  link(timer);
}

void TimerWheel::link(Timer& timer) {
  const std::uint64_t slot = timer.tick_ % kSlots;
  timer.wheel_ = this;
  timer.previous_ = nullptr;
  timer.next_ = slots_[slot];
  if (timer.next_ != nullptr) timer.next_->previous_ = &timer;
  slots_[slot] = &timer;
  occupied_[slot / 64] |= 1ull << (slot % 64);
  ++armed_;
}

void TimerWheel::unlink(Timer& timer) {
  CHECK(timer.wheel_ == this);
  const std::uint64_t slot = timer.tick_ % kSlots;
  if (cursor_ == &timer) cursor_ = timer.next_;
  if (timer.next_ != nullptr) timer.next_->previous_ = timer.previous_;
  if (timer.previous_ != nullptr) timer.previous_->next_ = timer.next_;
  if (slots_[slot] == &timer) slots_[slot] = timer.next_;
  if (slots_[slot] == nullptr) occupied_[slot / 64] &= ~(1ull << (slot % 64));
  timer.wheel_ = nullptr;
  timer.next_ = timer.previous_ = nullptr;
  --armed_;
}

void TimerWheel::advance(Instant now) {
  const std::uint64_t target = tick_of(now);
  if (armed_ == 0) {
    tick_ = std::max(tick_, target);
    return;
  }
  // After a long sleep one turn visits every slot; more turns would visit them again in vain.
  if (target > tick_ + kSlots) tick_ = target - kSlots;
  while (tick_ < target) {
    ++tick_;
    cursor_ = slots_[tick_ % kSlots];
    while (cursor_ != nullptr) {
      Timer& timer = *cursor_;
      cursor_ = timer.next_;
      if (timer.tick_ > target) continue;  // a later turn's
      unlink(timer);
      // A copy lives through the call even if the callback destroys its timer.
      const auto callback = timer.callback_;
      callback();
    }
  }
}

Instant TimerWheel::next() const {
  if (armed_ == 0) return kNever;
  for (std::uint64_t step = 1; step <= kSlots;) {
    const std::uint64_t slot = (tick_ + step) % kSlots;
    const std::uint64_t word = occupied_[slot / 64] >> (slot % 64);
    if (word != 0) {
      step += static_cast<std::uint64_t>(std::countr_zero(word));
      return start_ + kTick * static_cast<std::int64_t>(tick_ + step);
    }
    step += 64 - slot % 64;
  }
  return start_ + kTick * static_cast<std::int64_t>(tick_ + kSlots);
}

}  // namespace signalbox::net
