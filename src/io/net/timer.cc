// SPDX-License-Identifier: Apache-2.0
// Two wheels in one array, a doubly linked list per slot, a bitmap of used slots. A near slot holds
// timers of one tick; a far slot those of kNear ticks (of this turn or a later one), which move
// near when the first of these ticks has come.
#include "io/net/timer.h"

#include <algorithm>
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
  const std::uint64_t slot = timer.tick_ - tick_ < kNear
                                 ? timer.tick_ % kNear
                                 : kNear + timer.tick_ / kNear % kFar;
  timer.wheel_ = this;
  timer.slot_ = static_cast<std::uint32_t>(slot);
  timer.previous_ = nullptr;
  timer.next_ = slots_[slot];
  if (timer.next_ != nullptr) timer.next_->previous_ = &timer;
  slots_[slot] = &timer;
  occupied_[slot / 64] |= 1ull << (slot % 64);
  ++armed_;
}

void TimerWheel::unlink(Timer& timer) {
  CHECK(timer.wheel_ == this);
  const std::uint64_t slot = timer.slot_;
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
  while (armed_ > 0 && tick_ < target) {
    const std::uint64_t next = next_tick();
    if (next > target) break;
    tick_ = next;
    if (tick_ % kNear == 0) cascade();
    run(tick_ % kNear);
  }
  tick_ = std::max(tick_, target);
}

// The far slot of the ticks that begin now: what is due within them moves near.
void TimerWheel::cascade() {
  cursor_ = slots_[kNear + tick_ / kNear % kFar];
  while (cursor_ != nullptr) {
    Timer& timer = *cursor_;
    cursor_ = timer.next_;
    if (timer.tick_ - tick_ >= kNear) continue;  // a later turn's
    unlink(timer);
    link(timer);
  }
}

void TimerWheel::run(std::uint64_t slot) {
  cursor_ = slots_[slot];
  while (cursor_ != nullptr) {
    Timer& timer = *cursor_;
    unlink(timer);
    // A copy lives through the call even if the callback destroys its timer.
    const auto callback = timer.callback_;
    callback();
  }
}

// The next tick at which there is something to do: a near slot, or a far one to move.
std::uint64_t TimerWheel::next_tick() const {
  std::uint64_t next = ~0ull;
  for (std::uint64_t step = 1; step < kNear;) {
    const std::uint64_t slot = (tick_ + step) % kNear;
    const std::uint64_t word = occupied_[slot / 64] >> (slot % 64);
    if (word != 0) {
      next = tick_ + step + static_cast<std::uint64_t>(std::countr_zero(word));
      break;
    }
    step += 64 - slot % 64;
  }
  const std::uint64_t far = occupied_[kNear / 64];
  if (far != 0) {
    const std::uint64_t block = tick_ / kNear + 1;
    const int ahead = std::countr_zero(std::rotr(far, static_cast<int>(block % kFar)));
    next = std::min(next, (block + static_cast<std::uint64_t>(ahead)) * kNear);
  }
  return next;
}

Instant TimerWheel::next() const {
  if (armed_ == 0) return kNever;
  return start_ + kTick * static_cast<std::int64_t>(next_tick());
}

}  // namespace signalbox::net
