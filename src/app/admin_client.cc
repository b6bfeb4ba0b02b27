// SPDX-License-Identifier: Apache-2.0
// One GET over a blocking socket, read by our own parser.
#include "app/admin_client.h"

#include <poll.h>

#include <nlohmann/json.hpp>

#include "io/http/body_decoder.h"
#include "io/http/head_parser.h"
#include "io/http/writer.h"
#include "io/net/clock.h"
#include "io/net/stream.h"

namespace signalbox::app {
namespace {

using Status = net::IoResult::Status;

constexpr int kPatienceMs = 5000;                               // between two signs of life
constexpr Duration kAnswerWithin = std::chrono::seconds(10);    // of all of it
constexpr std::uint64_t kAnswerMax = 256 << 20;

Error unreachable(const std::string& address) {
  return Error{Code::Unavailable, Source::Us, true,
               "No gateway answers at " + address + ". Is it running? Its admin address is "
               "Gateway.admin.listen; name another with --admin."};
}

bool wait(const net::Stream& stream, short events) {
  pollfd entry{stream.fd(), events, 0};
  return ::poll(&entry, 1, kPatienceMs) == 1;
}

// Another program listens there: Prometheus, for one, has the same port by default.
Error foreign(const std::string& address, const std::string& how) {
  return Error{Code::BadUpstream, Source::Us, false,
               "What answers at " + address + " is not Signalbox's admin API: " + how +
                   ". Name another address with --admin."};
}

// What comes until the peer closes.
Result<std::string> read_all(net::Stream& stream, const std::string& address) {
  const Instant due = net::now() + kAnswerWithin;
  std::string out;
  char buffer[65536];
  while (out.size() < kAnswerMax && net::now() < due) {
    const net::IoResult got = stream.read(buffer, sizeof buffer);
    if (got.status == Status::Closed) return out;
    if (got.status == Status::Failed) return unreachable(address);
    if (got.status == Status::Ok) out.append(buffer, got.bytes);
    else if (!wait(stream, POLLIN)) return unreachable(address);
  }
  return foreign(address, "its answer has no end");
}

Result<std::string> read_answer(const std::string& address, const std::string& bytes) {
  const Error broken = foreign(address, "it does not speak HTTP, or breaks off");
  http::ResponseParser parser{http::Limits{}};
  if (parser.parse(bytes) != http::Progress::Complete) return broken;
  http::BodyDecoder decoder(parser.head().framing, http::Limits{}, http::Side::Response,
                            kAnswerMax);
  std::string_view rest = std::string_view(bytes).substr(parser.head_length());
  std::string body;
  while (!rest.empty() && !decoder.done()) {
    const http::BodyStep step = decoder.next(rest);
    if (step.state == http::BodyState::Error) return broken;
    body.append(step.data);
    rest.remove_prefix(step.consumed);
  }
  if (!decoder.done() && decoder.end_of_input() != http::BodyState::Done) return broken;
  if (parser.head().status == 200) return body;
  const auto json = nlohmann::json::parse(body, nullptr, false);
  const nlohmann::json::json_pointer message("/error/message");
  if (json.is_object() && json.contains(message) && json[message].is_string()) {
    return Error{Code::NotFound, Source::Client, false, json[message].get<std::string>()};
  }
  return foreign(address, "it answers " + std::to_string(parser.head().status));
}

}  // namespace

std::string percent_encoded(std::string_view text) {
  static constexpr char kDigits[] = "0123456789ABCDEF";
  std::string out;
  for (const char c : text) {
    const bool plain = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') ||
                       (c >= 'a' && c <= 'z') || c == '-' || c == '_' || c == '~';
    if (plain) {
      out += c;
      continue;
    }
    const auto byte = static_cast<unsigned char>(c);
    out += {'%', kDigits[byte >> 4], kDigits[byte & 15]};
  }
  return out;
}

Result<std::string> admin_get(const std::string& address, const std::string& path,
                              const std::string& token) {
  constexpr std::string_view kHere = "localhost:";
  const bool here = address.starts_with(kHere);
  TRY_ASSIGN(const net::Address target,
             net::Address::parse(here ? "127.0.0.1:" + address.substr(kHere.size()) : address));
  auto stream = net::Stream::connecting(target, nullptr, "");
  if (!stream || !wait(*stream, POLLOUT) || stream->connect_error() != 0) {
    return unreachable(address);
  }
  std::string request;
  http::append_request_line(request, "GET", path);
  http::append_field(request, "host", address);
  http::append_field(request, "connection", "close");
  if (!token.empty()) http::append_field(request, "authorization", "Bearer " + token);
  http::append_end_of_head(request);
  if (stream->write(request).bytes != request.size()) return unreachable(address);
  TRY_ASSIGN(const std::string answer, read_all(*stream, address));
  return read_answer(address, answer);
}

}  // namespace signalbox::app
