// SPDX-License-Identifier: Apache-2.0
// Two buffers change places: callers fill one under the mutex while the thread writes the other
// without it. The thread is woken early only when a buffer is half full.
#include "io/telemetry/log_file.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <climits>
#include <condition_variable>
#include <cstring>
#include <filesystem>
#include <mutex>
#include <thread>
#include <utility>

#include "io/telemetry/log.h"

namespace signalbox::telemetry {
namespace {

constexpr int kFlags = O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC;
constexpr mode_t kMode = 0640;

// -1, with why in `error`. Never waits: a FIFO that nobody reads is an error.
int open_file(const std::string& path, LogFile::Use use, std::string& error) {
  const int fd = ::open(path.c_str(), kFlags | O_NONBLOCK | O_NOCTTY, kMode);
  if (fd < 0) {
    error = errno == ENXIO ? "it is a FIFO that nobody reads, or a socket; a log goes to a regular "
                             "file, and to standard output as -"
                           : std::strerror(errno);
    return -1;
  }
  struct stat status {};
  const bool known = ::fstat(fd, &status) == 0;
  const bool file = known && S_ISREG(status.st_mode);
  if (!file && !(known && (S_ISCHR(status.st_mode) || S_ISFIFO(status.st_mode)))) {
    error = "it is neither a file nor a terminal or pipe";
  } else if (file && use == LogFile::Use::Alone && ::flock(fd, LOCK_EX | LOCK_NB) != 0) {
    error = errno == EWOULDBLOCK
                ? "another process, or another log of this one, writes it; give each its own file"
                : std::string("it cannot be locked against others: ") + std::strerror(errno);
  } else {
    // From here on it is the writing thread that may wait.
    ::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) & ~O_NONBLOCK);
    return fd;
  }
  ::close(fd);
  return -1;
}

// Whether `path` leads to what `fd` is.
bool is_open_as(int fd, const std::string& path) {
  struct stat open {};
  struct stat there {};
  return ::fstat(fd, &open) == 0 && ::stat(path.c_str(), &there) == 0 &&
         open.st_dev == there.st_dev && open.st_ino == there.st_ino;
}

// A pipe that has room takes so much without a wait.
constexpr std::size_t kPipePiece = PIPE_BUF;
constexpr int kLookMs = 50;     // at a pipe that takes nothing
constexpr int kLastLooks = 20;  // at it, once the process ends

// False: nothing more can be written; errno says why. What went out of `bytes` is taken back where
// that can be done, so that no half record is left. A pipe or terminal that takes nothing is waited
// for until `hurry` says so.
template <typename Hurry>
bool write_all(int fd, std::string_view bytes, Hurry hurry) {
  const std::size_t all = bytes.size();
  struct stat kind {};
  const bool file = ::fstat(fd, &kind) == 0 && S_ISREG(kind.st_mode);
  while (!bytes.empty()) {
    if (!file) {
      pollfd room{fd, POLLOUT, 0};
      if (::poll(&room, 1, kLookMs) == 0) {
        if (!hurry()) continue;
        errno = EAGAIN;
        return false;
      }
    }
    ssize_t n = ::write(fd, bytes.data(), file ? bytes.size() : std::min(bytes.size(), kPipePiece));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) {
      const int error = errno;
      const auto partial = static_cast<off_t>(all - bytes.size());
      struct stat status {};
      if (partial > 0 && ::fstat(fd, &status) == 0 && S_ISREG(status.st_mode)) {
        [[maybe_unused]] const int result = ::ftruncate(fd, status.st_size - partial);
      }
      errno = error;
      return false;
    }
    bytes.remove_prefix(static_cast<std::size_t>(n));
  }
  return true;
}

Error refused(const std::string& path, const std::string& why) {
  return invalid("The log file " + path + " cannot be opened for appending (" + why +
                 "); check that its folder exists and may be written.");
}

}  // namespace

class LogFile::Writer {
 public:
  Writer(std::string path, int fd, LogFileConfig config, Gap gap, Use use)
      : path_(std::move(path)), fd_(fd), config_(config), gap_(std::move(gap)), use_(use),
        thread_([this] { run(); }) {}

  ~Writer() {
    {
      std::lock_guard lock(mutex_);
      stop_ = true;
    }
    ending_ = true;
    wake_.notify_one();
    thread_.join();
    if (fd_ > STDERR_FILENO) ::close(fd_);
  }

  void append(std::string_view record) {
    bool half = false;
    {
      std::lock_guard lock(mutex_);
      auto most = static_cast<std::size_t>(config_.buffer_bytes_max.value);
      if (filling_.size() + record.size() > most) {
        ++dropped_;
        ++unmarked_;
        return;
      }
      half = filling_.size() < most / 2 && filling_.size() + record.size() >= most / 2;
      if (unmarked_ > 0) filling_.append(gap_(std::exchange(unmarked_, 0)));
      filling_.append(record);
      ++records_;
    }
    if (half) wake_.notify_one();
  }

  void reopen(std::string head) {
    std::lock_guard lock(mutex_);
    if (std::exchange(reopen_, true)) return;  // the one before is not done: it will do
    head_ = std::move(head);
    old_bytes_ = filling_.size();
    old_records_ = std::exchange(records_, 0);
  }

  void flush() {
    std::unique_lock lock(mutex_);
    std::uint64_t ticket = ++flush_asked_;
    wake_.notify_one();
    flushed_.wait(lock, [&] { return flush_done_ >= ticket; });
  }

  std::uint64_t dropped() const { return dropped_; }
  std::uint64_t written() const { return written_; }

