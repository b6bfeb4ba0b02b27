// SPDX-License-Identifier: Apache-2.0
// Goal: bodies come out whole, caps hold to the byte, nothing is copied.
// Method: examples, and the law that a body cut into any chunks and read in any pieces is itself.
#include "io/http/body_decoder.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "io/http/transcript.h"
#include "io/http/writer.h"

namespace signalbox::http {
namespace {

using Kind = Framing::Kind;

struct Decoded {
  std::string body;
  BodyState state = BodyState::Open;
  std::size_t consumed = 0;
  int status = 0;
};

Decoded decode(BodyDecoder decoder, const std::string& bytes, std::size_t piece) {
  Decoded out;
  out.state = decoder.state();
  for (const std::string& part : transcript::pieces(bytes, {piece})) {
    std::string_view input = part;
    while (!input.empty() && decoder.state() == BodyState::Open) {
      const BodyStep step = decoder.next(input);
      out.body += step.data;
      out.consumed += step.consumed;
      input.remove_prefix(step.consumed);
    }
  }
  out.state = decoder.state();
  out.status = decoder.error().status;
  return out;
}

BodyDecoder chunked(std::uint64_t max = BodyDecoder::kNoCap, Limits limits = {},
                    Side side = Side::Request) {
  return {Framing{Kind::Chunked, 0}, limits, side, max};
}

TEST(BodyDecoder, GivesTheLastDataAndTheEndInOneStep) {
  BodyDecoder decoder = chunked();
  const std::string input = "5\r\nhello\r\n0\r\n\r\nGET";
  const BodyStep step = decoder.next(input);
  EXPECT_EQ(step.data, "hello");
  EXPECT_EQ(step.data.data(), input.data() + 3);
  EXPECT_EQ(step.consumed, input.size() - 3);
  EXPECT_EQ(step.state, BodyState::Done);
  EXPECT_EQ(decoder.next("GET").consumed, 0U);
  EXPECT_EQ(decoder.received(), 5U);
}

TEST(BodyDecoder, ABodyOfNothingIsDoneAtOnce) {
  EXPECT_TRUE(BodyDecoder().done());
  EXPECT_TRUE(BodyDecoder(Framing{Kind::None, 0}, {}, Side::Request, 0).done());
  EXPECT_TRUE(BodyDecoder(Framing{Kind::Length, 0}, {}, Side::Request, 0).done());
}

TEST(BodyDecoder, ALengthBeyondTheCapIsRefusedBeforeAByteIsRead) {
  EXPECT_EQ(BodyDecoder(Framing{Kind::Length, 10}, {}, Side::Request, 10).state(), BodyState::Open);
  BodyDecoder decoder(Framing{Kind::Length, 11}, {}, Side::Request, 10);
  EXPECT_EQ(decoder.state(), BodyState::Error);
  EXPECT_EQ(decoder.error().status, 413);
  EXPECT_EQ(decoder.next("x").consumed, 0U);
}

TEST(BodyDecoder, ChunksBeyondTheCapAreRefused) {
  EXPECT_EQ(decode(chunked(10), "5\r\nhello\r\n5\r\nhello\r\n0\r\n\r\n", 100).status, 0);
  EXPECT_EQ(decode(chunked(10), "5\r\nhello\r\n6\r\nhello!\r\n0\r\n\r\n", 100).status, 413);
  EXPECT_EQ(decode(chunked(10), "5\r\nhello\r\nffffffffffffffff\r\n", 100).status, 413);
  EXPECT_EQ(decode(chunked(10, {}, Side::Response), "b\r\n", 100).status, 502);
}

TEST(BodyDecoder, ABodyUntilCloseEndsWithTheConnection) {
  BodyDecoder decoder(Framing{Kind::UntilClose, 0}, {}, Side::Response, 4);
  EXPECT_EQ(decoder.next("abc").data, "abc");
  BodyDecoder other = decoder;
  EXPECT_EQ(decoder.end_of_input(), BodyState::Done);
  const BodyStep step = other.next("de");
  EXPECT_EQ(step.data, "d");
  EXPECT_EQ(step.state, BodyState::Error);
}

TEST(BodyDecoder, ACloseInsideABodyIsAnError) {
  BodyDecoder length(Framing{Kind::Length, 3}, {}, Side::Response, BodyDecoder::kNoCap);
  length.next("ab");
  EXPECT_EQ(length.end_of_input(), BodyState::Error);
  EXPECT_EQ(length.error().status, 502);
  BodyDecoder chunks = chunked();
  chunks.next("1\r\na\r\n0\r\n");
  EXPECT_EQ(chunks.end_of_input(), BodyState::Error);
}

TEST(BodyDecoder, ExtensionsAndTrailersAreLimitedOverTheWholeBody) {
  Limits limits;
  limits.chunk_extension_bytes_max = {10};
  limits.trailer_bytes_max = {10};
  const std::string tail = "0\r\n\r\n";
  // ";abc" and the CR behind it count 5 each.
  EXPECT_EQ(decode(chunked(99, limits), "1;abc\r\na\r\n1;abc\r\na\r\n" + tail, 1).status, 0);
  EXPECT_EQ(decode(chunked(99, limits), "1;abc\r\na\r\n1;abcd\r\na\r\n" + tail, 1).status, 400);
  EXPECT_EQ(decode(chunked(99, limits), "0\r\nX: 12345\r\n\r\n", 1).status, 0);
  EXPECT_EQ(decode(chunked(99, limits), "0\r\nX: 123456\r\n\r\n", 1).status, 431);
}

RC_GTEST_PROP(BodyDecoder, AnyChunkingReadInAnyPiecesIsTheBody, (const std::string& body)) {
  std::string wire;
  std::size_t at = 0;
  while (at < body.size()) {
    const auto size = *rc::gen::inRange<std::size_t>(1, body.size() - at + 1);
    append_chunk(wire, std::string_view(body).substr(at, size));
    at += size;
  }
  wire += kLastChunk;
  const auto piece = *rc::gen::inRange<std::size_t>(1, wire.size() + 1);
  const Decoded decoded = decode(chunked(), wire + "next", piece);
  RC_ASSERT(decoded.state == BodyState::Done);
  RC_ASSERT(decoded.body == body);
  RC_ASSERT(decoded.consumed == wire.size());
}

}  // namespace
}  // namespace signalbox::http
