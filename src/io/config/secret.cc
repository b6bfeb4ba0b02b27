// SPDX-License-Identifier: Apache-2.0
// Hashes and wipes with OpenSSL.
#include "io/config/secret.h"

#include <openssl/crypto.h>
#include <openssl/sha.h>

#include <utility>

namespace signalbox::config {

Sha256 sha256(std::string_view text) {
  Sha256 out{};
  SHA256(reinterpret_cast<const unsigned char*>(text.data()), text.size(), out.data());
  return out;
}

Result<Sha256> parse_sha256(std::string_view hex) {
  Sha256 out{};
  if (hex.size() != 2 * out.size()) return invalid("A SHA-256 has 64 hexadecimal digits.");
  for (std::size_t i = 0; i < hex.size(); ++i) {
    const char c = hex[i];
    const bool digit = c >= '0' && c <= '9';
    if (!digit && !(c >= 'a' && c <= 'f')) {
      return invalid("A SHA-256 is written in the digits 0-9 and a-f.");
    }
    const int value = digit ? c - '0' : c - 'a' + 10;
    out[i / 2] = static_cast<std::uint8_t>(out[i / 2] * 16 + value);
  }
  return out;
}

Secret& Secret::operator=(const Secret& other) {
  if (this != &other) {
    wipe();
    text_ = other.text_;
  }
  return *this;
}

Secret& Secret::operator=(Secret&& other) noexcept {
  if (this != &other) {
    wipe();
    text_ = std::exchange(other.text_, {});
  }
  return *this;
}

void Secret::wipe() {
  if (!text_.empty()) OPENSSL_cleanse(text_.data(), text_.size());
  text_.clear();
}

void wipe(std::string& text) {
  if (!text.empty()) OPENSSL_cleanse(text.data(), text.size());
  text.clear();
}

}  // namespace signalbox::config
