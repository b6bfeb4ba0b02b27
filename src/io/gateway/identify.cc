// SPDX-License-Identifier: Apache-2.0
// Keys are hashed before they are compared with anything.
#include "io/gateway/identify.h"

#include <openssl/sha.h>

#include <cstring>

namespace signalbox::gateway {

std::string_view presented_key(const http::RequestHead& head) {
  std::string_view bearer;
  if (const auto field = head.fields.find(http::FieldName::Authorization)) {
    constexpr std::string_view kScheme = "bearer ";
    if (field->size() > kScheme.size() &&
        strncasecmp(field->data(), kScheme.data(), kScheme.size()) == 0) {
      bearer = http::trim_blanks(field->substr(kScheme.size()));
    }
  }
  const std::string_view direct = head.fields.find(http::FieldName::XApiKey).value_or("");
  if (bearer.empty()) return direct;
  if (!direct.empty() && direct != bearer) return {};
  return bearer;
}

KeyHash hash_key(std::string_view key) {
  KeyHash hash;
  SHA256(reinterpret_cast<const unsigned char*>(key.data()), key.size(), hash.data());
  return hash;
}

std::uint64_t salt_domain(std::string_view body, const json::RequestScan& scan) {
  if (!scan.has(json::Key::CacheSalt)) return 0;
  const KeyHash hash = hash_key(scan.member(json::Key::CacheSalt).value.of(body));
  std::uint64_t domain = 0;
  std::memcpy(&domain, hash.data(), sizeof domain);
  return domain | 1;
}

}  // namespace signalbox::gateway
