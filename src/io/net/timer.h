// SPDX-License-Identifier: Apache-2.0
// A timer wheel: arming and disarming cost a few nanoseconds, since every request moves several
// deadlines and almost none of them ever fires. Resolution one millisecond; never early.
#pragma once

#include <array>
#include <cstdint>
#include <functional>

#include "base/time.h"

namespace signalbox::net {

class TimerWheel;

// A deadline with a callback. Belongs to whoever waits; disarms itself when destroyed. Not movable:
// the wheel links to it.
class Timer {
 public:
  explicit Timer(std::function<void()> callback) : callback_(std::move(callback)) {}
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;
  ~Timer() { disarm(); }

  bool armed() const { return wheel_ != nullptr; }
  Instant deadline() const { return deadline_; }
  void disarm();

 private:
  friend class TimerWheel;
  std::function<void()> callback_;
  Timer* next_ = nullptr;
  Timer* previous_ = nullptr;
  TimerWheel* wheel_ = nullptr;
  std::uint64_t tick_ = 0;
  std::uint32_t slot_ = 0;
  Instant deadline_{};
};

class TimerWheel {
 public:
  explicit TimerWheel(Instant start);
  TimerWheel(const TimerWheel&) = delete;
  TimerWheel& operator=(const TimerWheel&) = delete;
  ~TimerWheel();

  // (Re)arms: the callback runs from advance() once `deadline` has passed.
  void arm(Timer& timer, Instant deadline);

  // Runs what is due. Callbacks may arm, disarm and destroy timers.
  void advance(Instant now);

  // A lower bound of the next deadline; kNever when nothing is armed. Asks to be woken without need
  // at most once a minute for each second in which timers end.
  Instant next() const;

 private:
  friend class Timer;
  static constexpr std::uint64_t kNear = 1024;  // slots of one tick: the next second or so
  static constexpr std::uint64_t kFar = 64;     // slots of kNear ticks: a minute; later turns wait

  std::uint64_t tick_of(Instant t) const;
  std::uint64_t next_tick() const;
  void link(Timer& timer);
  void unlink(Timer& timer);
  void cascade();
  void run(std::uint64_t slot);

  Instant start_;
  std::uint64_t tick_ = 0;  // every slot up to here has run
  std::uint64_t armed_ = 0;
  std::array<Timer*, kNear + kFar> slots_{};
  std::array<std::uint64_t, (kNear + kFar) / 64> occupied_{};
  Timer* cursor_ = nullptr;  // next timer of the slot that is walked
};

}  // namespace signalbox::net