 private:
  void run() {
    std::string writing;
    std::unique_lock lock(mutex_);
    for (;;) {
      wake_.wait_for(lock, config_.write_interval, [&] {
        auto half = static_cast<std::size_t>(config_.buffer_bytes_max.value) / 2;
        return stop_ || flush_asked_ > flush_done_ || filling_.size() >= half;
      });
      bool last = stop_;
      bool again = std::exchange(reopen_, false);
      std::string head = std::exchange(head_, {});
      std::size_t old = std::exchange(old_bytes_, 0);
      std::uint64_t old_records = std::exchange(old_records_, 0);
      std::uint64_t ticket = flush_asked_;
      std::uint64_t records = std::exchange(records_, 0);
      writing.clear();
      std::swap(writing, filling_);
      if (last && unmarked_ > 0) writing += gap_(std::exchange(unmarked_, 0));
      lock.unlock();
      std::string_view rest = writing;
      if (again) {
        if (old > 0) write(rest.substr(0, old), old_records);
        rest.remove_prefix(old);
        open_again(head);
      }
      if (!rest.empty()) write(rest, records);
      lock.lock();
      flush_done_ = ticket;
      flushed_.notify_all();
      if (last && filling_.empty()) return;
    }
  }

  // Whoever ends the process does not wait for a reader that has gone to sleep.
  bool write_out(std::string_view bytes) {
    return write_all(fd_, bytes, [this] { return ending_ && ++last_looks_ > kLastLooks; });
  }

  void write(std::string_view bytes, std::uint64_t records) {
    // Apart from what follows: a mark that fails is tried again with the next.
    if (unwritten_ > 0) {
      if (const std::string mark = gap_(unwritten_); write_out(mark)) {
        written_ += mark.size();
        unwritten_ = 0;
      }
    }
    if (unwritten_ == 0 && write_out(bytes)) {
      written_ += bytes.size();
      failing_ = false;
      return;
    }
    int error = errno;
    dropped_ += records;
    unwritten_ += records;
    if (!std::exchange(failing_, true)) {
      log_error("a log file cannot be written; its records are lost until it can",
                {{"path", path_}, {"error", std::strerror(error)}});
    }
  }

  void open_again(std::string_view head) {
    if (path_ == "-") return;
    // What was not renamed after all stays open: its lock would be in our own way.
    if (!is_open_as(fd_, path_)) {
      std::string error;
      const int fresh = open_file(path_, use_, error);
      if (fresh < 0) {
        log_error("a log file cannot be opened again; the old one stays in use",
                  {{"path", path_}, {"error", error}});
        return;
      }
      ::close(std::exchange(fd_, fresh));
    }
    struct stat status {};
    if (::fstat(fd_, &status) == 0 && status.st_size == 0 && !head.empty()) write(head, 0);
  }

  const std::string path_;
  int fd_;  // the thread's
  const LogFileConfig config_;
  const Gap gap_;
  const Use use_;
  bool failing_ = false;  // the thread's
  std::uint64_t unwritten_ = 0;  // the thread's: lost by failing writes, and not marked yet
  std::atomic<bool> ending_{false};
  int last_looks_ = 0;  // the thread's
  std::atomic<std::uint64_t> dropped_{0};
  std::atomic<std::uint64_t> written_{0};

  std::mutex mutex_;
  std::condition_variable wake_;
  std::condition_variable flushed_;
  std::string filling_;             // the rest under mutex_
  std::uint64_t records_ = 0;       // in filling_
  std::uint64_t unmarked_ = 0;      // lost because filling_ was full, since its last record
  std::uint64_t flush_asked_ = 0;
  std::uint64_t flush_done_ = 0;
  bool reopen_ = false;
  std::string head_;           // of the file that reopen_ asks for
  std::size_t old_bytes_ = 0;  // of filling_, for the file before it
  std::uint64_t old_records_ = 0;
  bool stop_ = false;

  std::thread thread_;  // last: it uses all of the above
};

Result<std::unique_ptr<LogFile>> LogFile::open(std::string path, LogFileConfig config, Gap gap,
                                               Use use) {
  std::string error;
  int fd = path == "-" ? STDOUT_FILENO : open_file(path, use, error);
  if (fd < 0) {
    return refused(path, error);
  }
  return std::unique_ptr<LogFile>(
      new LogFile(std::make_unique<Writer>(std::move(path), fd, config, std::move(gap), use)));
}

Result<void> LogFile::check(const std::string& path) {
  if (path == "-") return {};
  struct stat status {};
  if (::stat(path.c_str(), &status) == 0) {
    if (S_ISDIR(status.st_mode)) return refused(path, std::strerror(EISDIR));
    if (!S_ISREG(status.st_mode)) return {};  // open() knows whether somebody is at the other end
    return ::access(path.c_str(), W_OK) == 0 ? Result<void>{}
                                             : refused(path, std::strerror(errno));
  }
  if (errno != ENOENT) return refused(path, std::strerror(errno));
  const std::string folder = std::filesystem::path(path).parent_path().string();
  const char* const place = folder.empty() ? "." : folder.c_str();
  if (::access(place, W_OK | X_OK) == 0) return {};
  return refused(path, std::strerror(errno));
}

std::string LogFile::gap_line(std::uint64_t lost) {
  return "{\"lost_records\":" + std::to_string(lost) + "}\n";
}

LogFile::LogFile(std::unique_ptr<Writer> writer) : writer_(std::move(writer)) {}
LogFile::~LogFile() = default;
void LogFile::append(std::string_view record) { writer_->append(record); }
void LogFile::reopen(std::string head) { writer_->reopen(std::move(head)); }
void LogFile::flush() { writer_->flush(); }
std::uint64_t LogFile::dropped() const { return writer_->dropped(); }
std::uint64_t LogFile::bytes_written() const { return writer_->written(); }

}  // namespace signalbox::telemetry
