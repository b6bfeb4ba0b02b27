// SPDX-License-Identifier: Apache-2.0
// Secrets in memory: hashes of keys that are only compared, and plain text that must be shown to an
// engine. Neither has a way into a stream or a log; plain text is wiped when it goes.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace signalbox::config {

using Sha256 = std::array<std::uint8_t, 32>;

Sha256 sha256(std::string_view text);
// From 64 lower-case hexadecimal digits; anything else is an error that does not repeat it.
Result<Sha256> parse_sha256(std::string_view hex);

// Plain text that only reveal() gives out.
class Secret {
 public:
  Secret() = default;
  explicit Secret(std::string_view text) : text_(text.begin(), text.end()) {}
  Secret(const Secret&) = default;
  Secret& operator=(const Secret& other);
  Secret(Secret&&) noexcept = default;
  Secret& operator=(Secret&& other) noexcept;
  ~Secret() { wipe(); }

  bool empty() const { return text_.empty(); }
  // For the bytes that go to the engine, and nothing else.
  std::string_view reveal() const { return {text_.data(), text_.size()}; }

 private:
  void wipe();
  std::vector<char> text_;
};

// Overwrites the characters, then empties the text.
void wipe(std::string& text);

}  // namespace signalbox::config
