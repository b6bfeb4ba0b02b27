// SPDX-License-Identifier: Apache-2.0
// Goal: a Buffer is a queue of bytes whatever is done to it. Method: random calls, against
// std::string.
#include "io/net/buffer.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <string>

namespace signalbox::net {
namespace {

RC_GTEST_PROP(BufferLaw, is_a_queue_of_bytes, ()) {
  Buffer buffer;
  std::string reference;
  char next = 'a';
  const auto steps = *rc::gen::container<std::vector<std::pair<int, std::size_t>>>(
      rc::gen::pair(rc::gen::inRange(0, 5), rc::gen::inRange<std::size_t>(0, 9000)));
  for (const auto& [what, size] : steps) {
    if (what == 0) {
      const std::string text(size, next);
      buffer.append(text);
      reference += text;
    } else if (what == 1) {
      // Prepares more than it fills, as a read does.
      char* const space = buffer.prepare(size + 10);
      RC_ASSERT(buffer.space() >= size + 10);
      std::memset(space, next, size);
      buffer.commit(size);
      reference.append(size, next);
    } else if (what == 4 && size % 7 == 0) {
      buffer.clear();
      reference.clear();
    } else {
      const std::size_t gone = std::min(size, reference.size());
      buffer.consume(gone);
      reference.erase(0, gone);
    }
    next = next == 'z' ? 'a' : static_cast<char>(next + 1);
    RC_ASSERT(buffer.view() == reference);
    RC_ASSERT(buffer.size() == reference.size());
    RC_ASSERT(buffer.empty() == reference.empty());
  }
}

TEST(Buffer, does_not_grow_while_as_much_is_taken_as_put) {
  Buffer buffer;
  buffer.append(std::string(100, 'x'));
  for (int i = 0; i < 10'000; ++i) {
    buffer.append(std::string(1000, 'y'));
    buffer.consume(1000);
  }
  EXPECT_EQ(buffer.size(), 100u);
  EXPECT_LE(buffer.capacity(), 8192u);
}

TEST(Buffer, gives_memory_back_only_when_it_is_empty_and_large) {
  Buffer buffer;
  buffer.append(std::string(100'000, 'x'));
  buffer.shrink(4096);
  EXPECT_GE(buffer.capacity(), 100'000u);
  buffer.consume(100'000);
  buffer.shrink(1 << 20);
  EXPECT_GE(buffer.capacity(), 100'000u);
  buffer.shrink(4096);
  EXPECT_EQ(buffer.capacity(), 0u);
  buffer.append("again");
  EXPECT_EQ(buffer.view(), "again");
}

}  // namespace
}  // namespace signalbox::net
