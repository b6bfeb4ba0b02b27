// SPDX-License-Identifier: Apache-2.0
// Cuts, hashes and samples prompt content.
#include "io/json/block_encoder.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>

namespace signalbox::json {
namespace {

// Per byte: what it says about the script, as three counters in one word.
constexpr std::uint32_t kCode = 1, kCjk = 1 << 10, kOther = 1 << 20;

constexpr std::array<std::uint32_t, 256> make_classes() {
  std::array<std::uint32_t, 256> table{};
  for (const unsigned char c : {'{', '}', '(', ')', '[', ']', ';', '=', '<', '>', '_', '/', '"',
                                '\\', '#', '*', '&', '|', '\n'}) {
    table[c] = kCode;
  }
  // Lead bytes: kana, Chinese and Hangul are E3..ED and F0 (beyond the basic plane); Greek to
  // Arabic and beyond CE..DF, Indic and Thai E0 and E1. C3..C9 are accented Latin, E2 punctuation.
  for (unsigned c = 0xE3; c <= 0xED; ++c) table[c] = kCjk;
  for (unsigned c = 0xCE; c <= 0xE1; ++c) table[c] = kOther;
  return table;
}

constexpr auto kClasses = make_classes();
constexpr std::size_t kSample = 32;

}  // namespace

void BlockEncoder::text_over(const char* data, std::size_t size) {
  if (fill_ != 0) {
    const std::size_t part = kBlockBytes - fill_;
    std::memcpy(buffer_.data() + fill_, data, part);
    emit(buffer_.data(), kBlockBytes);
    fill_ = 0;
    data += part;
    size -= part;
  }
  for (; size >= kBlockBytes; data += kBlockBytes, size -= kBlockBytes) emit(data, kBlockBytes);
  std::memcpy(buffer_.data(), data, size);
  fill_ = size;
}

void BlockEncoder::cut() {
  if (fill_ != 0) emit(buffer_.data(), fill_);
  fill_ = 0;
}

void BlockEncoder::emit(const char* data, std::size_t size) {
  sample(data, size);
  out_->push_back({XXH3_64bits(data, size), static_cast<std::uint32_t>(size)});
}

void BlockEncoder::sample(const char* data, std::size_t size) {
  const std::size_t count = std::min(size, kSample);
  data += (size - count) / 2;
  std::uint32_t sum = 0;
  for (std::size_t i = 0; i < count; ++i) sum += kClasses[static_cast<unsigned char>(data[i])];
  samples_.bytes += static_cast<std::uint32_t>(count);
  samples_.code += sum & 0x3FF;
  samples_.cjk += sum >> 10 & 0x3FF;
  samples_.other += sum >> 20;
}

model::Script BlockEncoder::script() const {
  const Samples& s = samples_;
  // A character of these scripts takes three and two bytes; code has one sign in eight bytes.
  if (s.cjk * 3 * 4 > s.bytes) return model::Script::Cjk;
  if (s.other * 2 * 4 > s.bytes) return model::Script::Other;
  if (s.code * 8 > s.bytes) return model::Script::Code;
  return model::Script::Latin;
}

static_assert(sizeof(XXH3_state_t) <= 640 && alignof(XXH3_state_t) <= 64);

TextHash::TextHash() {
  auto* state = reinterpret_cast<XXH3_state_t*>(state_.data());
  XXH3_INITSTATE(state);
  XXH3_64bits_reset(state);
}

void TextHash::text(const char* data, std::size_t size) {
  XXH3_64bits_update(reinterpret_cast<XXH3_state_t*>(state_.data()), data, size);
}

std::uint64_t TextHash::value() const {
  return XXH3_64bits_digest(reinterpret_cast<const XXH3_state_t*>(state_.data()));
}

}  // namespace signalbox::json
