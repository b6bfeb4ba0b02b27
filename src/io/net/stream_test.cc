// SPDX-License-Identifier: Apache-2.0
// Goal: plain and TLS connections carry every byte in order under partial reads and writes, and say
// how they end. Method: both ends on the loopback interface, driven in turns on one thread;
// certificates are made for the test and live in its temporary folder.
#include "io/net/stream.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <rapidcheck/gtest.h>

#include <climits>
#include <string>
#include <vector>

#include "io/net/certificate_for_test.inc"

namespace signalbox::net {
namespace {

using Status = IoResult::Status;

struct Pair {
  Stream client;
  Stream server;
};

Address loopback() { return *Address::parse("127.0.0.1:0"); }

// Waits until the descriptor has news; a poll that never ends is stopped by the test's own limit.
void wait_for(int fd, short events) {
  pollfd entry{fd, events, 0};
  ASSERT_EQ(::poll(&entry, 1, 20'000), 1);
}

Pair connected(const std::shared_ptr<TlsContext>& client_tls = nullptr,
               const std::shared_ptr<TlsContext>& server_tls = nullptr,
               const std::string& server_name = "localhost") {
  const Fd listener = *listen_on(loopback());
  Pair pair;
  pair.client = *Stream::connecting(local_address(listener.get()), client_tls, server_name);
  wait_for(listener.get(), POLLIN);
  Address peer;
  Fd fd = accept_from(listener.get(), peer);
  EXPECT_TRUE(fd);
  EXPECT_EQ(peer.text(), local_address(pair.client.fd()).text());
  pair.server = *Stream::accepted(std::move(fd), server_tls);
  return pair;
}

// Moves `text` from one end to the other in pieces; returns what arrived, or how it failed.
struct Moved {
  std::string text;
  bool failed = false;
  bool closed = false;
};

Moved move_text(Stream& from, Stream& to, const std::vector<std::string>& parts) {
  std::vector<iovec> pieces;
  std::size_t total = 0;
  for (const std::string& part : parts) {
    pieces.push_back({const_cast<char*>(part.data()), part.size()});
    total += part.size();
  }
  Moved moved;
  std::size_t first = 0;
  char buffer[8192];
  for (int idle = 0; idle < 200'000 && (first < pieces.size() || moved.text.size() < total);) {
    bool progress = false;
    if (first < pieces.size()) {
      const IoResult put =
          from.write(pieces.data() + first, static_cast<int>(pieces.size() - first));
      if (put.status == Status::Failed || put.status == Status::Closed) moved.failed = true;
      std::size_t left = put.status == Status::Ok ? put.bytes : 0;
      progress = left > 0;
      while (first < pieces.size() && left >= pieces[first].iov_len) {
        left -= pieces[first++].iov_len;
      }
      if (left > 0) {
        pieces[first].iov_base = static_cast<char*>(pieces[first].iov_base) + left;
        pieces[first].iov_len -= left;
      }
    }
    const IoResult got = to.read(buffer, sizeof buffer);
    if (got.status == Status::Ok) {
      moved.text.append(buffer, got.bytes);
      progress = true;
    }
    if (got.status == Status::Closed) moved.closed = true;
    if (got.status == Status::Failed) moved.failed = true;
    if (moved.failed || moved.closed) return moved;
    // The other direction must be read as well for a handshake to go on.
    const IoResult back = from.read(buffer, sizeof buffer);
    if (back.status == Status::Failed) moved.failed = true;
    if (moved.failed) return moved;
    if (!progress) {
      ++idle;
      pollfd both[2] = {{from.fd(), POLLIN, 0}, {to.fd(), POLLIN, 0}};
      ::poll(both, 2, 1);
    }
  }
  return moved;
}

std::string joined(const std::vector<std::string>& parts) {
  std::string all;
  for (const std::string& part : parts) all += part;
  return all;
}

std::string pattern(std::size_t size) {
  std::string text(size, ' ');
  for (std::size_t i = 0; i < size; ++i) text[i] = static_cast<char>('a' + (i * 31 + i / 977) % 26);
  return text;
}

// Reads until there is something to tell.
IoResult read_wait(Stream& stream, char* data, std::size_t size) {
  for (int i = 0; i < 2000; ++i) {
    const IoResult got = stream.read(data, size);
    if (got.status != Status::WouldBlock) return got;
    pollfd entry{stream.fd(), POLLIN, 0};
    ::poll(&entry, 1, 10);
  }
  return {Status::WouldBlock, 0};
}

TEST(Stream, says_that_it_would_block_where_nothing_has_come) {
  Pair pair = connected();
  char buffer[16];
  EXPECT_EQ(pair.server.read(buffer, sizeof buffer).status, Status::WouldBlock);
  EXPECT_EQ(pair.client.connect_error(), 0);
  EXPECT_FALSE(pair.client.tls());
}

TEST(Stream, writes_several_pieces_and_goes_on_inside_one) {
  Pair pair = connected();
  // More than the kernel takes at once, with empty pieces between.
  const std::vector<std::string> parts = {"head", "", pattern(9'000'001), "", "tail", pattern(77)};
  const Moved moved = move_text(pair.client, pair.server, parts);
  EXPECT_FALSE(moved.failed);
  EXPECT_TRUE(moved.text == joined(parts));
}

TEST(Stream, takes_more_pieces_than_one_system_call_may_have) {
  Pair pair = connected();
  const std::vector<std::string> parts(5000, "ab");
  EXPECT_EQ(move_text(pair.client, pair.server, parts).text, joined(parts));
}

std::size_t written_at_once(Stream& stream, const std::vector<std::string>& parts) {
  std::vector<iovec> pieces;
  for (const std::string& part : parts) {
    pieces.push_back({const_cast<char*>(part.data()), part.size()});
  }
  const IoResult put = stream.write(pieces.data(), static_cast<int>(pieces.size()));
  EXPECT_EQ(put.status, Status::Ok);
  return put.bytes;
}

TEST(Stream, writes_less_than_all_only_when_it_is_full) {
  Pair pair = connected();
  EXPECT_EQ(written_at_once(pair.client, std::vector<std::string>(3 * IOV_MAX + 1, "abc")),
            3u * (3 * IOV_MAX + 1));
  EXPECT_LT(written_at_once(pair.client, {pattern(90'000'000)}), 90'000'000u);
}

TEST(Stream, an_orderly_end_is_closed_after_the_last_byte) {
  Pair pair = connected();
  EXPECT_EQ(pair.client.write("bye").bytes, 3u);
  pair.client.close();
  EXPECT_FALSE(pair.client);
  char buffer[16];
  EXPECT_EQ(read_wait(pair.server, buffer, sizeof buffer).bytes, 3u);
  EXPECT_EQ(read_wait(pair.server, buffer, sizeof buffer).status, Status::Closed);
}

TEST(Stream, a_reset_is_no_orderly_end) {
  Pair pair = connected();
  pair.client.write("half");
  pair.client.reset_on_close();
  pair.client.close();
  char buffer[16];
  IoResult got = read_wait(pair.server, buffer, sizeof buffer);
  if (got.status == Status::Ok) got = read_wait(pair.server, buffer, sizeof buffer);
  EXPECT_EQ(got.status, Status::Failed);
}

TEST(Stream, writing_to_a_peer_that_left_fails_and_kills_nobody) {
  Pair pair = connected();
  pair.server.reset_on_close();
  pair.server.close();
  wait_for(pair.client.fd(), POLLIN);
  IoResult put;
  for (int i = 0; i < 3; ++i) put = pair.client.write("into the void");
  EXPECT_EQ(put.status, Status::Failed);
}

TEST(Stream, tells_why_a_connection_was_refused) {
  Address nobody;
  {
    const Fd listener = *listen_on(loopback());
    nobody = local_address(listener.get());
  }
  auto stream = Stream::connecting(nobody, nullptr, "");
  if (!stream) return;  // refused at once
  wait_for(stream->fd(), POLLOUT);
  EXPECT_EQ(stream->connect_error(), ECONNREFUSED);
}

TEST(Stream, moves_with_its_descriptor) {
  Pair pair = connected();
  Stream moved = std::move(pair.client);
  EXPECT_FALSE(pair.client);  // NOLINT(bugprone-use-after-move): that it is empty is the point
  EXPECT_EQ(moved.write("x").bytes, 1u);
  moved = std::move(pair.server);
  char buffer[4];
  EXPECT_EQ(read_wait(moved, buffer, sizeof buffer).bytes, 1u);
  EXPECT_EQ(read_wait(moved, buffer, sizeof buffer).status, Status::Closed);
}

TEST(Listener, a_port_is_shared_by_those_who_share_alone) {
  const Fd first = *listen_on(loopback(), Sharing::Shared);
  const Fd second = *listen_on(local_address(first.get()), Sharing::Shared);
  EXPECT_EQ(local_address(first.get()).text(), local_address(second.get()).text());
  Address peer;
  EXPECT_FALSE(accept_from(first.get(), peer));
  const auto third = listen_on(local_address(first.get()));
  ASSERT_FALSE(third.has_value());
  EXPECT_NE(third.error().message.find("already in use"), std::string::npos);
}

TEST(Listener, says_what_is_wrong_with_an_address) {
  const auto listener = listen_on(*Address::parse("192.0.2.1:8080"));
  ASSERT_FALSE(listener.has_value());
  EXPECT_NE(listener.error().message.find("192.0.2.1:8080"), std::string::npos);
}

TEST(Resolve, knows_numbers_and_localhost_and_names_what_it_cannot) {
  const auto number = resolve("127.0.0.1", 81);
  ASSERT_TRUE(number.has_value());
  ASSERT_EQ(number->size(), 1u);
  EXPECT_EQ(number->front().text(), "127.0.0.1:81");
  const auto name = resolve("localhost", 8080);
  ASSERT_TRUE(name.has_value());
  ASSERT_FALSE(name->empty());
  for (const Address& address : *name) {
    EXPECT_TRUE(address.loopback()) << address.text();
    EXPECT_EQ(address.port(), 8080);
  }
  const auto nothing = resolve("no-such-name.invalid", 1);
  ASSERT_FALSE(nothing.has_value());
  EXPECT_TRUE(nothing.error().retryable);
  EXPECT_NE(nothing.error().message.find("no-such-name.invalid"), std::string::npos);
}

class Tls : public ::testing::Test {
 protected:
  const Certificate own_ = make_certificate("own", "localhost", "127.0.0.1");
  std::shared_ptr<TlsContext> server_ = *TlsContext::server(own_.certificate, own_.key, "");
  std::shared_ptr<TlsContext> client_ = *TlsContext::client(own_.certificate);
};

TEST_F(Tls, carries_large_texts_both_ways) {
  Pair pair = connected(client_, server_);
  EXPECT_TRUE(pair.client.tls());
  const std::vector<std::string> up = {"POST ", "", pattern(300'000), "x", pattern(16'384)};
  const Moved there = move_text(pair.client, pair.server, up);
  EXPECT_FALSE(there.failed);
  EXPECT_TRUE(there.text == joined(up));
  const std::vector<std::string> down = {pattern(2'000'000)};
  EXPECT_TRUE(move_text(pair.server, pair.client, down).text == joined(down));
}

TEST_F(Tls, writes_less_than_all_only_when_it_is_full) {
  Pair pair = connected(client_, server_);
  ASSERT_EQ(move_text(pair.client, pair.server, {"hello"}).text, "hello");  // hands are shaken
  EXPECT_EQ(written_at_once(pair.server, {pattern(100'000), "x", pattern(20'000)}), 120'001u)
      << "several records";
  EXPECT_LT(written_at_once(pair.server, {pattern(90'000'000)}), 90'000'000u);
}

TEST_F(Tls, checks_numeric_addresses_too) {
  Pair pair = connected(client_, server_, "127.0.0.1");
  EXPECT_EQ(move_text(pair.client, pair.server, {"hello"}).text, "hello");
}

TEST_F(Tls, refuses_a_certificate_of_another_name) {
  Pair pair = connected(client_, server_, "example.com");
  const Moved moved = move_text(pair.client, pair.server, {"secret"});
  EXPECT_TRUE(moved.failed);
  EXPECT_EQ(moved.text, "");
  Pair numeric = connected(client_, server_, "127.0.0.2");
  EXPECT_TRUE(move_text(numeric.client, numeric.server, {"secret"}).failed);
}

TEST_F(Tls, refuses_a_certificate_that_nobody_vouches_for) {
  const Certificate other = make_certificate("other", "localhost", "127.0.0.1");
  const auto stranger = *TlsContext::client(other.certificate);
  Pair pair = connected(stranger, server_);
  const Moved moved = move_text(pair.client, pair.server, {"secret"});
  EXPECT_TRUE(moved.failed);
  EXPECT_EQ(moved.text, "");
}

TEST_F(Tls, a_client_without_a_certificate_is_refused_where_one_is_asked_for) {
  const auto strict = *TlsContext::server(own_.certificate, own_.key, own_.certificate);
  Pair pair = connected(client_, strict);
  const Moved moved = move_text(pair.client, pair.server, {"hello"});
  EXPECT_TRUE(moved.failed || moved.closed);
  EXPECT_EQ(moved.text, "");
}

TEST_F(Tls, an_orderly_end_arrives_after_the_last_byte) {
  Pair pair = connected(client_, server_);
  ASSERT_EQ(move_text(pair.client, pair.server, {"bye"}).text, "bye");
  pair.client.close();
  char buffer[16];
  EXPECT_EQ(read_wait(pair.server, buffer, sizeof buffer).status, Status::Closed);
}

TEST_F(Tls, tells_of_the_peers_end_without_taking_what_comes_before_it) {
  Pair pair = connected(client_, server_);
  ASSERT_EQ(move_text(pair.client, pair.server, {"ask"}).text, "ask");
  EXPECT_FALSE(pair.server.peer_ended());
  ASSERT_EQ(pair.client.write("more").bytes, 4u);
  EXPECT_EQ(pair.client.end_writing(), Status::Ok);
  wait_for(pair.server.fd(), POLLIN);
  EXPECT_FALSE(pair.server.peer_ended());
  char buffer[16];
  EXPECT_EQ(read_wait(pair.server, buffer, sizeof buffer).bytes, 4u);
  for (int i = 0; i < 2000 && !pair.server.peer_ended(); ++i) {
    pollfd entry{pair.server.fd(), POLLIN, 0};
    ::poll(&entry, 1, 10);
  }
  EXPECT_TRUE(pair.server.peer_ended());
  EXPECT_EQ(read_wait(pair.server, buffer, sizeof buffer).status, Status::Closed);
}

TEST_F(Tls, one_side_may_end_while_the_other_goes_on) {
  Pair pair = connected(client_, server_);
  ASSERT_EQ(move_text(pair.client, pair.server, {"ask"}).text, "ask");
  ASSERT_EQ(move_text(pair.server, pair.client, {"answer"}).text, "answer");
  EXPECT_EQ(pair.server.end_writing(), Status::Ok);
  char buffer[16];
  EXPECT_EQ(read_wait(pair.client, buffer, sizeof buffer).status, Status::Closed);
  pair.client.write("more");
  EXPECT_EQ(read_wait(pair.server, buffer, sizeof buffer).bytes, 4u);
  pair.client.close();
  EXPECT_EQ(read_wait(pair.server, buffer, sizeof buffer).status, Status::Closed);
}

TEST_F(Tls, a_reset_is_no_orderly_end) {
  Pair pair = connected(client_, server_);
  ASSERT_EQ(move_text(pair.client, pair.server, {"ask"}).text, "ask");
  ASSERT_EQ(move_text(pair.server, pair.client, {"half"}).text, "half");
  pair.server.reset_on_close();
  pair.server.close();
  char buffer[16];
  EXPECT_EQ(read_wait(pair.client, buffer, sizeof buffer).status, Status::Failed);
}

TEST_F(Tls, plain_text_on_a_tls_port_fails) {
  Pair pair = connected(nullptr, server_);
  pair.client.write("GET / HTTP/1.1\r\nhost: x\r\n\r\n");
  char buffer[64];
  EXPECT_EQ(read_wait(pair.server, buffer, sizeof buffer).status, Status::Failed);
}

TEST_F(Tls, says_which_file_is_wrong) {
  const Certificate other = make_certificate("third", "localhost", "127.0.0.1");
  const auto missing = TlsContext::server("/no/such.pem", own_.key, "");
  ASSERT_FALSE(missing.has_value());
  EXPECT_NE(missing.error().message.find("/no/such.pem"), std::string::npos);
  const auto mixed = TlsContext::server(own_.certificate, other.key, "");
  ASSERT_FALSE(mixed.has_value());
  EXPECT_NE(mixed.error().message.find(other.key), std::string::npos);
  auto at_fault = TlsContext::File::Certificate;
  EXPECT_FALSE(TlsContext::server(own_.certificate, other.key, "", &at_fault).has_value());
  EXPECT_EQ(at_fault, TlsContext::File::Key);
  EXPECT_FALSE(TlsContext::server(own_.certificate, own_.key, own_.key, &at_fault).has_value());
  EXPECT_EQ(at_fault, TlsContext::File::ClientCa);
  EXPECT_FALSE(TlsContext::server(own_.key, own_.key, "", &at_fault).has_value());
  EXPECT_EQ(at_fault, TlsContext::File::Certificate);
  EXPECT_FALSE(TlsContext::server(own_.certificate, own_.certificate, "").has_value());
  EXPECT_FALSE(TlsContext::server(own_.certificate, own_.key, "/no/ca.pem").has_value());
  EXPECT_FALSE(TlsContext::client("/no/ca.pem").has_value());
  EXPECT_TRUE(TlsContext::client("").has_value());
}

}  // namespace
}  // namespace signalbox::net
