// SPDX-License-Identifier: Apache-2.0
// Takes the framing off a message body without copying. One decoder a message; does no I/O.
// The verdict and the decoded bytes do not depend on how the input was split.
//
//   while (!input.empty() && !decoder.done()) {
//     const auto step = decoder.next(input);
//     input.remove_prefix(step.consumed);
//     use(step.data);                                  // may be empty
//     if (step.state == BodyState::Error) return refuse(decoder.error());
//   }
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string_view>

#include "io/http/head.h"
#include "io/http/limits.h"
#include "io/http/reject.h"

namespace signalbox::http {

enum class BodyState : std::uint8_t {
  Open,   // the body goes on
  Done,   // the body ended; what was not consumed belongs to the next message
  Error,  // error() says why; stays so
};

struct BodyStep {
  std::size_t consumed = 0;  // bytes of the input; at least 1 while Open and the input has any
  std::string_view data;     // decoded bytes, inside the input
  BodyState state = BodyState::Open;
};

class BodyDecoder {
 public:
  static constexpr std::uint64_t kNoCap = std::numeric_limits<std::uint64_t>::max();

  BodyDecoder() = default;  // of a message without a body
  // body_bytes_max: decoded bytes beyond which the body is refused with 413; kNoCap for none. A
  // Content-Length beyond it is refused at once, before a byte is read.
  BodyDecoder(const Framing& framing, const Limits& limits, Side side,
              std::uint64_t body_bytes_max);

  // Gives at most one span of data and all framing around it, so that Done comes with the last
  // data when the input holds the end.
  BodyStep next(std::string_view input);

  // The peer closed the connection: Done if the body may end here, else Error.
  BodyState end_of_input();

  bool done() const { return state_ == BodyState::Done; }
  BodyState state() const { return state_; }
  // status 400, 413 or 431 for a request, 502 for a response. Only in Error.
  const Reject& error() const { return reject_; }
  // Decoded bytes so far.
  std::uint64_t received() const { return received_; }

 private:
  enum class Phase : std::uint8_t {
    Size, SizeDigits, ExtBlank, ExtName0, ExtName, ExtAfterName, ExtValue0, ExtValue, ExtQuoted,
    ExtEscape, ExtAfterValue, SizeLf, Data, DataCr, DataLf, Trailer0, TrailerName, TrailerValue,
    TrailerLf, EndLf,
  };

  BodyStep take(std::string_view input);
  BodyStep take_chunked(std::string_view input);
  const char* take_framing(const char* p, const char* end);
  void take_size(char c);
  void take_extension(char c);
  void take_extension_value(char c);
  void take_trailer(char c);
  void size_complete();
  void fail(int status, std::string_view reason);

  Limits limits_;
  Side side_ = Side::Request;
  Framing::Kind kind_ = Framing::Kind::None;
  Phase phase_ = Phase::Size;
  BodyState state_ = BodyState::Done;
  int size_digits_ = 0;
  std::uint64_t remaining_ = 0;  // of the body (Length) or of this chunk
  std::uint64_t received_ = 0;
  std::uint64_t max_ = kNoCap;
  std::uint64_t extension_bytes_ = 0;
  std::uint64_t trailer_bytes_ = 0;
  Reject reject_;
};

}  // namespace signalbox::http
