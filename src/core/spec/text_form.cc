// SPDX-License-Identifier: Apache-2.0
// Reads, writes and draws the setting types that have a grammar of their own.
#include "core/spec/text_form.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "base/units.h"

namespace signalbox::spec {
namespace {

// A quarter each: the normal value, the low border, the high border, anything between on a
// logarithmic scale, since ranges span many powers of ten.
double draw_magnitude(Rng& rng, const Rule& rule, double normal) {
  const double low = std::max(rule.range.low, 0.0);
  const double high = std::min(rule.range.high, 1e12);
  switch (rng.below(4)) {
    case 0: return std::clamp(normal, low, high);
    case 1: return low;
    case 2: return high;
    default: break;
  }
  const double floor = std::max(low, 1e-3);
  return std::clamp(floor * std::pow(std::max(high / floor, 1.0), rng.uniform()), low, high);
}

std::string draw_host(Rng& rng) {
  constexpr std::array<std::string_view, 6> kHosts{"10.0.0.7",     "127.0.0.1", "fd00::12",
                                                   "gpu-1.example", "vllm_0.ml", "localhost"};
  if (rng.chance(0.3)) return std::string(kHosts[rng.below(kHosts.size())]);
  return "10." + std::to_string(rng.below(256)) + "." + std::to_string(rng.below(256)) + "." +
         std::to_string(rng.below(256));
}

std::uint16_t draw_port(Rng& rng) { return static_cast<std::uint16_t>(1 + rng.below(65535)); }

}  // namespace

std::string print_number(double value) {
  if (std::trunc(value) == value && std::abs(value) < 1e15) {
    return std::to_string(static_cast<std::int64_t>(value));
  }
  std::array<char, 32> buffer{};
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value).ptr;
  return {buffer.data(), end};
}

Result<Duration> TextForm<Duration>::parse(std::string_view text) { return parse_duration(text); }
std::string TextForm<Duration>::print(const Duration& value) { return format_duration(value); }

Duration TextForm<Duration>::draw(Rng& rng, const Rule& rule, const Duration& normal) {
  return from_magnitude(draw_magnitude(rng, rule, magnitude(normal)));
}

Duration TextForm<Duration>::from_magnitude(double seconds) {
  return seconds >= 9.2e9 ? Duration::max() : Duration(std::llround(seconds * 1e9));
}

Result<Bytes> TextForm<Bytes>::parse(std::string_view text) { return parse_bytes(text); }
std::string TextForm<Bytes>::print(const Bytes& value) { return format_bytes(value); }

Bytes TextForm<Bytes>::draw(Rng& rng, const Rule& rule, const Bytes& normal) {
  const double drawn = draw_magnitude(rng, rule, static_cast<double>(normal.value));
  return Bytes{static_cast<std::int64_t>(drawn)};
}

Address TextForm<Address>::draw(Rng& rng, const Rule&, const Address& normal) {
  if (rng.chance(0.25)) return normal;
  constexpr std::array<std::string_view, 3> kHosts{"127.0.0.1", "::1", "localhost"};
  return {std::string(kHosts[rng.below(kHosts.size())]), draw_port(rng)};
}

Url TextForm<Url>::draw(Rng& rng, const Rule&, const Url&) {
  return {rng.chance(0.3), draw_host(rng), draw_port(rng)};
}

Cidr TextForm<Cidr>::draw(Rng& rng, const Rule&, const Cidr&) {
  Cidr cidr;
  cidr.ip.v4 = rng.chance(0.7);
  cidr.prefix = static_cast<int>(1 + rng.below(cidr.ip.v4 ? 32 : 128));
  for (std::size_t i = 0; i < (cidr.ip.v4 ? 4u : 16u); ++i) {
    const int bits = std::clamp(cidr.prefix - static_cast<int>(8 * i), 0, 8);
    const unsigned mask = (0xFFu << (8 - bits)) & 0xFFu;
    cidr.ip.bytes[i] = static_cast<std::uint8_t>(rng.below(256) & mask);
  }
  if (!cidr.ip.v4) cidr.ip.bytes[0] |= 0x80u;  // never the IPv4-mapped block
  return cidr;
}

Origin TextForm<Origin>::draw(Rng& rng, const Rule&, const Origin&) {
  if (rng.chance(0.2)) return {"*"};
  return {"https://app" + std::to_string(rng.below(1000)) + ".example.com"};
}

}  // namespace signalbox::spec
