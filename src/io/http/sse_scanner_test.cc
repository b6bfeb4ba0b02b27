// SPDX-License-Identifier: Apache-2.0
// Goal: the events that clients dispatch are the events found, in whatever pieces they arrive, and
// every byte is passed on once.
// Method: a naive reading of the WHATWG algorithm as reference, over examples at every split and
// over generated streams.
#include "io/http/sse_scanner.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "io/http/sse_reference.h"
#include "io/http/transcript.h"

namespace signalbox::http {
namespace {

constexpr std::size_t kTail = 256 * 1024;

Dispatched scan(const std::string& text, const std::vector<std::size_t>& sizes) {
  Dispatched out;
  SseScanner scanner(kTail);
  auto drain = [&] {
    while (const auto event = scanner.next()) {
      if (event->kind == SseEvent::Kind::Data) {
        out.emplace_back(std::string(event->type), std::string(event->data));
      }
    }
  };
  for (const std::string& part : transcript::pieces(text, sizes)) {
    scanner.feed(part);
    drain();
  }
  scanner.finish();
  drain();
  return out;
}

const std::vector<std::string> kStreams = {
    "data: {\"a\":1}\n\ndata: [DONE]\n\n",
    "data: a\r\n\r\ndata: b\r\n\r\n",
    "data: a\r\rdata: b\r\r",
    "data:a\n\ndata:  b\n\ndata\n\ndata:\n\n",
    ": comment\n\n:\n\ndata: x\n\n",
    "event: message_start\ndata: {}\n\nevent: ping\ndata: {\"type\": \"ping\"}\n\n",
    "data: one\ndata: two\ndata:\ndata: four\n\n",
    "\xef\xbb\xbf" "data: x\n\n",
    "\xef\xbb\xbf\n\xef\xbb\xbf" "data: no\n\ndata: yes\n\n",
    "\xef\xbb" "data: no\n\ndata: yes\n\n",
    "\n\n\r\n\r\r\ndata: x\n\n\n\n",
    "data: a\r\n\ndata: b\n\r\ndata: c\r\r\ndata: d\n\rdata: e\r\n\r\r\n",
    "data: a\r\r\ndata: b\r\r\n\r\r\n",
    "id: 1\nretry: 5\nfoo\nevent\nevent: x\nevent:\ndata: d\n\n",
    "event: lost\n\ndata: x\n\n",
    "data: unfinished\n",
    "data: ends in CR\r\n\r",
    "datax: no\ndat: no\n data: no\nDATA: no\ndata : no\ndata: yes\n\n",
    "\r",
    "",
};

TEST(SseScanner, AgreesWithTheStandardAtEverySplit) {
  for (const std::string& text : kStreams) {
    const Dispatched expected = SseReference().read(text);
    const std::string whole = transcript::events(text, {}, kTail);
    ASSERT_EQ(scan(text, {}), expected) << text;
    for (std::size_t i = 1; i < text.size(); ++i) {
      ASSERT_EQ(scan(text, {i, text.size()}), expected) << text << " cut at " << i;
      std::string forwarded;
      ASSERT_EQ(transcript::events(text, {i, text.size()}, kTail, &forwarded), whole) << i;
      ASSERT_EQ(forwarded, text);
      for (std::size_t j = 1; i + j < text.size(); ++j) {
        ASSERT_EQ(transcript::events(text, {i, j, text.size()}, kTail), whole) << i << ' ' << j;
      }
    }
    ASSERT_EQ(transcript::events(text, {1}, kTail), whole) << text;
  }
}

rc::Gen<std::string> streams() {
  return rc::gen::map(
      rc::gen::container<std::vector<std::string>>(rc::gen::element<std::string>(
          "data: hello", "data:", "data", "event: e", "event", "id: 7", ":", ": c", "x", "\n", "\n",
          "\r\n", "\r", "\n\n", "\r\n\r\n", "\xef\xbb\xbf", " ", "data: " + std::string(70, 'j'))),
      [](const std::vector<std::string>& parts) {
        std::string out;
        for (const std::string& part : parts) out += part;
        return out;
      });
}

RC_GTEST_PROP(SseScanner, AgreesWithTheStandardOnAnyStream, ()) {
  const std::string text = *streams();
  const auto sizes = *rc::gen::container<std::vector<std::size_t>>(
      rc::gen::inRange<std::size_t>(1, 40));
  RC_ASSERT(scan(text, sizes) == SseReference().read(text));
  std::string forwarded;
  RC_ASSERT(transcript::events(text, sizes, kTail, &forwarded) ==
            transcript::events(text, {}, kTail));
  RC_ASSERT(forwarded == text);
}

RC_GTEST_PROP(SseScanner, PassesEveryByteOnOnceWhateverTheCap, ()) {
  const std::string text = *streams();
  const auto cap = *rc::gen::inRange<std::size_t>(0, 50);
  const auto sizes = *rc::gen::container<std::vector<std::size_t>>(
      rc::gen::inRange<std::size_t>(1, 40));
  std::string forwarded;
  const std::string seen = transcript::events(text, sizes, cap, &forwarded);
  RC_ASSERT(forwarded == text);
  RC_ASSERT(seen.find("differ") == std::string::npos);
}

TEST(SseScanner, CopiesNothingOfWholeEvents) {
  const std::string input = "data: a\n\nevent: e\ndata: b\n\ndata: c";
  SseScanner scanner(kTail);
  scanner.feed(input);
  const auto a = scanner.next();
  ASSERT_TRUE(a);
  EXPECT_EQ(a->bytes.data(), input.data());
  EXPECT_EQ(a->data.data(), input.data() + 6);
  const auto b = scanner.next();
  ASSERT_TRUE(b);
  EXPECT_EQ(b->type, "e");
  EXPECT_FALSE(scanner.next());
  EXPECT_EQ(scanner.carried(), "");
  EXPECT_EQ(scanner.direct().data(), input.data());
  EXPECT_EQ(scanner.direct().size(), input.size() - 7);
  EXPECT_EQ(scanner.tail(), "data: c");
  EXPECT_TRUE(scanner.between_events());  // what is held was not given out
}

TEST(SseScanner, JoinsAnEventThatCameInPieces) {
  SseScanner scanner(kTail);
  scanner.feed("data: a");
  EXPECT_FALSE(scanner.next());
  scanner.feed("b\n\ndata: c\n\n");
  const auto first = scanner.next();
  ASSERT_TRUE(first);
  EXPECT_EQ(first->bytes, "data: ab\n\n");
  EXPECT_EQ(first->data, "ab");
  ASSERT_TRUE(scanner.next());
  EXPECT_FALSE(scanner.next());
  EXPECT_EQ(scanner.carried(), "data: ab\n\n");
  EXPECT_EQ(scanner.direct(), "data: c\n\n");
  EXPECT_TRUE(scanner.between_events());
}

TEST(SseScanner, AStreamOfBareCrIsNotDelayedByAnEvent) {
  SseScanner scanner(kTail);
  scanner.feed("data: a\r\r");
  const auto event = scanner.next();
  ASSERT_TRUE(event);
  EXPECT_EQ(event->data, "a");
}

TEST(SseScanner, AnLfBehindABareCrEventBelongsToTheNext) {
  EXPECT_EQ(transcript::events("data: a\r\r\ndata: b\r\r\n\n", {}, kTail),
            "data [data: a\r\r] type= data=a\n"
            "data [\ndata: b\r\r] type= data=b\n"
            "silent [\n\n] type= data=\n"
            "tail []\n");
}

TEST(SseScanner, HalfAByteOrderMarkIsText) {
  EXPECT_EQ(transcript::events("\xef\xbb\ndata: a\n\n", {}, kTail),
            "data [\xef\xbb\ndata: a\n\n] type= data=a\ntail []\n");
}

TEST(SseScanner, ATooLongEventPassesThroughAndTheNextIsReadAgain) {
  SseScanner scanner(10);
  scanner.feed("data: 123");
  EXPECT_FALSE(scanner.next());
  scanner.feed("4567");
  auto event = scanner.next();
  ASSERT_TRUE(event);
  EXPECT_EQ(event->kind, SseEvent::Kind::Fragment);
  EXPECT_FALSE(event->ends);
  EXPECT_EQ(event->bytes, "data: 123");
  event = scanner.next();
  ASSERT_TRUE(event);
  EXPECT_EQ(event->bytes, "4567");
  EXPECT_FALSE(event->ends);
  EXPECT_FALSE(scanner.next());
  EXPECT_FALSE(scanner.between_events());
  scanner.feed("89\n\ndata: ok\n\n");
  event = scanner.next();
  ASSERT_TRUE(event);
  EXPECT_EQ(event->kind, SseEvent::Kind::Fragment);
  EXPECT_TRUE(event->ends);
  event = scanner.next();
  ASSERT_TRUE(event);
  EXPECT_EQ(event->data, "ok");
}

}  // namespace
}  // namespace signalbox::http
