// SPDX-License-Identifier: Apache-2.0
// Keys are hashed before they are compared with anything.
#include "io/gateway/identify.h"
#include "io/http/chars.h"

#include <openssl/sha.h>

#include <cstring>

namespace signalbox::gateway {

namespace {

// The key in `Bearer KEY`; empty: another scheme, or none.
std::string_view bearer(std::string_view value) {
  constexpr std::string_view kScheme = "bearer ";
  if (!http::equals_ignoring_case(value.substr(0, kScheme.size()), kScheme)) return {};
  return http::trim_blanks(value.substr(kScheme.size()));
}

}  // namespace

PresentedKey presented_key(const http::RequestHead& head) {
  std::string_view key;
  for (const http::Field field : head.fields) {
    std::string_view shown;
    if (field.id == http::FieldName::Authorization) shown = bearer(field.value);
    if (field.id == http::FieldName::XApiKey) shown = field.value;
    if (shown.empty() || shown == key) continue;
    if (!key.empty()) return {{}, true};
    key = shown;
  }
  return {key};
}

bool is_credential(const http::Field& field) {
  const auto is = [&](std::string_view other) {
    return http::equals_ignoring_case(field.name, other);
  };
  return field.id == http::FieldName::Authorization || field.id == http::FieldName::XApiKey ||
         is("api-key") || is("x-goog-api-key") || is("cookie");
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
