// SPDX-License-Identifier: Apache-2.0
// Keys are hashed before they are compared with anything.
#include "io/gateway/identify.h"
#include "io/http/chars.h"

#include <openssl/sha.h>

#include <algorithm>
#include <cstring>
#include <optional>

namespace signalbox::gateway {

namespace {

// The key in `Bearer KEY`; empty: another scheme, or none.
std::string_view bearer(std::string_view value) {
  constexpr std::string_view kScheme = "bearer ";
  if (!http::equals_ignoring_case(value.substr(0, kScheme.size()), kScheme)) return {};
  return http::trim_blanks(value.substr(kScheme.size()));
}

// An address of X-Forwarded-For, which may have a port.
std::optional<spec::Ip> hop_ip(std::string_view hop) {
  if (const std::size_t end = hop.find(']'); hop.starts_with('[') && end != hop.npos) {
    return spec::parse_ip(hop.substr(1, end - 1));
  }
  const std::size_t colon = hop.find(':');
  const bool port = colon != std::string_view::npos && hop.find(':', colon + 1) == hop.npos;
  return spec::parse_ip(port ? hop.substr(0, colon) : hop);
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

bool in_any(const std::vector<spec::Cidr>& networks, std::string_view address) {
  if (networks.empty()) return false;
  const auto ip = spec::parse_ip(address);
  return ip && std::any_of(networks.begin(), networks.end(),
                           [&](const spec::Cidr& cidr) { return spec::contains(cidr, *ip); });
}

std::string client_address(const http::RequestHead& head, const std::string& peer,
                           const std::vector<spec::Cidr>& trusted) {
  std::string client = peer;
  if (!in_any(trusted, client)) return client;
  // Each hop has added the one before it at the end.
  for (std::size_t i = head.fields.size(); i-- > 0;) {
    const http::Field field = head.fields[i];
    if (field.id != http::FieldName::XForwardedFor) continue;
    std::string_view list = field.value;
    while (!list.empty()) {
      const std::size_t comma = list.rfind(',');
      const bool last = comma == std::string_view::npos;
      const std::string_view hop = http::trim_blanks(last ? list : list.substr(comma + 1));
      list = last ? std::string_view{} : list.substr(0, comma);
      if (hop.empty()) continue;
      const auto ip = hop_ip(hop);
      if (!ip) return client;
      client = spec::to_string(*ip);
      if (!in_any(trusted, client)) return client;
    }
  }
  return client;
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
