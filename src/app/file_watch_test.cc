// SPDX-License-Identifier: Apache-2.0
// Goal: a changed file is told once, after its writer has settled, however it was changed. Method:
// real files of the test's folder; the loop runs until the watch calls.
#include "app/file_watch.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>

namespace signalbox::app {
namespace {

class FileWatchTest : public ::testing::Test {
 protected:
  FileWatchTest() {
    std::remove(path_.c_str());
    std::remove(other_.c_str());
    write(path_, "one");
  }
  static void write(const std::string& path, const std::string& text) {
    std::ofstream(path, std::ios::trunc) << text;
  }
  // Runs until the watch has called, or until so much time has passed without a call.
  int calls_within(Duration patience) {
    calls_ = 0;
    net::Timer stop([this] { loop_->stop(); });
    loop_->arm_after(stop, patience);
    loop_->run();
    return calls_;
  }
  void called() {
    ++calls_;
    loop_->stop();
  }

  const std::string path_ = ::testing::TempDir() + "signalbox-watched.yaml";
  const std::string other_ = ::testing::TempDir() + "signalbox-other.yaml";
  std::unique_ptr<net::Loop> loop_ = *net::Loop::create();
  FileWatch watch_{*loop_, [this] { called(); }};
  int calls_ = 0;
};

constexpr Duration kLong = std::chrono::seconds(30);  // only a failing test waits for it
constexpr Duration kShort = std::chrono::milliseconds(2300);

TEST_F(FileWatchTest, tells_of_a_change_once) {
  watch_.set_files({path_});
  write(path_, "another");
  EXPECT_EQ(calls_within(kLong), 1);
  EXPECT_EQ(calls_within(kShort), 0);
}

TEST_F(FileWatchTest, tells_of_replaced_and_removed_files) {
  watch_.set_files({path_});
  write(other_, "one");
  ASSERT_EQ(::rename(other_.c_str(), path_.c_str()), 0);
  EXPECT_EQ(calls_within(kLong), 1);
  ASSERT_EQ(std::remove(path_.c_str()), 0);
  EXPECT_EQ(calls_within(kLong), 1);
}

TEST_F(FileWatchTest, follows_symbolic_links) {
  const std::string link = path_ + ".link";
  std::remove(link.c_str());
  write(other_, "two");
  ASSERT_EQ(::symlink(path_.c_str(), link.c_str()), 0);
  watch_.set_files({link});
  std::remove(link.c_str());
  ASSERT_EQ(::symlink(other_.c_str(), link.c_str()), 0);
  EXPECT_EQ(calls_within(kLong), 1);
}

TEST_F(FileWatchTest, what_is_not_watched_any_more_is_not_told) {
  watch_.set_files({path_, other_});
  watch_.set_files({other_});
  write(path_, "changed");
  EXPECT_EQ(calls_within(kShort), 0);
}

}  // namespace
}  // namespace signalbox::app
