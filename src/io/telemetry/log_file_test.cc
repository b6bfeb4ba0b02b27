// SPDX-License-Identifier: Apache-2.0
// Goal: what was appended is in the file, in order and whole; a full buffer drops and counts; a
// rotated file is opened again. Method: real files, flush() instead of waiting.
#include "io/telemetry/log_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

namespace {
std::atomic<int> lock_error{0};  // what locking fails with; 0: it is the system's
}

// In the place of the C library's, for file systems that have no locks.
extern "C" int flock(int fd, int operation) noexcept {
  if (const int error = lock_error; error != 0 && (operation & LOCK_EX) != 0) {
    errno = error;
    return -1;
  }
  return static_cast<int>(::syscall(SYS_flock, fd, operation));
}

namespace signalbox::telemetry {
namespace {

class LogFileTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "signalbox-log-XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string path(const char* name = "access.log") const { return folder_ + "/" + name; }
  static std::string content(const std::string& path) {
    std::ifstream in(path);
    return {std::istreambuf_iterator<char>(in), {}};
  }

  std::string folder_;
};

// A writer that acts only on flush() and at the end.
LogFileConfig lazy(std::int64_t bytes = 8 << 20) {
  LogFileConfig config;
  config.buffer_bytes_max = {bytes};
  config.write_interval = std::chrono::hours(1);
  return config;
}

Result<std::unique_ptr<LogFile>> open_alone(const std::string& path) {
  return LogFile::open(path, lazy(), &LogFile::gap_line, LogFile::Use::Alone);
}

TEST_F(LogFileTest, AppendsInOrderBehindWhatIsThere) {
  std::ofstream(path()) << "old\n";
  auto file = LogFile::open(path(), lazy());
  ASSERT_TRUE(file);
  (*file)->append("one\n");
  (*file)->append("two\n");
  (*file)->flush();
  EXPECT_EQ(content(path()), "old\none\ntwo\n");
  EXPECT_EQ((*file)->bytes_written(), 8u);
}

TEST_F(LogFileTest, WritesWhatWaitsWhenItIsClosed) {
  auto file = LogFile::open(path(), lazy());
  ASSERT_TRUE(file);
  (*file)->append("last\n");
  file->reset();
  EXPECT_EQ(content(path()), "last\n");
}

TEST_F(LogFileTest, DropsWholeRecordsThatDoNotFitAndMarksThePlace) {
  auto file = LogFile::open(path(), lazy(100));
  ASSERT_TRUE(file);
  (*file)->append(std::string(101, 'x'));
  (*file)->append("fits\n");
  (*file)->append(std::string(101, 'x'));
  (*file)->append(std::string(101, 'x'));
  (*file)->flush();
  EXPECT_EQ((*file)->dropped(), 3u);
  EXPECT_EQ(content(path()), "{\"lost_records\":1}\nfits\n");
  file->reset();
  EXPECT_EQ(content(path()), "{\"lost_records\":1}\nfits\n{\"lost_records\":2}\n");
}

// A disk that fills up and is cleared: the limit on the size of files stands for it.
TEST_F(LogFileTest, MarksWhereTheDiskWasFullAndLeavesNoHalfRecord) {
  std::signal(SIGXFSZ, SIG_IGN);
  auto file = LogFile::open(path(), lazy());
  ASSERT_TRUE(file);
  (*file)->append("first\n");
  (*file)->flush();
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  rlimit small = before;
  small.rlim_cur = 10;
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  (*file)->append("second\n");
  (*file)->append("third\n");
  (*file)->flush();
  EXPECT_EQ(content(path()), "first\n");
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  (*file)->append("fourth\n");
  (*file)->flush();
  EXPECT_EQ((*file)->dropped(), 2u);
  EXPECT_EQ(content(path()), "first\n{\"lost_records\":2}\nfourth\n");
}

TEST_F(LogFileTest, OpensAgainAfterRotation) {
  auto file = LogFile::open(path(), lazy());
  ASSERT_TRUE(file);
  (*file)->append("before\n");
  (*file)->flush();
  std::filesystem::rename(path(), path("access.log.1"));
  (*file)->append("still old\n");
  (*file)->flush();
  (*file)->reopen();
  (*file)->append("new\n");
  (*file)->flush();
  EXPECT_EQ(content(path("access.log.1")), "before\nstill old\n");
  EXPECT_EQ(content(path()), "new\n");
}

TEST_F(LogFileTest, SplitsAtTheReopeningAndPutsTheHeadIntoAnEmptyFileAlone) {
  auto file = LogFile::open(path(), lazy());
  ASSERT_TRUE(file);
  (*file)->append("one\n");
  (*file)->flush();
  std::filesystem::rename(path(), path("access.log.1"));
  (*file)->append("two\n");
  (*file)->reopen("head\n");
  (*file)->append("three\n");
  (*file)->flush();
  EXPECT_EQ(content(path("access.log.1")), "one\ntwo\n");
  EXPECT_EQ(content(path()), "head\nthree\n");
  (*file)->reopen("head\n");
  (*file)->append("four\n");
  (*file)->flush();
  EXPECT_EQ(content(path()), "head\nthree\nfour\n");
}

TEST_F(LogFileTest, KeepsTheOldFileWhenItCannotBeOpenedAgain) {
  std::filesystem::create_directory(folder_ + "/sub");
  auto file = LogFile::open(path("sub/log"), lazy());
  ASSERT_TRUE(file);
  std::filesystem::rename(folder_ + "/sub", folder_ + "/moved");
  (*file)->reopen();
  (*file)->append("kept\n");
  (*file)->flush();
  EXPECT_EQ(content(path("moved/log")), "kept\n");
  EXPECT_EQ((*file)->dropped(), 0u);
}

TEST_F(LogFileTest, SaysWhyAFileCannotBeOpened) {
  auto file = LogFile::open(path("no/such/folder"), lazy());
  ASSERT_FALSE(file);
  EXPECT_NE(file.error().message.find("no/such/folder"), std::string::npos);
}

TEST_F(LogFileTest, KnowsBeforehandWhetherAFileCanBeOpenedAndMakesNone) {
  std::ofstream(path("file"));
  std::filesystem::create_directory(path("folder"));
  std::filesystem::create_symlink(path("file"), path("link"));
  for (const char* const name : {"new", "file", "folder", "link", "no/such", "file/below"}) {
    const bool there = std::filesystem::exists(path(name));
    const bool fit = LogFile::check(path(name)).has_value();
    EXPECT_EQ(std::filesystem::exists(path(name)), there) << name;
    EXPECT_EQ(LogFile::open(path(name), lazy()).has_value(), fit) << name;
  }
  EXPECT_TRUE(LogFile::check("-"));
  EXPECT_TRUE(LogFile::check("/dev/null"));
}

TEST_F(LogFileTest, KeepsLinesOfManyThreadsWhole) {
  LogFileConfig config;
  config.write_interval = std::chrono::milliseconds(1);
  auto file = LogFile::open(path(), config);
  ASSERT_TRUE(file);
  std::vector<std::thread> threads;
  for (char c : {'a', 'b', 'c'}) {
    threads.emplace_back([&, c] {
      for (int i = 0; i < 2'000; ++i) (*file)->append(std::string(50, c) + "\n");
    });
  }
  for (auto& thread : threads) thread.join();
  (*file)->flush();
  std::ifstream in(path());
  int lines = 0;
  for (std::string line; std::getline(in, line); ++lines) {
    ASSERT_EQ(line, std::string(50, line[0]));
  }
  EXPECT_EQ(lines, 6'000);
}

TEST_F(LogFileTest, CountsRecordsThatTheDiskRefused) {
  if (::access("/dev/full", W_OK) != 0) GTEST_SKIP() << "/dev/full is not there";
  auto file = LogFile::open("/dev/full", lazy());
  ASSERT_TRUE(file);
  (*file)->append("a\n");
  (*file)->append("b\n");
  (*file)->flush();
  EXPECT_EQ((*file)->dropped(), 2u);
  EXPECT_EQ((*file)->bytes_written(), 0u);
}

TEST_F(LogFileTest, DoesNotWaitForTheReaderOfAFifo) {
  ASSERT_EQ(::mkfifo(path("fifo").c_str(), 0600), 0);
  const auto alone = LogFile::open(path("fifo"), lazy());
  ASSERT_FALSE(alone);
  EXPECT_NE(alone.error().message.find("FIFO"), std::string::npos) << alone.error().message;
  const int reader = ::open(path("fifo").c_str(), O_RDONLY | O_NONBLOCK);
  {
    const auto read = LogFile::open(path("fifo"), lazy());
    ASSERT_TRUE(read);
    (*read)->append("line\n");
  }
  char buffer[16];
  EXPECT_EQ(::read(reader, buffer, sizeof buffer), 5);
  ::close(reader);
  EXPECT_TRUE(LogFile::open("/dev/null", lazy()));
}

TEST_F(LogFileTest, AReaderThatSleepsDoesNotHoldUpTheEnd) {
  ASSERT_EQ(::mkfifo(path().c_str(), 0600), 0);
  const int reader = ::open(path().c_str(), O_RDONLY | O_NONBLOCK);
  ASSERT_GE(reader, 0);
  {
    auto log = LogFile::open(path());
    ASSERT_TRUE(log) << log.error().message;
    const std::string line(999, 'x');
    for (int i = 0; i < 1000; ++i) (*log)->append(line + "\n");
  }  // this ends, although a pipe holds but 64 KiB
  std::string got(1 << 20, '\0');
  EXPECT_GT(::read(reader, got.data(), got.size()), 0);
  ::close(reader);
}

TEST_F(LogFileTest, AReaderThatIsSlowGetsAll) {
  ASSERT_EQ(::mkfifo(path().c_str(), 0600), 0);
  const int reader = ::open(path().c_str(), O_RDONLY | O_NONBLOCK);
  ASSERT_GE(reader, 0);
  auto log = LogFile::open(path());
  ASSERT_TRUE(log) << log.error().message;
  std::thread slow([&] {
    std::string got(2000, '\0');
    for (std::size_t all = 0; all < 500'000;) {
      pollfd more{reader, POLLIN, 0};
      ::poll(&more, 1, -1);
      all += static_cast<std::size_t>(std::max<ssize_t>(0, ::read(reader, got.data(), got.size())));
    }
  });
  for (int i = 0; i < 500; ++i) (*log)->append(std::string(999, 'x') + "\n");
  (*log)->flush();
  slow.join();
  EXPECT_EQ((*log)->dropped(), 0u);
  ::close(reader);
}

TEST_F(LogFileTest, IsLockedAgainstOthersWhereThatIsAskedFor) {
  auto alone = open_alone(path());
  ASSERT_TRUE(alone);
  const auto second = open_alone(path());
  ASSERT_FALSE(second);
  EXPECT_NE(second.error().message.find("another"), std::string::npos) << second.error().message;
  EXPECT_TRUE(open_alone(path("other")));
}

TEST_F(LogFileTest, SaysWhyAFileCannotBeLocked) {
  lock_error = ENOLCK;
  const auto file = open_alone(path());
  lock_error = 0;
  ASSERT_FALSE(file);
  EXPECT_EQ(file.error().message.find("another"), std::string::npos) << file.error().message;
  EXPECT_NE(file.error().message.find(std::strerror(ENOLCK)), std::string::npos)
      << file.error().message;
}

TEST_F(LogFileTest, KeepsItsLockThroughAReopening) {
  auto alone = open_alone(path());
  ASSERT_TRUE(alone);
  lock_error = ENOLCK;
  (*alone)->reopen();
  (*alone)->append("same file\n");
  (*alone)->flush();
  lock_error = 0;
  EXPECT_FALSE(open_alone(path()));
  std::filesystem::rename(path(), path("access.log.1"));
  (*alone)->reopen();
  (*alone)->append("new file\n");
  (*alone)->flush();
  EXPECT_FALSE(open_alone(path()));
  EXPECT_TRUE(open_alone(path("access.log.1")));
  EXPECT_EQ(content(path("access.log.1")), "same file\n");
  EXPECT_EQ(content(path()), "new file\n");
}

}  // namespace
}  // namespace signalbox::telemetry
