// SPDX-License-Identifier: Apache-2.0
// PromptWalk: validates JSON values and feeds their content to a BlockEncoder in the same pass.
// Leaves out what no engine renders: `cache_control`, which agents move from turn to turn. Folds
// images and sound into a hash of nine bytes, since their size says nothing about tokens.
#pragma once

#include <cstdint>
#include <string_view>

#include "io/json/block_encoder.h"
#include "io/json/cursor.h"

namespace signalbox::json {

class PromptWalk {
 public:
  PromptWalk(Cursor& cursor, BlockEncoder& encoder) : c_(cursor), e_(encoder) {}

  // Any value, keys in the order in which they stand. `depth` is that of its container.
  bool value(int depth) { return value(depth, Media::None); }
  // The content of a message: a string, or parts. One text part equals the string.
  bool content(int depth);
  void key(const Token& token);

  bool saw_media() const { return saw_media_; }
  void forget_media() { saw_media_ = false; }

 private:
  enum class Media : std::uint8_t {
    None,
    Holder,  // an object whose `data` or `url` is media
    Link,    // a string that is media, or a Holder
    Bytes,   // a string that is media
  };
  static Media media_of(std::string_view name, Media around);

  bool value(int depth, Media media);
  bool string(Media media);
  bool scalar(int depth);
  bool object(int depth, Media media);
  bool members(const Token& key, int depth, Media around, bool& plain_text);
  bool part(int depth);

  Cursor& c_;
  BlockEncoder& e_;
  bool saw_media_ = false;
};

}  // namespace signalbox::json
