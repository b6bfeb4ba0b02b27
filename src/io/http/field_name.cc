// SPDX-License-Identifier: Apache-2.0
// A perfect hash over length and three characters of the name; the multipliers are found by the
// compiler, which refuses a list for which it finds none.
#include "io/http/field_name.h"

#include <array>
#include <cstring>

#include "io/http/chars.h"

namespace signalbox::http {
namespace {

constexpr std::array<std::string_view, kFieldNames> kTexts = {
    "",
    "accept",
    "accept-encoding",
    "access-control-request-headers",
    "access-control-request-method",
    "authorization",
    "cache-control",
    "connection",
    "content-encoding",
    "content-length",
    "content-type",
    "cookie",
    "date",
    "expect",
    "forwarded",
    "host",
    "if-none-match",
    "keep-alive",
    "location",
    "origin",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "retry-after",
    "sec-fetch-site",
    "server",
    "te",
    "traceparent",
    "tracestate",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "user-agent",
    "via",
    "x-api-key",
    "x-forwarded-for",
    "x-forwarded-host",
    "x-forwarded-proto",
    "x-request-id",
};

constexpr std::size_t kSlots = 256;

struct Multipliers {
  std::uint32_t size = 0, first = 0, middle = 0, last = 0;
};

// Letters of either case give the same slot, since bit 0x20 is set in all characters.
constexpr std::size_t slot_of(std::string_view name, const Multipliers& m) {
  auto at = [&](std::size_t i) { return static_cast<std::uint32_t>(name[i] | 0x20); };
  const std::uint32_t h = static_cast<std::uint32_t>(name.size()) * m.size + at(0) * m.first +
                          at(name.size() / 2) * m.middle + at(name.size() - 1) * m.last;
  return (h >> 8) % kSlots;
}

constexpr bool spreads(const Multipliers& m) {
  std::array<bool, kSlots> taken{};
  for (std::size_t i = 1; i < kFieldNames; ++i) {
    const std::size_t slot = slot_of(kTexts[i], m);
    if (taken[slot]) return false;
    taken[slot] = true;
  }
  return true;
}

constexpr Multipliers find_multipliers() {
  std::uint32_t x = 12345;
  auto draw = [&] {
    x = x * 1664525U + 1013904223U;
    return (x >> 12) | 1U;
  };
  for (int attempt = 0; attempt < 2000; ++attempt) {
    Multipliers m;
    m.size = draw();
    m.first = draw();
    m.middle = draw();
    m.last = draw();
    if (spreads(m)) return m;
  }
  return {};
}

constexpr Multipliers kMultipliers = find_multipliers();
static_assert(kMultipliers.size != 0, "no perfect hash found: enlarge kSlots");

constexpr std::array<std::uint8_t, kSlots> make_slots() {
  std::array<std::uint8_t, kSlots> slots{};
  for (std::size_t i = 1; i < kFieldNames; ++i) {
    slots[slot_of(kTexts[i], kMultipliers)] = static_cast<std::uint8_t>(i);
  }
  return slots;
}
constexpr std::array<std::uint8_t, kSlots> kSlotTable = make_slots();

std::uint64_t load8(const char* p) {
  std::uint64_t v;
  std::memcpy(&v, p, 8);
  return v;
}

std::uint32_t load4(const char* p) {
  std::uint32_t v;
  std::memcpy(&v, p, 4);
  return v;
}

// `known` is a listed name: lower-case letters and "-". Setting bit 0x20 maps the two cases of a
// letter to it, and to "-" only itself and CR, which no name holds. So equality also shows that
// all of `name` are token characters.
bool same_name(const char* name, std::string_view known) {
  constexpr std::uint64_t kCase = 0x2020202020202020ULL;
  const std::size_t size = known.size();
  if (size < 4) {
    for (std::size_t i = 0; i < size; ++i) {
      if (lower(name[i]) != known[i]) return false;
    }
    return true;
  }
  if (size < 8) {
    constexpr std::uint32_t kCase4 = 0x20202020U;
    return (load4(name) | kCase4) == load4(known.data()) &&
           (load4(name + size - 4) | kCase4) == load4(known.data() + size - 4);
  }
  for (std::size_t i = 0; i + 8 < size; i += 8) {
    if ((load8(name + i) | kCase) != load8(known.data() + i)) return false;
  }
  return (load8(name + size - 8) | kCase) == load8(known.data() + size - 8);
}

}  // namespace

FieldName field_name(std::string_view name) {
  if (name.empty()) return FieldName::Other;
  const std::size_t index = kSlotTable[slot_of(name, kMultipliers)];
  const std::string_view known = kTexts[index];
  if (known.size() != name.size() || !same_name(name.data(), known)) return FieldName::Other;
  return static_cast<FieldName>(index);
}

std::string_view text(FieldName name) { return kTexts[static_cast<std::size_t>(name)]; }

bool is_connection_field(FieldName name) {
  switch (name) {
    case FieldName::Connection:
    case FieldName::KeepAlive:
    case FieldName::ProxyAuthenticate:
    case FieldName::ProxyAuthorization:
    case FieldName::ProxyConnection:
    case FieldName::Te:
    case FieldName::Trailer:
    case FieldName::TransferEncoding:
    case FieldName::Upgrade:
      return true;
    default:
      return false;
  }
}

}  // namespace signalbox::http
