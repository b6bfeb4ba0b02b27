// SPDX-License-Identifier: Apache-2.0
// Goal: the loop hands out readiness, posted tasks and the end of turns, and never calls a watcher
// that is gone. Method: real sockets on the loopback interface.
#include "io/net/loop.h"

#include <gtest/gtest.h>

#include <thread>

#include "io/net/stream.h"

namespace signalbox::net {
namespace {

// Reads what comes and tells how often it was woken.
class Reader final : public Watcher {
 public:
  Reader(Loop& loop, Stream stream) : loop_(loop), stream_(std::move(stream)) {
    EXPECT_TRUE(loop_.watch(stream_.fd(), *this).has_value());
  }
  ~Reader() { close(); }
  void close() {
    if (stream_) loop_.unwatch(stream_.fd(), *this);
    stream_.close();
  }
  void on_ready(std::uint32_t) override {
    ++wakes;
    char buffer[64];
    while (stream_) {
      const IoResult got = stream_.read(buffer, sizeof buffer);
      if (got.status == IoResult::Status::WouldBlock) return;
      if (got.status != IoResult::Status::Ok) {
        closed = true;
        return loop_.stop();
      }
      text.append(buffer, got.bytes);
    }
  }
  std::string text;
  int wakes = 0;
  bool closed = false;

 private:
  Loop& loop_;
  Stream stream_;
};

struct Pair {
  Stream client;
  Stream server;
};

Pair connected() {
  const Fd listener = *listen_on(*Address::parse("127.0.0.1:0"));
  Pair pair;
  pair.client = *Stream::connecting(local_address(listener.get()), nullptr, "");
  Address peer;
  Fd fd;
  while (!fd) fd = accept_from(listener.get(), peer);
  pair.server = *Stream::accepted(std::move(fd), nullptr);
  return pair;
}

TEST(Loop, DeliversBytesAndTheEnd) {
  auto loop = *Loop::create();
  Pair pair = connected();
  Reader reader(*loop, std::move(pair.server));
  std::thread peer([client = std::move(pair.client)]() mutable {
    client.write("hello ");
    client.write("world");
    client.close();
  });
  loop->run();
  peer.join();
  EXPECT_EQ(reader.text, "hello world");
  EXPECT_TRUE(reader.closed);
}

TEST(Loop, RunsTasksPostedFromOtherThreadsAndEndsEachTurn) {
  auto loop = *Loop::create();
  int tasks = 0;
  int turns = 0;
  loop->set_turn_end([&] { ++turns; });
  std::thread other([&] {
    for (int i = 0; i < 1000; ++i) loop->post([&] { ++tasks; });
    loop->stop();
  });
  loop->run();
  other.join();
  EXPECT_EQ(tasks, 1000);
  EXPECT_GE(turns, 1);
}

TEST(Loop, DoesNotWakeAWatcherThatWasUnwatchedInTheSameTurn) {
  auto loop = *Loop::create();
  Pair a = connected();
  Pair b = connected();
  Reader first(*loop, std::move(a.server));
  Reader second(*loop, std::move(b.server));
  // Drain the first "writable" edges.
  Timer stop([&] { loop->stop(); });
  loop->arm_after(stop, std::chrono::milliseconds(5));
  loop->run();
  const int before = second.wakes;
  a.client.write("x");
  b.client.write("y");
  loop->post([&] { second.close(); });
  loop->arm_after(stop, std::chrono::milliseconds(5));
  loop->run();
  EXPECT_EQ(first.text, "x");
  EXPECT_LE(second.wakes, before + 1);
}

TEST(Address, ParsesPrintsAndRefuses) {
  EXPECT_EQ(Address::parse("127.0.0.1:80")->text(), "127.0.0.1:80");
  EXPECT_EQ(Address::parse("[::1]:8080")->text(), "[::1]:8080");
  EXPECT_TRUE(Address::parse(":9")->any());
  EXPECT_TRUE(Address::parse("127.3.2.1:1")->loopback());
  EXPECT_FALSE(Address::parse("localhost:80").has_value());
  EXPECT_FALSE(Address::parse("127.0.0.1").has_value());
  EXPECT_FALSE(Address::parse("127.0.0.1:99999").has_value());
  EXPECT_FALSE(Address::parse("127.0.0.1:8x").has_value());
}

}  // namespace
}  // namespace signalbox::net
