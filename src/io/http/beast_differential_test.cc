// SPDX-License-Identifier: Apache-2.0
// Goal: whatever we accept, another reader understands the same: otherwise a message could be
// smuggled past one of the two.
// Method: Boost.Beast as oracle over generated messages, sound ones and mutated ones. We may refuse
// what Beast takes (we are stricter); what we take, Beast must read equally, except for the empty
// line before a request (RFC 9112 section 2.2), which Beast does not skip, and a status line that
// ends with its status, for which Beast wants a blank. Trailers, which we drop
// and Beast adds to the fields, are left out of the comparison; so is an empty reason, for which
// Beast gives the usual one, and Proxy-Connection, which Beast obeys and no RFC defines. We may
// close where Beast keeps the connection ("close" wins over "keep-alive" in HTTP/1.0), never the
// reverse.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <boost/beast/http.hpp>
#include <map>

#include "io/http/transcript.h"

namespace signalbox::http {
namespace {

namespace beast = boost::beast::http;

struct Message {
  std::string start_line;  // "POST /x 11" or "200 OK 11"
  // By name in lower case: Beast keeps fields of one name together, so order counts within it only.
  std::map<std::string, std::vector<std::string>> fields;
  std::string body;
  std::size_t consumed = 0;
  bool keep_alive = false;
  bool operator==(const Message&) const = default;
};

std::ostream& operator<<(std::ostream& out, const Message& m) {
  out << m.start_line << " consumed " << m.consumed << " keep " << m.keep_alive;
  for (const auto& [name, values] : m.fields) {
    for (const std::string& value : values) out << "\n  " << name << ": " << value;
  }
  return out << "\n  body=" << m.body;
}

std::string text(boost::beast::string_view v) { return {v.data(), v.size()}; }

std::string lowered(std::string_view s) {
  std::string out(s);
  for (char& c : out) c = lower(c);
  return out;
}

Limits lenient() {
  Limits limits;
  limits.line_bytes_max = {60000};
  return limits;
}

// nullopt: refused or unfinished.
template <bool isRequest>
std::optional<Message> read_with_beast(std::string_view bytes) {
  beast::parser<isRequest, beast::string_body> parser;
  parser.header_limit(1 << 20);
  parser.body_limit(boost::none);
  boost::system::error_code error;
  Message out;
  auto keep_fields = [&] {  // before trailers, which Beast adds and we drop
    for (const auto& f : parser.get()) {
      out.fields[lowered(text(f.name_string()))].push_back(text(f.value()));
    }
    parser.eager(true);
  };
  while (!parser.is_done()) {
    const bool in_head = !parser.is_header_done();
    const std::size_t used =
        parser.put(boost::asio::buffer(bytes.data() + out.consumed, bytes.size() - out.consumed),
                   error);
    out.consumed += used;
    if (in_head && parser.is_header_done()) keep_fields();
    if (error == beast::error::need_more && used > 0) continue;
    if (error || used == 0) break;
  }
  if (!parser.is_done() && !parser.need_eof()) return std::nullopt;
  if (error && error != beast::error::need_more) return std::nullopt;
  if (!parser.is_header_done()) return std::nullopt;
  const auto& message = parser.get();
  if constexpr (isRequest) {
    out.start_line = text(message.method_string()) + " " + text(message.target());
  } else {
    out.start_line = std::to_string(message.result_int()) + " " + text(message.reason());
  }
  out.start_line += " " + std::to_string(message.version());
  out.body = message.body();
  out.keep_alive = parser.keep_alive();
  return out;
}

template <bool isRequest>
std::optional<Message> read_with_ours(std::string_view bytes) {
  const Limits limits = lenient();
  std::conditional_t<isRequest, RequestParser, ResponseParser> parser(limits);
  if (parser.parse(bytes) != Progress::Complete) return std::nullopt;
  const auto& head = parser.head();
  Message out;
  if constexpr (isRequest) {
    out.start_line = std::string(head.method_text()) + " " + std::string(head.target());
  } else {
    out.start_line = std::to_string(head.status) + " " + std::string(head.reason());
  }
  out.start_line += " 1" + std::to_string(head.minor_version);
  for (const Field& f : head.fields) out.fields[lowered(f.name)].emplace_back(f.value);
  out.consumed = parser.head_length();
  out.keep_alive = head.keep_alive;
  BodyDecoder decoder(head.framing, limits, Side::Request, BodyDecoder::kNoCap);
  while (!decoder.done() && out.consumed < bytes.size()) {
    const BodyStep step = decoder.next(bytes.substr(out.consumed));
    out.consumed += step.consumed;
    out.body += step.data;
    if (step.state == BodyState::Error) return std::nullopt;
  }
  if (!decoder.done() && decoder.end_of_input() != BodyState::Done) return std::nullopt;
  return out;
}

template <bool isRequest>
void must_agree(const std::string& bytes, int& accepted) {
  auto ours = read_with_ours<isRequest>(bytes);
  if (!ours) return;
  ++accepted;
  auto theirs = read_with_beast<isRequest>(bytes);
  if (!theirs && isRequest && bytes.starts_with("\r\n")) {
    theirs = read_with_beast<isRequest>(bytes.substr(2));
    if (theirs) theirs->consumed += 2;
  }
  constexpr std::size_t kStatusEnd = 12;  // of "HTTP/1.1 200"
  if (!theirs && !isRequest && bytes.substr(kStatusEnd, 2) == "\r\n") {
    theirs = read_with_beast<isRequest>(std::string(bytes).insert(kStatusEnd, " "));
    if (theirs) theirs->consumed -= 1;
  }
  if (!theirs) RC_FAIL("Beast refuses what we accept: " + bytes);
  if (!isRequest && ours->start_line.substr(3, 2) == "  ") theirs->start_line = ours->start_line;
  if (!ours->keep_alive) theirs->keep_alive = false;
  RC_ASSERT(*ours == *theirs);
}

template <typename... Texts>
rc::Gen<std::string> one_of(Texts... texts) {
  return rc::gen::element<std::string>(texts...);
}

rc::Gen<std::string> field_lines() {
  return rc::gen::map(
      rc::gen::container<std::vector<std::string>>(one_of(
          "Accept: */*\r\n", "X-A:b\r\n", "x-a: c d\t\r\n", "X-Empty:\r\n", "Cookie: a=b; c=d\r\n",
          "Connection: close\r\n", "Connection: keep-alive\r\n", "Connection: x-a, TE\r\n",
          "Content-Type: application/json\r\n", "X-Obs: \xc3\xa9\r\n", "X.!#$%&'*+^_`|~: 1\r\n",
          "TE: trailers\r\n", "Upgrade: websocket\r\n",
          "Authorization: Bearer sk-123\r\n")),
      [](const std::vector<std::string>& lines) {
        std::string out;
        for (const std::string& line : lines) out += line;
        return out;
      });
}

rc::Gen<std::string> framed_bodies() {
  return one_of("\r\n", "Content-Length: 0\r\n\r\n", "Content-Length: 5\r\n\r\nhello",
                "content-length:  5 \r\n\r\nhello",
                "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
                "transfer-encoding: CHUNKED\r\n\r\n5;a=\"b;\\\"c\" ; d\r\nhello\r\n00\r\n\r\n",
                "Transfer-Encoding: chunked\r\n\r\n1\r\nh\r\n04\r\nello\r\n0;x\r\n\r\n",
                "Transfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\nX-T: 1\r\nX-U:\r\n\r\n");
}

std::string draw_request() {
  const std::string start = *one_of(
      "GET / HTTP/1.1\r\n", "POST /v1/chat/completions HTTP/1.1\r\n",
      "DELETE /a?b=%20 HTTP/1.1\r\n",
      "GET http://a/x HTTP/1.1\r\n", "OPTIONS * HTTP/1.1\r\n", "PUT / HTTP/1.0\r\n",
      "BREW /pot HTTP/1.1\r\n");
  return *one_of("", "", "", "\r\n") + start + "Host: a\r\n" + *field_lines() + *framed_bodies() +
         *one_of("", "GET /next HTTP/1.1\r\nHost: a\r\n\r\n");
}

std::string draw_response() {
  const std::string start = *one_of("HTTP/1.1 200 OK\r\n", "HTTP/1.1 404 Not Found\r\n",
                                    "HTTP/1.0 200 OK\r\n", "HTTP/1.1 503 \r\n",
                                    "HTTP/1.1 200\r\n", "HTTP/1.0 500\r\n",
                                    "HTTP/1.1 429 Too \xc3\xa9 Many\r\n", "HTTP/1.1 304 Same\r\n",
                                    "HTTP/1.1 204 No Content\r\n");
  return start + *field_lines() + *framed_bodies() + *one_of("", "HTTP/1.1 200 OK\r\n\r\n");
}

// Changes a few places: flips, deletes, doubles, or puts in something that parsers trip over.
std::string mutate(std::string bytes) {
  const int changes = *rc::gen::inRange(1, 4);
  for (int i = 0; i < changes && !bytes.empty(); ++i) {
    const auto at = *rc::gen::inRange<std::size_t>(0, bytes.size());
    const std::string piece =
        *one_of("\r", "\n", "\r\n", " ", "\t", ":", ",", ";", "\"", "0", "x", "+", "\x7f", "\x01",
                "\x80", "%", "/", "chunked", "Content-Length: 5\r\n", "\r\n ", "HTTP/1.0", "\\",
                "Transfer-Encoding: chunked\r\n", "Host: b\r\n", "=", "(");
    const auto end = std::min(bytes.size(), at + *rc::gen::inRange<std::size_t>(0, 4));
    switch (*rc::gen::inRange(0, 4)) {
      case 0: bytes.insert(at, piece); break;
      case 1: bytes.replace(at, end - at, piece); break;
      case 2: bytes.erase(at, end - at); break;
      default: bytes[at] = *rc::gen::arbitrary<char>();
    }
  }
  return bytes;
}

constexpr int kRounds = 30;  // messages a RapidCheck case, so that thousands are compared

RC_GTEST_PROP(BeastDifferential, SoundRequestsAreReadAlike, ()) {
  int accepted = 0;
  for (int i = 0; i < kRounds; ++i) must_agree<true>(draw_request(), accepted);
  RC_ASSERT(accepted > 0);
}

RC_GTEST_PROP(BeastDifferential, SoundResponsesAreReadAlike, ()) {
  int accepted = 0;
  for (int i = 0; i < kRounds; ++i) must_agree<false>(draw_response(), accepted);
  RC_ASSERT(accepted > 0);
}

RC_GTEST_PROP(BeastDifferential, WhatWeTakeOfMutatedRequestsIsReadAlike, ()) {
  int accepted = 0;
  for (int i = 0; i < kRounds; ++i) must_agree<true>(mutate(draw_request()), accepted);
}

RC_GTEST_PROP(BeastDifferential, WhatWeTakeOfMutatedResponsesIsReadAlike, ()) {
  int accepted = 0;
  for (int i = 0; i < kRounds; ++i) must_agree<false>(mutate(draw_response()), accepted);
}

}  // namespace
}  // namespace signalbox::http
