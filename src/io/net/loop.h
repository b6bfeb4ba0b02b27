// SPDX-License-Identifier: Apache-2.0
// One thread's event loop over epoll, edge-triggered. Everything but post() and stop() belongs to
// the thread that runs it. Why not Asio: docs/decisions/0001-own-event-loop.md.
#pragma once

#include <sys/epoll.h>

#include <cstdint>
#include <functional>
#include <memory>

#include "base/result.h"
#include "base/time.h"
#include "io/net/timer.h"

namespace signalbox::net {

// Told when its descriptor is ready. Lives until it is unwatched; it may unwatch and destroy itself
// or others from on_ready().
class Watcher {
 public:
  // `events` are EPOLL* bits. Edge-triggered: read and write until they would block.
  virtual void on_ready(std::uint32_t events) = 0;

 protected:
  ~Watcher() = default;
};

class Loop {
 public:
  static Result<std::unique_ptr<Loop>> create();
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;
  ~Loop();

  // Watches `fd` for reading, writing and hang-up at once, edge-triggered, for its whole life: no
  // system call is needed when interest changes.
  Result<void> watch(int fd, Watcher& watcher);
  void unwatch(int fd, Watcher& watcher);

  void arm(Timer& timer, Instant deadline) { timers_.arm(timer, deadline); }
  void arm_after(Timer& timer, Duration delay) { timers_.arm(timer, now_ + delay); }

  // Time at the start of the present turn; cheap.
  Instant now() const { return now_; }

  // Runs `task` in a later turn. From any thread.
  void post(std::function<void()> task);

  // Called once at the end of each turn, after all ready descriptors, timers and posted tasks.
  void set_turn_end(std::function<void()> hook) { turn_end_ = std::move(hook); }

  // Returns after stop(), which any thread may call.
  void run();
  void stop();

 private:
  class Mailbox;
  explicit Loop(int epoll_fd, std::unique_ptr<Mailbox> mailbox);
  void turn();
  int timeout_ms() const;

  static constexpr int kBatch = 256;

  int epoll_fd_;
  Instant now_;
  TimerWheel timers_;
  std::unique_ptr<Mailbox> mailbox_;
  std::function<void()> turn_end_;
  epoll_event batch_[kBatch];
  int batch_size_ = 0;
  int batch_next_ = 0;
  bool stopped_ = false;
};

}  // namespace signalbox::net
