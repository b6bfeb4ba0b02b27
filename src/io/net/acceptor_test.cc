// SPDX-License-Identifier: Apache-2.0
// Goal: no waiting connection is forgotten. Method: real sockets, and a limit on descriptors that
// is lowered until none can be taken.
#include "io/net/acceptor.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <memory>
#include <vector>

#include "io/net/stream.h"

namespace signalbox::net {
namespace {

using std::chrono::milliseconds;

class AcceptorTest : public testing::Test {
 protected:
  void connect(int count) {
    for (int i = 0; i < count; ++i) {
      clients_.push_back(*Stream::connecting(acceptor_.address(), nullptr, ""));
    }
  }
  // Runs the loop until `count` were taken, or for so long.
  void run(std::size_t count, Duration longest) {
    wanted_ = count;
    Timer end([this] { loop_->stop(); });
    loop_->arm(end, loop_->now() + longest);
    if (taken_.size() < wanted_) loop_->run();
  }

  std::unique_ptr<Loop> loop_ = *Loop::create();
  std::vector<Fd> taken_;
  std::vector<Stream> clients_;
  std::vector<int> shortages_;
  std::size_t wanted_ = 0;
  Acceptor acceptor_{*loop_, *listen_on(*Address::parse("127.0.0.1:0")),
                     [this](Fd connection, const Address&) {
                       taken_.push_back(std::move(connection));
                       if (taken_.size() == wanted_) loop_->stop();
                     },
                     [this](int error) { shortages_.push_back(error); }};
};

TEST_F(AcceptorTest, takes_more_than_a_turn_may) {
  ASSERT_TRUE(acceptor_.start());
  connect(300);
  run(300, std::chrono::seconds(20));
  EXPECT_EQ(taken_.size(), 300u);
}

TEST_F(AcceptorTest, what_a_shortage_kept_waiting_is_taken_without_a_new_one) {
  ASSERT_TRUE(acceptor_.start());
  connect(3);
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  // The least free number is the first that may no longer be given out.
  const int free = ::dup(0);
  ASSERT_GE(free, 0);
  ::close(free);
  rlimit none = before;
  none.rlim_cur = static_cast<rlim_t>(free);
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  run(3, milliseconds(120));
  const std::size_t in_shortage = taken_.size();
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_EQ(in_shortage, 0u);
  ASSERT_FALSE(shortages_.empty());
  EXPECT_EQ(shortages_.front(), EMFILE);
  run(3, std::chrono::seconds(20));
  EXPECT_EQ(taken_.size(), 3u);
}

}  // namespace
}  // namespace signalbox::net
