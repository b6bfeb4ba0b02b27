// SPDX-License-Identifier: Apache-2.0
// BlockEncoder: turns prompt content into model::PromptBlock values. Content is an unambiguous byte
// stream: decoded text, and marks for structure. It is cut after each 2,048 bytes and where the
// caller says so, so that equal content gives equal blocks however it was spelled in JSON.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "core/model/prompt.h"

namespace signalbox::json {

inline constexpr std::size_t kBlockBytes = 2048;

// Bytes that never occur in UTF-8, so marks cannot be mistaken for text.
enum class Mark : unsigned char {
  KeyEnd = 0xF8,
  StringEnd,
  ScalarEnd,
  ObjectBegin,
  ObjectEnd,
  ArrayBegin,
  ArrayEnd,
  Folded,  // eight bytes of a hash follow instead of the text
};

class BlockEncoder {
 public:
  // Blocks go to `out` from here on. Nothing may be pending.
  void write_to(std::vector<model::PromptBlock>& out) { out_ = &out; }

  void text(const char* data, std::size_t size) {
    if (size >= kBlockBytes - fill_) return text_over(data, size);
    std::memcpy(buffer_.data() + fill_, data, size);
    fill_ += size;
  }
  // The same where 16 bytes beyond the text may be read.
  void roomy_text(const char* data, std::size_t size) {
    if (size >= kBlockBytes - fill_) return text_over(data, size);
    char* to = buffer_.data() + fill_;
    fill_ += size;
    for (std::size_t i = 0; i < size; i += 16) std::memcpy(to + i, data + i, 16);
  }
  void mark(Mark mark) {
    const char c = static_cast<char>(mark);
    text(&c, 1);
  }
  // Ends the block here, unless it is empty.
  void cut();
  // Forgets what is pending.
  void drop() { fill_ = 0; }

  // Samples of the text so far, for the guess of its script.
  void reset_samples() { samples_ = {}; }
  model::Script script() const;

 private:
  struct Samples {
    std::uint32_t bytes = 0, code = 0, cjk = 0, other = 0;
  };

  void text_over(const char* data, std::size_t size);
  void emit(const char* data, std::size_t size);
  void sample(const char* data, std::size_t size);

  std::vector<model::PromptBlock>* out_ = nullptr;
  std::size_t fill_ = 0;
  Samples samples_;
  std::array<char, kBlockBytes + 16> buffer_;
};

// XXH3 of text that comes in pieces.
class TextHash {
 public:
  TextHash();
  void text(const char* data, std::size_t size);
  std::uint64_t value() const;

 private:
  alignas(64) std::array<std::byte, 640> state_;
};

}  // namespace signalbox::json
