// SPDX-License-Identifier: Apache-2.0
// Goal: every class of malformed or ambiguous message is refused, every sound one understood.
// Method: each class alone, with a second message pipelined behind it, split at every byte, and as
// its response twin; a refused message yields nothing of what is behind it.
#include <gtest/gtest.h>

#include "io/http/transcript.h"

namespace signalbox::http {
namespace {

struct Class {
  const char* name;
  std::string message;
  int status;  // 0: accepted
};

const std::string kSecond = "GET /second HTTP/1.1\r\nHost: b\r\n\r\n";
const std::string kSecondAnswer = "HTTP/1.1 299 Second\r\nContent-Length: 0\r\n\r\n";

std::string post(const std::string& fields, const std::string& body) {
  return "POST /v1/completions HTTP/1.1\r\nHost: a\r\n" + fields + "\r\n" + body;
}
std::string line(const std::string& request_line) {
  return request_line + "\r\nHost: a\r\n\r\n";
}

const std::string kNul("\0", 1);

// What the two sides share: fields and body. `start` is the start line with CRLF, and Host for a
// request.
std::vector<Class> shared_classes(const std::string& start, const std::string& start_10) {
  const std::string te = "Transfer-Encoding: chunked\r\n";
  const std::string body = "3\r\nabc\r\n0\r\n\r\n";
  auto with = [&](const std::string& fields, const std::string& rest) {
    return start + fields + "\r\n" + rest;
  };
  return {
      {"plain length", with("Content-Length: 3\r\n", "abc"), 0},
      {"length with leading zeros", with("Content-Length: 003\r\n", "abc"), 0},
      {"length with blanks around", with("Content-Length: \t 3 \t\r\n", "abc"), 0},
      {"chunked", with(te, body), 0},
      {"chunked in another case", with("transfer-ENCODING:Chunked\r\n", body), 0},
      {"chunk extension", with(te, "3;a=b\r\nabc\r\n0;last\r\n\r\n"), 0},
      {"chunk extension, quoted", with(te, "3 ; a = \"x\\\"y;\" ;c\r\nabc\r\n0\r\n\r\n"), 0},
      {"trailers", with(te, "3\r\nabc\r\n0\r\nX-A: 1\r\nX-B:\r\n\r\n"), 0},
      {"upper-case and zero-padded size", with(te, "00A\r\n0123456789\r\n0\r\n\r\n"), 0},
      {"several chunks", with(te, "1\r\na\r\n2\r\nbc\r\n0\r\n\r\n"), 0},
      {"empty value", with("X:\r\nContent-Length: 3\r\n", "abc"), 0},
      {"obs-text in a value", with("X: \xc3\xa9\r\nContent-Length: 3\r\n", "abc"), 0},
      {"tab in a value", with("X: a\tb\r\nContent-Length: 3\r\n", "abc"), 0},

      {"CL then TE", with("Content-Length: 3\r\n" + te, body), 400},
      {"TE then CL", with(te + "Content-Length: 3\r\n", body), 400},
      {"HTTP/1.0 with chunked", start_10 + te + "\r\n" + body, 400},
      {"differing CLs", with("Content-Length: 3\r\nContent-Length: 4\r\n", "abcd"), 400},
      {"equal CLs", with("Content-Length: 3\r\nContent-Length: 3\r\n", "abc"), 400},
      {"CL list", with("Content-Length: 3, 3\r\n", "abc"), 400},
      {"CL +3", with("Content-Length: +3\r\n", "abc"), 400},
      {"CL 0x3", with("Content-Length: 0x3\r\n", "abc"), 400},
      {"CL -3", with("Content-Length: -3\r\n", "abc"), 400},
      {"CL empty", with("Content-Length: \r\n", "abc"), 400},
      {"CL 2^64", with("Content-Length: 18446744073709551616\r\n", "abc"), 400},
      {"CL 2^64+3", with("Content-Length: 18446744073709551619\r\n", "abc"), 400},
      {"CL 3x", with("Content-Length: 3x\r\n", "abc"), 400},
      {"CL 3 3", with("Content-Length: 3 3\r\n", "abc"), 400},
      {"TE twice", with(te + te, body), 400},
      {"TE chunked, chunked", with("Transfer-Encoding: chunked, chunked\r\n", body), 400},
      {"TE gzip, chunked", with("Transfer-Encoding: gzip, chunked\r\n", body), 400},
      {"TE identity", with("Transfer-Encoding: identity\r\n", body), 400},
      {"TE xchunked", with("Transfer-Encoding: xchunked\r\n", body), 400},
      {"TE quoted", with("Transfer-Encoding: \"chunked\"\r\n", body), 400},
      {"TE empty", with("Transfer-Encoding:\r\n", body), 400},
      {"TE with vertical tab", with("Transfer-Encoding: \vchunked\r\n", body), 400},
      {"space before the colon", with("Transfer-Encoding : chunked\r\n", body), 400},
      {"tab before the colon", with("Content-Length\t: 3\r\n", "abc"), 400},
      {"folded TE", with("Transfer-Encoding:\r\n chunked\r\n", body), 400},
      {"folded value", with("X: a\r\n\tb\r\nContent-Length: 3\r\n", "abc"), 400},
      {"chunk size 0x3", with(te, "0x3\r\nabc\r\n0\r\n\r\n"), 400},
      {"chunk size +3", with(te, "+3\r\nabc\r\n0\r\n\r\n"), 400},
      {"chunk size -3", with(te, "-3\r\nabc\r\n0\r\n\r\n"), 400},
      {"chunk size empty", with(te, "\r\nabc\r\n0\r\n\r\n"), 400},
      {"chunk size only an extension", with(te, ";a\r\nabc\r\n0\r\n\r\n"), 400},
      {"chunk size with leading space", with(te, " 3\r\nabc\r\n0\r\n\r\n"), 400},
      {"chunk size with trailing space", with(te, "3 \r\nabc\r\n0\r\n\r\n"), 400},
      {"chunk size bare LF", with(te, "3\nabc\r\n0\r\n\r\n"), 400},
      {"chunk size bare CR", with(te, "3\rabc\r\n0\r\n\r\n"), 400},
      {"chunk size 2^64+3", with(te, "10000000000000003\r\nabc\r\n0\r\n\r\n"), 400},
      {"chunk extension with LF", with(te, "3;a\nabc\r\n0\r\n\r\n"), 400},
      {"chunk extension with quoted CRLF", with(te, "3;a=\"\r\n\"\r\nabc\r\n0\r\n\r\n"), 400},
      {"chunk extension with a trailing blank", with(te, "3;a \r\nabc\r\n0\r\n\r\n"), 400},
      {"chunk extension value with a blank", with(te, "3;a=b \r\nabc\r\n0\r\n\r\n"), 400},
      {"chunk extension without a value", with(te, "3;a=\r\nabc\r\n0\r\n\r\n"), 400},
      {"chunk extension with an open quote", with(te, "3;a=\"b\r\nabc\r\n0\r\n\r\n"), 400},
      {"chunk extension without a name", with(te, "3;\r\nabc\r\n0\r\n\r\n"), 400},
      {"chunk data closed by LF", with(te, "3\r\nabc\n0\r\n\r\n"), 400},
      {"chunk data closed by other bytes", with(te, "3\r\nabcXX0\r\n\r\n"), 400},
      {"chunk data longer than its size", with(te, "3\r\nabcd\r\n0\r\n\r\n"), 400},
      {"last chunk closed by LF", with(te, "3\r\nabc\r\n0\n\n"), 400},
      {"body closed by LF", with(te, "3\r\nabc\r\n0\r\n\n"), 400},
      {"trailer with LF", with(te, "0\r\nX: 1\n\r\n"), 400},
      {"trailer without colon", with(te, "0\r\nX\r\n\r\n"), 400},
      {"trailer folded", with(te, "0\r\nX: a\r\n b\r\n\r\n"), 400},
      {"bare CR in a value", with("X: a\rb\r\nContent-Length: 3\r\n", "abc"), 400},
      {"CR CR LF", with("X: a\r\r\nContent-Length: 3\r\n", "abc"), 400},
      {"NUL in a value", with("X: a" + kNul + "b\r\nContent-Length: 3\r\n", "abc"), 400},
      {"DEL in a value", with("X: a\x7f\r\nContent-Length: 3\r\n", "abc"), 400},
      {"NUL in a name", with("X" + kNul + ": a\r\nContent-Length: 3\r\n", "abc"), 400},
      {"header without colon", with("X\r\nContent-Length: 3\r\n", "abc"), 400},
      {"empty name", with(": a\r\nContent-Length: 3\r\n", "abc"), 400},
      {"name with a bad character", with("X(: a\r\nContent-Length: 3\r\n", "abc"), 400},
      {"name with obs-text", with("X\xc3\xa9: a\r\nContent-Length: 3\r\n", "abc"), 400},
      {"one line ends in LF", with("X: a\nContent-Length: 3\r\n", "abc"), 400},
      {"head closed by LF", start + "Content-Length: 3\r\n\nabc", 400},
      {"Connection that is no list", with("Connection: a b\r\nContent-Length: 3\r\n", "abc"), 400},
  };
}

std::vector<Class> request_classes() {
  std::vector<Class> classes = shared_classes("POST / HTTP/1.1\r\nHost: a\r\n",
                                              "POST / HTTP/1.0\r\nHost: a\r\n");
  const std::vector<Class> own = {
      {"no body", line("GET /v1/models HTTP/1.1"), 0},
      {"one empty line before", "\r\n" + line("GET / HTTP/1.1"), 0},
      {"HTTP/1.0 with Host", line("GET / HTTP/1.0"), 0},
      {"HTTP/1.0 without Host", "GET / HTTP/1.0\r\n\r\n", 0},
      {"absolute form", line("GET http://a/x?y HTTP/1.1"), 0},
      {"absolute form without a path", line("GET http://A HTTP/1.1"), 0},
      {"asterisk form", line("OPTIONS * HTTP/1.1"), 0},
      {"method that nobody knows", line("BREW / HTTP/1.1"), 0},
      {"Host with port", "GET / HTTP/1.1\r\nHost: a.b-c_d:65535\r\n\r\n", 0},
      {"Host IPv6", "GET / HTTP/1.1\r\nHost: [2001:db8::1]:80\r\n\r\n", 0},
      {"expects", post("Content-Length: 3\r\nExpect: 100-Continue\r\n", "abc"), 0},

      {"LF-only head", "GET / HTTP/1.1\nHost: a\n\n", 400},
      {"leading-space first header", "GET / HTTP/1.1\r\n Host: a\r\n\r\n", 400},
      {"leading-tab first header", "GET / HTTP/1.1\r\n\tHost: a\r\n\r\n", 400},
      {"two empty lines before", "\r\n\r\n" + line("GET / HTTP/1.1"), 400},
      {"leading space", " " + line("GET / HTTP/1.1"), 400},
      {"method in lower case", line("get / HTTP/1.1"), 400},
      {"method with a bad character", line("G@T / HTTP/1.1"), 400},
      {"method with a control", line("G\x01T / HTTP/1.1"), 400},
      {"method empty", line(" / HTTP/1.1"), 400},
      {"two spaces before the target", line("GET  / HTTP/1.1"), 400},
      {"two spaces before the version", line("GET /  HTTP/1.1"), 400},
      {"tab before the target", line("GET\t/ HTTP/1.1"), 400},
      {"space behind the version", line("GET / HTTP/1.1 "), 400},
      {"space in the target", line("GET /a b HTTP/1.1"), 400},
      {"control in the target", line("GET /a\x01z HTTP/1.1"), 400},
      {"NUL in the target", line("GET /a" + kNul + " HTTP/1.1"), 400},
      {"obs-text in the target", line("GET /\xc3\xa9 HTTP/1.1"), 400},
      {"backslash in the target", line("GET /a\\b HTTP/1.1"), 400},
      {"fragment in the target", line("GET /a#b HTTP/1.1"), 400},
      {"relative target", line("GET a HTTP/1.1"), 400},
      {"asterisk without OPTIONS", line("GET * HTTP/1.1"), 400},
      {"dot segments", line("GET /v1/../admin HTTP/1.1"), 400},
      {"escaped dot segments", line("GET /v1/%2E./admin HTTP/1.1"), 400},
      {"two slashes first", line("GET //admin HTTP/1.1"), 400},
      {"broken escape", line("GET /%zz HTTP/1.1"), 400},
      {"cut escape", line("GET /%4 HTTP/1.1"), 400},
      {"escaped NUL", line("GET /%00 HTTP/1.1"), 400},
      {"absolute form to another host", line("GET http://b/ HTTP/1.1"), 400},
      {"absolute form with another port", line("GET http://a:81/ HTTP/1.1"), 400},
      {"absolute form with user", line("GET http://u@a/ HTTP/1.1"), 400},
      {"absolute form of another scheme", line("GET ftp://a/ HTTP/1.1"), 400},
      {"CONNECT", line("CONNECT a:443 HTTP/1.1"), 501},
      {"HTTP/0.9", "GET /\r\n", 400},
      {"HTTP/0.9 by name", line("GET / HTTP/0.9"), 400},
      {"version in lower case", line("GET / http/1.1"), 400},
      {"version 1.10", line("GET / HTTP/1.10"), 400},
      {"version 01.1", line("GET / HTTP/01.1"), 400},
      {"version 1.2", line("GET / HTTP/1.2"), 505},
      {"HTTP/2 preface", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505},
      {"TLS hello", std::string("\x16\x03\x01\x02", 4), 400},
      {"no Host", "GET / HTTP/1.1\r\nAccept: x\r\n\r\n", 400},
      {"two Hosts", "GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n", 400},
      {"two Hosts in HTTP/1.0", "GET / HTTP/1.0\r\nHost: a\r\nHost: b\r\n\r\n", 400},
      {"Host empty", "GET / HTTP/1.1\r\nHost:\r\n\r\n", 400},
      {"Host list", "GET / HTTP/1.1\r\nHost: a,b\r\n\r\n", 400},
      {"Host with a path", "GET / HTTP/1.1\r\nHost: a/b\r\n\r\n", 400},
      {"Host with user", "GET / HTTP/1.1\r\nHost: u@a\r\n\r\n", 400},
      {"Host with a blank", "GET / HTTP/1.1\r\nHost: a b\r\n\r\n", 400},
      {"Host with a bad port", "GET / HTTP/1.1\r\nHost: a:65536\r\n\r\n", 400},
      {"Host with an empty port", "GET / HTTP/1.1\r\nHost: a:\r\n\r\n", 400},
      {"Host with an odd IPv6", "GET / HTTP/1.1\r\nHost: [::1\r\n\r\n", 400},
      {"Host with an escape", "GET / HTTP/1.1\r\nHost: %61\r\n\r\n", 400},
      {"another expectation", post("Content-Length: 3\r\nExpect: miracles\r\n", "abc"), 417},
  };
  classes.insert(classes.end(), own.begin(), own.end());
  return classes;
}

std::vector<Class> response_classes() {
  std::vector<Class> classes = shared_classes("HTTP/1.1 200 OK\r\n", "HTTP/1.0 200 OK\r\n");
  const std::vector<Class> own = {
      {"no reason", "HTTP/1.1 200 \r\nContent-Length: 0\r\n\r\n", 0},
      {"interim first", "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
       0},
      {"204", "HTTP/1.1 204 No Content\r\n\r\n", 0},
      {"304 with the length of what it spares",
       "HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n", 0},

      {"LF-only head", "HTTP/1.1 200 OK\nContent-Length: 0\n\n", 400},
      {"leading-space first header", "HTTP/1.1 200 OK\r\n Content-Length: 0\r\n\r\n", 400},
      {"empty line before", "\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", 400},
      {"HTTP/0.9", "<html>hello</html>\r\n", 400},
      {"HTTP/2.0", "HTTP/2.0 200 OK\r\nContent-Length: 0\r\n\r\n", 400},
      {"version in lower case", "http/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", 400},
      {"no space behind the status", "HTTP/1.1 200\r\nContent-Length: 0\r\n\r\n", 0},
      {"status of two digits", "HTTP/1.1 20 OK\r\nContent-Length: 0\r\n\r\n", 400},
      {"status of four digits", "HTTP/1.1 2000 OK\r\nContent-Length: 0\r\n\r\n", 400},
      {"status below 100", "HTTP/1.1 099 OK\r\nContent-Length: 0\r\n\r\n", 400},
      {"status above 599", "HTTP/1.1 600 OK\r\nContent-Length: 0\r\n\r\n", 400},
      {"signed status", "HTTP/1.1 +20 OK\r\nContent-Length: 0\r\n\r\n", 400},
      {"control in the reason", "HTTP/1.1 200 O\x01K\r\nContent-Length: 0\r\n\r\n", 400},
      {"101", "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n", 400},
      {"204 with chunked", "HTTP/1.1 204 No\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400},
      {"204 with a length", "HTTP/1.1 204 No\r\nContent-Length: 3\r\n\r\nabc", 400},
      {"100 with a length", "HTTP/1.1 100 Continue\r\nContent-Length: 3\r\n\r\nabc", 400},
  };
  classes.insert(classes.end(), own.begin(), own.end());
  return classes;
}

void check(const Class& c, const std::string& bytes, const std::string& whole, int status,
           const std::string& second) {
  SCOPED_TRACE(c.name);
  const std::string refused = "refused " + std::to_string(status);
  if (c.status == 0) {
    EXPECT_EQ(whole.find("refused"), std::string::npos) << whole;
    EXPECT_EQ(whole.find("unfinished"), std::string::npos) << whole;
    EXPECT_NE(whole.find(second), std::string::npos) << whole;
  } else {
    EXPECT_NE(whole.find(refused), std::string::npos) << whole;
    EXPECT_EQ(whole.find(second), std::string::npos) << whole;
  }
  EXPECT_FALSE(bytes.empty());
}

TEST(PayloadClasses, RequestsAreUnderstoodOrRefused) {
  for (const Class& c : request_classes()) {
    const std::string bytes = c.message + kSecond;
    check(c, bytes, transcript::requests(bytes, {}), c.status, "path=/second");
  }
}

TEST(PayloadClasses, ResponsesAreUnderstoodOrRefused) {
  for (const Class& c : response_classes()) {
    const std::string bytes = c.message + kSecondAnswer;
    check(c, bytes, transcript::responses(bytes, {}), 502, "299 Second");
  }
}

TEST(PayloadClasses, SplitsOfRequestsChangeNothing) {
  for (const Class& c : request_classes()) {
    SCOPED_TRACE(c.name);
    const std::string bytes = c.message + kSecond;
    const std::string whole = transcript::requests(bytes, {});
    EXPECT_EQ(transcript::requests(bytes, {1}), whole);
    for (std::size_t cut = 1; cut < bytes.size(); ++cut) {
      ASSERT_EQ(transcript::requests(bytes, {cut, bytes.size()}), whole) << "cut at " << cut;
    }
  }
}

TEST(PayloadClasses, SplitsOfResponsesChangeNothing) {
  for (const Class& c : response_classes()) {
    SCOPED_TRACE(c.name);
    const std::string bytes = c.message + kSecondAnswer;
    const std::string whole = transcript::responses(bytes, {});
    EXPECT_EQ(transcript::responses(bytes, {1}), whole);
    for (std::size_t cut = 1; cut < bytes.size(); ++cut) {
      ASSERT_EQ(transcript::responses(bytes, {cut, bytes.size()}), whole) << "cut at " << cut;
    }
  }
}

// A refusal comes with the bytes that prove it: what follows them is not waited for.
TEST(PayloadClasses, RefusalsOfHeadsDoNotWaitForTheirEnd) {
  for (const char* start :
       {" ", "\n", "GET / HTTP/1.1\r\n ", "GET / HTTP/1.1\n", "GET /\x01", "GET /\r\n", "GE T\r\n",
        "POST / HTTP/1.1\r\nHost: a\r\nHost: a\r\n", "POST / HTTP/1.1\r\nTransfer-Encoding : c\r\n",
        "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n",
        "POST / HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n"}) {
    RequestParser parser{Limits{}};
    EXPECT_EQ(parser.parse(start), Progress::Error) << start;
    EXPECT_EQ(parser.error().status, 400) << start;
  }
}

}  // namespace
}  // namespace signalbox::http
