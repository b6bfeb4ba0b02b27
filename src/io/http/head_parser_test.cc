// SPDX-License-Identifier: Apache-2.0
// Goal: what a head says is read right, limits hold, and the work is linear.
// Method: examples.
#include "io/http/head_parser.h"

#include <gtest/gtest.h>

#include <string>

#include "io/http/transcript.h"

namespace signalbox::http {
namespace {

const std::string kRequest =
    "POST /v1/chat/completions?x=1&y=2 HTTP/1.1\r\n"
    "Host: api.example:8080\r\n"
    "Authorization: Bearer key\r\n"
    "content-type: application/json\r\n"
    "X-Signalbox-Workflow: w1\r\n"
    "x-request-id: r1\r\n"
    "Connection: close, X-Private\r\n"
    "x-private: p\r\n"
    "Content-Length: 5\r\n"
    "\r\n";

TEST(RequestParser, ReadsWhatTheHeadSays) {
  RequestParser parser{Limits{}};
  const std::string buffer = kRequest + "hello";
  ASSERT_EQ(parser.parse(buffer), Progress::Complete);
  const RequestHead& head = parser.head();
  EXPECT_EQ(parser.head_length(), kRequest.size());
  EXPECT_EQ(head.method, Method::Post);
  EXPECT_EQ(head.method_text(), "POST");
  EXPECT_EQ(head.target(), "/v1/chat/completions?x=1&y=2");
  EXPECT_EQ(head.path(), "/v1/chat/completions");
  EXPECT_EQ(head.query(), "x=1&y=2");
  EXPECT_EQ(head.host(), "api.example:8080");
  EXPECT_EQ(head.minor_version, 1);
  EXPECT_FALSE(head.keep_alive);
  EXPECT_EQ(head.framing, (Framing{Framing::Kind::Length, 5}));
  EXPECT_EQ(head.fields.size(), 8U);
  EXPECT_EQ(head.fields.find(FieldName::Authorization), "Bearer key");
  EXPECT_EQ(head.fields.find("CONTENT-TYPE"), "application/json");
  EXPECT_EQ(head.fields.find("x-signalbox-WORKFLOW"), "w1");
  EXPECT_EQ(head.fields.find("x-absent"), std::nullopt);
  EXPECT_EQ(head.fields.find(FieldName::Traceparent), std::nullopt);
}

TEST(RequestParser, KeepsItsViewsRightWhenTheBufferMoves) {
  RequestParser parser{Limits{}};
  auto first = std::make_unique<std::string>(kRequest.substr(0, 100));
  ASSERT_EQ(parser.parse(*first), Progress::NeedMore);
  auto second = std::make_unique<std::string>(kRequest);
  first.reset();
  ASSERT_EQ(parser.parse(*second), Progress::Complete);
  EXPECT_EQ(parser.head().host(), "api.example:8080");
  const auto third = std::make_unique<std::string>(*second + "hello");
  second.reset();
  parser.head().rebase(third->data());
  EXPECT_EQ(parser.head().path(), "/v1/chat/completions");
  EXPECT_EQ(parser.head().fields.find("x-request-id"), "r1");
}

TEST(RequestParser, TellsWhichFieldsEndAtThisConnection) {
  RequestParser parser{Limits{}};
  const std::string buffer =
      "GET / HTTP/1.1\r\nHost: a\r\nConnection: X-Private , authorization\r\nConnection: host\r\n"
      "x-private: p\r\nAuthorization: k\r\nTE: trailers\r\nKeep-Alive: 5\r\nUpgrade: h2c\r\n"
      "Accept: x\r\n\r\n";
  ASSERT_EQ(parser.parse(buffer), Progress::Complete);
  std::string ends;
  for (const Field& field : parser.head().fields) {
    if (is_hop_by_hop(parser.head(), field)) ends += std::string(field.name) + ' ';
  }
  EXPECT_EQ(ends, "Connection Connection x-private TE Keep-Alive Upgrade ");
}

TEST(RequestParser, ReadsThePathOfAbsoluteForms) {
  for (const auto& [target, path, query] :
       {std::tuple{"http://a", "/", ""}, std::tuple{"https://A/", "/", ""},
        std::tuple{"http://a?q", "/", "q"}, std::tuple{"HTTP://a/p/q?", "/p/q", ""}}) {
    RequestParser parser{Limits{}};
    const std::string buffer = "GET " + std::string(target) + " HTTP/1.1\r\nHost: a\r\n\r\n";
    ASSERT_EQ(parser.parse(buffer), Progress::Complete) << target;
    EXPECT_EQ(parser.head().path(), path);
    EXPECT_EQ(parser.head().query(), query);
  }
}

TEST(RequestParser, KnowsWhoWaitsForContinue) {
  const std::string rest = "Host: a\r\nExpect: 100-Continue\r\nContent-Length: 3\r\n\r\n";
  RequestParser parser{Limits{}};
  ASSERT_EQ(parser.parse("POST / HTTP/1.1\r\n" + rest), Progress::Complete);
  EXPECT_TRUE(parser.head().expect_continue);
  parser.reset();
  ASSERT_EQ(parser.parse("POST / HTTP/1.0\r\n" + rest), Progress::Complete);
  EXPECT_FALSE(parser.head().expect_continue);  // HTTP/1.0 knows no interim answers
  parser.reset();
  ASSERT_EQ(parser.parse("GET / HTTP/1.1\r\nHost: a\r\n\r\n"), Progress::Complete);
  EXPECT_FALSE(parser.head().expect_continue);
}

bool keeps_alive(const std::string& version, const std::string& connection) {
  RequestParser parser{Limits{}};
  const std::string buffer =
      "GET / HTTP/" + version + "\r\nHost: a\r\n" + connection + "\r\n";
  EXPECT_EQ(parser.parse(buffer), Progress::Complete);
  return parser.head().keep_alive;
}

TEST(RequestParser, KnowsWhetherTheConnectionLives) {
  EXPECT_TRUE(keeps_alive("1.1", ""));
  EXPECT_TRUE(keeps_alive("1.1", "Connection: Keep-Alive\r\n"));
  EXPECT_FALSE(keeps_alive("1.1", "Connection: x, CLOSE\r\n"));
  EXPECT_FALSE(keeps_alive("1.1", "Connection: keep-alive\r\nConnection: close\r\n"));
  EXPECT_FALSE(keeps_alive("1.0", ""));
  EXPECT_TRUE(keeps_alive("1.0", "Connection: keep-alive\r\n"));
}

TEST(RequestParser, ReadsPipelinedRequestsAfterReset) {
  RequestParser parser{Limits{}};
  std::string buffer =
      "GET /1 HTTP/1.1\r\nAuthorization: k\r\nHost: a\r\n\r\nGET /2 HTTP/1.1\r\nHost: b\r\n\r\n";
  ASSERT_EQ(parser.parse(buffer), Progress::Complete);
  EXPECT_EQ(parser.parse(buffer), Progress::Complete);  // asking again changes nothing
  EXPECT_EQ(parser.head().path(), "/1");
  buffer.erase(0, parser.head_length());
  parser.reset();
  EXPECT_FALSE(parser.started());
  EXPECT_EQ(parser.parse(""), Progress::NeedMore);
  EXPECT_FALSE(parser.started());
  ASSERT_EQ(parser.parse(buffer), Progress::Complete);
  EXPECT_TRUE(parser.started());
  EXPECT_EQ(parser.head().path(), "/2");
  EXPECT_EQ(parser.head().host(), "b");
  EXPECT_EQ(parser.head().fields.find(FieldName::Authorization), std::nullopt);
  EXPECT_EQ(parser.head_length(), buffer.size());
}

int status_of(const std::string& buffer, const Limits& limits) {
  RequestParser parser(limits);
  const Progress progress = parser.parse(buffer);
  return progress == Progress::Error ? parser.error().status : 0;
}

TEST(RequestParser, HoldsTheLimitsToTheByte) {
  Limits limits;
  limits.line_bytes_max = {200};
  limits.head_bytes_max = {1000};
  limits.fields_max = 5;
  const std::string start = "GET / HTTP/1.1\r\nHost: a\r\n";
  const std::string name = "X: ";
  EXPECT_EQ(status_of(start + name + std::string(197, 'v') + "\r\n\r\n", limits), 0);
  EXPECT_EQ(status_of(start + name + std::string(198, 'v') + "\r\n\r\n", limits), 431);
  EXPECT_EQ(status_of(start + std::string(202, 'n'), limits), 431);
  EXPECT_EQ(status_of(start + std::string(201, 'n'), limits), 0);  // CRLF could still follow
  const std::string target(200 - 14, 't');
  EXPECT_EQ(status_of("GET /" + target + " HTTP/1.1\r\nHost: a\r\n\r\n", limits), 0);
  EXPECT_EQ(status_of("GET /" + target + "t HTTP/1.1\r\nHost: a\r\n\r\n", limits), 414);
  const std::string few = start + "A:\r\nB:\r\nC:\r\nD:\r\n";
  EXPECT_EQ(status_of(few + "\r\n", limits), 0);
  EXPECT_EQ(status_of(few + "E:\r\n\r\n", limits), 431);

  limits.fields_max = 100;
  std::string full = start;
  while (full.size() + 102 < 998) full += "X: " + std::string(97, 'v') + "\r\n";
  full += "X: " + std::string(998 - full.size() - 5, 'v') + "\r\n";
  EXPECT_EQ(status_of(full + "\r\n", limits), 0);
  full.insert(full.size() - 2, "v");
  EXPECT_EQ(status_of(full + "\r\n", limits), 431);
}

TEST(RequestParser, GivesTheSameVerdictAtALimitHoweverSplit) {
  Limits limits;
  limits.line_bytes_max = {128};
  limits.head_bytes_max = {256};
  limits.fields_max = 3;
  for (int size = 100; size < 300; ++size) {
    const std::string value(static_cast<std::size_t>(size), 'v');
    const std::string bytes = "GET / HTTP/1.1\r\nHost: a\r\nX: " + value + "\r\n\r\n";
    ASSERT_EQ(transcript::requests(bytes, {1}, limits), transcript::requests(bytes, {}, limits));
    const std::string bad = "GET / HTTP/1.1\r\nHost: a\r\nX: " + value + "\x01\r\n\r\n";
    ASSERT_EQ(transcript::requests(bad, {1}, limits), transcript::requests(bad, {}, limits));
  }
}

TEST(ResponseParser, KnowsHowTheBodyEnds) {
  struct Case {
    const char* head;
    AnswerTo request;
    Framing framing;
    bool keep_alive;
  };
  using Kind = Framing::Kind;
  for (const Case& c : {
           Case{"HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\n", AnswerTo::Other,
                {Kind::Length, 7}, true},
           Case{"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", AnswerTo::Other, {}, true},
           Case{"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", AnswerTo::Other,
                {Kind::Chunked, 0}, true},
           Case{"HTTP/1.1 200 OK\r\n\r\n", AnswerTo::Other, {Kind::UntilClose, 0}, false},
           Case{"HTTP/1.1 200 OK\r\n\r\n", AnswerTo::Head, {}, true},
           Case{"HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\n", AnswerTo::Head, {}, true},
           Case{"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", AnswerTo::Head, {}, true},
           Case{"HTTP/1.1 204 None\r\n\r\n", AnswerTo::Other, {}, true},
           Case{"HTTP/1.1 200\r\nContent-Length: 7\r\n\r\n", AnswerTo::Other,
                {Kind::Length, 7}, true},
           Case{"HTTP/1.1 304 Same\r\nContent-Length: 7\r\n\r\n", AnswerTo::Other, {}, true},
           Case{"HTTP/1.0 200 OK\r\nContent-Length: 7\r\n\r\n", AnswerTo::Other,
                {Kind::Length, 7}, false},
           Case{"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 7\r\n\r\n",
                AnswerTo::Other, {Kind::Length, 7}, true},
       }) {
    ResponseParser parser(Limits{}, c.request);
    ASSERT_EQ(parser.parse(c.head), Progress::Complete) << c.head << parser.error().reason;
    EXPECT_EQ(parser.head().framing, c.framing) << c.head;
    EXPECT_EQ(parser.head().keep_alive, c.keep_alive) << c.head;
  }
}

TEST(ResponseParser, SkipsInterimAnswersUpToALimit) {
  Limits limits;
  limits.interim_responses_max = 2;
  const std::string interim = "HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n";
  const std::string last = "HTTP/1.1 200 Fine then\r\nContent-Length: 2\r\n\r\nok";
  ResponseParser parser(limits);
  for (int i = 0; i < 2; ++i) {
    ASSERT_EQ(parser.parse(interim), Progress::Complete);
    ASSERT_TRUE(parser.head().interim());
    parser.skip_interim();
  }
  ASSERT_EQ(parser.parse(last), Progress::Complete);
  EXPECT_EQ(parser.head().reason(), "Fine then");
  EXPECT_EQ(parser.head().fields.size(), 1U);

  parser.reset(AnswerTo::Other);
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(parser.parse(interim), Progress::Complete);
    parser.skip_interim();
  }
  EXPECT_EQ(parser.parse(last), Progress::Error);
}

TEST(ResponseParser, ReadsWhatLlamaCppSends) {
  ResponseParser parser{Limits{}};
  const std::string head =
      "HTTP/1.1 200 OK\r\nServer: llama.cpp\r\nAccess-Control-Allow-Origin: \r\n"
      "Content-Type: text/event-stream\r\nX-Accel-Buffering: no\r\n"
      "Transfer-Encoding: chunked\r\nKeep-Alive: timeout=5, max=100\r\n\r\n";
  ASSERT_EQ(parser.parse(head), Progress::Complete);
  EXPECT_EQ(parser.head().fields.find("access-control-allow-origin"), "");
  EXPECT_EQ(parser.head().fields.find(FieldName::KeepAlive), "timeout=5, max=100");
}

TEST(FieldName, EveryListedNameIsFoundInAnyCase) {
  for (std::size_t i = 1; i < kFieldNames; ++i) {
    const auto name = static_cast<FieldName>(i);
    std::string upper(text(name));
    EXPECT_EQ(field_name(upper), name) << upper;
    for (char& c : upper) c = static_cast<char>(c >= 'a' && c <= 'z' ? c - 32 : c);
    EXPECT_EQ(field_name(upper), name) << upper;
    for (std::size_t at = 0; at < upper.size(); ++at) {
      std::string other = upper;
      other[at] = '~';
      EXPECT_EQ(field_name(other), FieldName::Other) << other;
    }
  }
  EXPECT_EQ(field_name(""), FieldName::Other);
  EXPECT_EQ(field_name("x"), FieldName::Other);
}

}  // namespace
}  // namespace signalbox::http
