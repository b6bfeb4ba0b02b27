// SPDX-License-Identifier: Apache-2.0
// epoll, the mailbox of posted tasks, and the order of one turn.
#include "io/net/loop.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <mutex>
#include <vector>

#include "base/check.h"
#include "io/net/clock.h"
#include "io/net/fd.h"

namespace signalbox::net {

// Tasks from other threads. An eventfd wakes the loop; one write stands for many tasks.
class Loop::Mailbox final : public Watcher {
 public:
  explicit Mailbox(Fd fd) : fd_(std::move(fd)) {}

  int fd() const { return fd_.get(); }

  void put(std::function<void()> task) {
    bool wake = false;
    {
      const std::lock_guard lock(mutex_);
      wake = tasks_.empty();
      tasks_.push_back(std::move(task));
    }
    if (wake) {
      const std::uint64_t one = 1;
      [[maybe_unused]] const auto written = ::write(fd_.get(), &one, sizeof one);
    }
  }

  void run() {
    {
      const std::lock_guard lock(mutex_);
      running_.swap(tasks_);
    }
    for (auto& task : running_) task();
    running_.clear();
  }

  void on_ready(std::uint32_t) override {
    std::uint64_t count = 0;
    [[maybe_unused]] const auto got = ::read(fd_.get(), &count, sizeof count);
    run();
  }

 private:
  Fd fd_;
  std::mutex mutex_;
  std::vector<std::function<void()>> tasks_;
  std::vector<std::function<void()>> running_;
};

Result<std::unique_ptr<Loop>> Loop::create() {
  Fd epoll_fd(::epoll_create1(EPOLL_CLOEXEC));
  if (!epoll_fd) return internal(std::string("epoll_create1: ") + std::strerror(errno));
  Fd event_fd(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  if (!event_fd) return internal(std::string("eventfd: ") + std::strerror(errno));
  auto mailbox = std::make_unique<Mailbox>(std::move(event_fd));
  Mailbox& box = *mailbox;
  std::unique_ptr<Loop> loop(new Loop(epoll_fd.release(), std::move(mailbox)));
  TRY_CHECK(loop->watch(box.fd(), box));
  return loop;
}

Loop::Loop(int epoll_fd, std::unique_ptr<Mailbox> mailbox)
    : epoll_fd_(epoll_fd), now_(net::now()), timers_(now_), mailbox_(std::move(mailbox)) {}

Loop::~Loop() { ::close(epoll_fd_); }

Result<void> Loop::watch(int fd, Watcher& watcher) {
  epoll_event event{};
  event.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET;
  event.data.ptr = &watcher;
  if (::epoll_ctl(epoll_fd_, EPOLL_CTL_ADD, fd, &event) != 0) {
    return internal(std::string("epoll_ctl: ") + std::strerror(errno));
  }
  return {};
}

void Loop::unwatch(int fd, Watcher& watcher) {
  ::epoll_ctl(epoll_fd_, EPOLL_CTL_DEL, fd, nullptr);
  // Events of this turn that were not yet handed out must not reach a dead watcher.
  for (int i = batch_next_; i < batch_size_; ++i) {
    if (batch_[i].data.ptr == &watcher) batch_[i].data.ptr = nullptr;
  }
}

void Loop::post(std::function<void()> task) { mailbox_->put(std::move(task)); }

int Loop::timeout_ms() const {
  const Instant next = timers_.next();
  if (next == kNever) return -1;
  const Instant present = net::now();
  if (next <= present) return 0;
  return static_cast<int>((next - present) / std::chrono::milliseconds(1)) + 1;
}

void Loop::turn() {
  batch_size_ = ::epoll_wait(epoll_fd_, batch_, kBatch, timeout_ms());
  if (batch_size_ < 0) {
    CHECK(errno == EINTR);
    batch_size_ = 0;
  }
  now_ = net::now();
  for (batch_next_ = 0; batch_next_ < batch_size_;) {
    const epoll_event& event = batch_[batch_next_++];
    if (event.data.ptr != nullptr) static_cast<Watcher*>(event.data.ptr)->on_ready(event.events);
  }
  batch_size_ = batch_next_ = 0;
  timers_.advance(now_);
  if (turn_end_) turn_end_();
}

void Loop::run() {
  stopped_ = false;
  now_ = net::now();
  while (!stopped_) turn();
}

void Loop::stop() {
  post([this] { stopped_ = true; });
}

}  // namespace signalbox::net
