// SPDX-License-Identifier: Apache-2.0
// The chunk grammar of RFC 9112 section 7.1, strictly: CRLF ends every line, sizes are plain
// hexadecimal, extensions and trailers must be well formed and are dropped.
#include "io/http/body_decoder.h"

#include <algorithm>

#include "io/http/chars.h"

namespace signalbox::http {
namespace {

constexpr int kSizeDigitsMax = 16;  // so that a chunk size fits in 64 bits

}  // namespace

BodyDecoder::BodyDecoder(const Framing& framing, const Limits& limits, Side side,
                         std::uint64_t body_bytes_max)
    : limits_(limits), side_(side), kind_(framing.kind), max_(body_bytes_max) {
  state_ = BodyState::Open;
  if (kind_ == Framing::Kind::None || (kind_ == Framing::Kind::Length && framing.length == 0)) {
    state_ = BodyState::Done;
  } else if (kind_ == Framing::Kind::Length) {
    remaining_ = framing.length;
    if (remaining_ > max_) fail(413, "The body is larger than this server takes.");
  }
}

void BodyDecoder::fail(int status, std::string_view reason) {
  reject_ = {side_ == Side::Request ? status : 502, reason};
  state_ = BodyState::Error;
}

BodyStep BodyDecoder::next(std::string_view input) {
  if (state_ != BodyState::Open) return {0, {}, state_};
  return kind_ == Framing::Kind::Chunked ? take_chunked(input) : take(input);
}

BodyState BodyDecoder::end_of_input() {
  if (state_ != BodyState::Open) return state_;
  if (kind_ == Framing::Kind::UntilClose) return state_ = BodyState::Done;
  fail(400, "The connection was closed before the end of the body.");
  return state_;
}

// Length and UntilClose.
BodyStep BodyDecoder::take(std::string_view input) {
  const bool counted = kind_ == Framing::Kind::Length;
  const std::uint64_t room = counted ? remaining_ : max_ - received_;
  const auto size = static_cast<std::size_t>(std::min<std::uint64_t>(room, input.size()));
  received_ += size;
  if (counted) {
    remaining_ -= size;
    if (remaining_ == 0) state_ = BodyState::Done;
  } else if (size < input.size()) {
    fail(413, "The body is larger than this server takes.");
  }
  return {size, input.substr(0, size), state_};
}

BodyStep BodyDecoder::take_chunked(std::string_view input) {
  const char* const begin = input.data();
  const char* const end = begin + input.size();
  const char* p = phase_ == Phase::Data ? begin : take_framing(begin, end);
  BodyStep step;
  if (state_ == BodyState::Open && phase_ == Phase::Data && p != end) {
    const auto size = static_cast<std::size_t>(
        std::min<std::uint64_t>(remaining_, static_cast<std::uint64_t>(end - p)));
    step.data = {p, size};
    p += size;
    received_ += size;
    remaining_ -= size;
    if (remaining_ == 0) {
      phase_ = Phase::DataCr;
      p = take_framing(p, end);
    }
  }
  step.consumed = static_cast<std::size_t>(p - begin);
  step.state = state_;
  return step;
}

// Reads framing until data begins, the body ends, something is wrong, or the input is used up.
const char* BodyDecoder::take_framing(const char* p, const char* end) {
  while (p != end && phase_ != Phase::Data && state_ == BodyState::Open) {
    const char c = *p++;
    switch (phase_) {
      case Phase::Size:
      case Phase::SizeDigits:
        take_size(c);
        break;
      case Phase::SizeLf:
        if (c == '\n') size_complete();
        else fail(400, "A chunk size line holds a CR that no LF follows.");
        break;
      case Phase::DataCr:
        if (c == '\r') phase_ = Phase::DataLf;
        else fail(400, "The data of a chunk is not followed by CRLF.");
        break;
      case Phase::DataLf:
        if (c == '\n') phase_ = Phase::Size;
        else fail(400, "The data of a chunk is not followed by CRLF.");
        break;
      case Phase::Trailer0:
      case Phase::TrailerName:
      case Phase::TrailerValue:
      case Phase::TrailerLf:
      case Phase::EndLf:
        take_trailer(c);
        break;
      default:
        take_extension(c);
    }
  }
  return p;
}

void BodyDecoder::take_size(char c) {
  if (const int digit = hex_value(c); digit >= 0) {
    if (phase_ == Phase::Size) {
      phase_ = Phase::SizeDigits;
      remaining_ = 0;
      size_digits_ = 0;
    }
    if (++size_digits_ > kSizeDigitsMax) return fail(400, "A chunk size has too many digits.");
    remaining_ = remaining_ << 4 | static_cast<std::uint64_t>(digit);
    return;
  }
  if (phase_ == Phase::Size) return fail(400, "A chunk size does not begin with a digit.");
  if (c == '\r') {
    phase_ = Phase::SizeLf;
  } else if (c == ';' || is_blank(c)) {
    phase_ = c == ';' ? Phase::ExtName0 : Phase::ExtBlank;
    ++extension_bytes_;
  } else {
    fail(400, "A chunk size holds a character that is no hexadecimal digit.");
  }
}

// chunk-ext = *( BWS ";" BWS token [ BWS "=" BWS ( token / quoted-string ) ] )
void BodyDecoder::take_extension(char c) {
  if (++extension_bytes_ > static_cast<std::uint64_t>(limits_.chunk_extension_bytes_max.value)) {
    return fail(400, "The chunk extensions are too long.");
  }
  switch (phase_) {
    case Phase::ExtBlank:  // blanks after the size: only a ";" may follow
      if (c == ';') phase_ = Phase::ExtName0;
      else if (!is_blank(c)) fail(400, "A chunk size is followed by a blank.");
      return;
    case Phase::ExtName0:
      if (is(kToken, c)) phase_ = Phase::ExtName;
      else if (!is_blank(c)) fail(400, "A chunk extension has no name.");
      return;
    case Phase::ExtName:
      if (is(kToken, c)) return;
      [[fallthrough]];
    case Phase::ExtAfterName:
      if (c == '=') phase_ = Phase::ExtValue0;
      else if (c == ';') phase_ = Phase::ExtName0;
      else if (is_blank(c)) phase_ = Phase::ExtAfterName;
      else if (c == '\r' && phase_ == Phase::ExtName) phase_ = Phase::SizeLf;
      else fail(400, "The name of a chunk extension holds a bad character.");
      return;
    default:
      take_extension_value(c);
  }
}

void BodyDecoder::take_extension_value(char c) {
  switch (phase_) {
    case Phase::ExtValue0:
      if (c == '"') phase_ = Phase::ExtQuoted;
      else if (is(kToken, c)) phase_ = Phase::ExtValue;
      else if (!is_blank(c)) fail(400, "A chunk extension has no value after \"=\".");
      return;
    case Phase::ExtQuoted:
      if (c == '"') phase_ = Phase::ExtAfterValue;
      else if (c == '\\') phase_ = Phase::ExtEscape;
      else if (!is(kText, c)) fail(400, "A chunk extension holds a control character.");
      return;
    case Phase::ExtEscape:
      phase_ = Phase::ExtQuoted;
      if (!is(kText, c)) fail(400, "A chunk extension holds a control character.");
      return;
    case Phase::ExtValue:
      if (is(kToken, c)) return;
      [[fallthrough]];
    default:  // behind a value
      if (c == ';') phase_ = Phase::ExtName0;
      else if (c == '\r') phase_ = Phase::SizeLf;
      else if (is_blank(c)) phase_ = Phase::ExtBlank;
      else fail(400, "The value of a chunk extension holds a bad character.");
  }
}

void BodyDecoder::size_complete() {
  if (remaining_ == 0) {
    phase_ = Phase::Trailer0;
  } else if (remaining_ > max_ - received_) {
    fail(413, "The body is larger than this server takes.");
  } else {
    phase_ = Phase::Data;
  }
}

// trailer-section = *( token ":" value CRLF ), then CRLF. What it says is dropped.
void BodyDecoder::take_trailer(char c) {
  if (++trailer_bytes_ > static_cast<std::uint64_t>(limits_.trailer_bytes_max.value) + 2) {
    return fail(431, "The trailer section is too large.");
  }
  switch (phase_) {
    case Phase::Trailer0:
      if (c == '\r') phase_ = Phase::EndLf;
      else if (is(kToken, c)) phase_ = Phase::TrailerName;
      else fail(400, "A trailer line does not begin with a field name.");
      return;
    case Phase::TrailerName:
      if (c == ':') phase_ = Phase::TrailerValue;
      else if (!is(kToken, c)) fail(400, "A trailer name holds a character that it may not.");
      return;
    case Phase::TrailerValue:
      if (c == '\r') phase_ = Phase::TrailerLf;
      else if (!is(kText, c)) fail(400, "A trailer holds a control character.");
      return;
    case Phase::TrailerLf:
      if (c == '\n') phase_ = Phase::Trailer0;
      else fail(400, "A trailer line holds a CR that no LF follows.");
      return;
    default:
      if (c == '\n') state_ = BodyState::Done;
      else fail(400, "The end of the body is not CRLF.");
  }
}

}  // namespace signalbox::http
