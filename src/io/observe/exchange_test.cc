// SPDX-License-Identifier: Apache-2.0
// Goal: one answer is read whole, however it arrives, and nothing else is taken for one. Method:
// answers in every framing, split at every byte.
#include "io/observe/exchange.h"

#include <gtest/gtest.h>

#include <vector>

namespace signalbox::observe {
namespace {

using State = Exchange::State;

State feed_split(Exchange& exchange, const std::string& bytes, std::size_t cut) {
  exchange.begin({});
  State state = exchange.feed(std::string_view(bytes).substr(0, cut));
  return state == State::Open ? exchange.feed(std::string_view(bytes).substr(cut)) : state;
}

TEST(Exchange, ReadsEveryFramingAtEverySplit) {
  const std::vector<std::string> answers = {
      "HTTP/1.1 200 OK\r\nServer: llama.cpp\r\nContent-Length: 5\r\n\r\nhello",
      "HTTP/1.1 200 OK\r\nserver: llama.cpp\r\nTransfer-Encoding: chunked\r\n\r\n"
      "2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n",
      "HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 200 OK\r\nServer: llama.cpp\r\n"
      "Content-Length: 5\r\n\r\nhello"};
  Exchange exchange(1000);
  for (const std::string& answer : answers) {
    for (std::size_t cut = 0; cut <= answer.size(); ++cut) {
      ASSERT_EQ(feed_split(exchange, answer, cut), State::Done) << answer << cut;
      EXPECT_EQ(exchange.status(), 200);
      EXPECT_EQ(exchange.server(), "llama.cpp");
      EXPECT_EQ(exchange.body(), "hello");
      EXPECT_TRUE(exchange.keep_alive());
    }
  }
}

TEST(Exchange, TakesTheCloseForTheEndOnlyWhereItMayBe) {
  Exchange exchange(1000);
  exchange.begin({});
  EXPECT_EQ(exchange.feed("HTTP/1.1 200 OK\r\n\r\nhel"), State::Open);
  EXPECT_EQ(exchange.end_of_input(), State::Done);
  EXPECT_EQ(exchange.body(), "hel");
  EXPECT_FALSE(exchange.keep_alive());
  exchange.begin({});
  EXPECT_EQ(exchange.feed("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhel"), State::Open);
  EXPECT_EQ(exchange.end_of_input(), State::Failed);
  exchange.begin({});
  EXPECT_EQ(exchange.feed("HTTP/1.1 200"), State::Open);
  EXPECT_EQ(exchange.end_of_input(), State::Failed);
  EXPECT_FALSE(exchange.reason().empty());
}

TEST(Exchange, RefusesWhatIsTooLargeOrNoHttp) {
  Exchange exchange(4);
  exchange.begin({});
  EXPECT_EQ(exchange.feed("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n"), State::Failed);
  exchange.begin({});
  EXPECT_EQ(exchange.feed("HTTP/1.1 200 OK\r\n\r\nhello"), State::Failed);
  exchange.begin({});
  EXPECT_EQ(exchange.feed("SSH-2.0-OpenSSH\r\n"), State::Failed);
}

TEST(Exchange, DoesNotReuseAConnectionWithBytesBehindTheAnswer) {
  Exchange exchange(1000);
  exchange.begin({});
  EXPECT_EQ(exchange.feed("HTTP/1.1 204 No Content\r\n\r\nHTTP/1.1 200 OK\r\n"), State::Done);
  EXPECT_FALSE(exchange.keep_alive());
  exchange.begin({});
  EXPECT_EQ(exchange.feed("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"),
            State::Done);
  EXPECT_FALSE(exchange.keep_alive());
}

TEST(Exchange, WritesAPlainRequestAndRefusesToWriteAnInjectedOne) {
  EXPECT_EQ(get_request("/metrics", "host:1", ""),
            "GET /metrics HTTP/1.1\r\nHost: host:1\r\nUser-Agent: signalbox\r\n"
            "Accept: */*\r\n\r\n");
  EXPECT_NE(get_request("/", "h", "secret")->find("\r\nAuthorization: Bearer secret\r\n"),
            std::string::npos);
  EXPECT_FALSE(get_request("/", "h\r\nx: y", ""));
  EXPECT_FALSE(get_request("/", "h", "k\r\nx: y"));
  EXPECT_FALSE(get_request("/a b", "h", ""));
}

}  // namespace
}  // namespace signalbox::observe
