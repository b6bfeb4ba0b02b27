// SPDX-License-Identifier: Apache-2.0
// version-traceid-parentid-flags, at fixed places: 2 + 1 + 32 + 1 + 16 + 1 + 2 bytes.
#include "io/telemetry/trace_context.h"

#include <algorithm>
#include <span>

namespace signalbox::telemetry {
namespace {

constexpr char kHex[] = "0123456789abcdef";

int hex(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

bool read_hex(std::string_view text, std::span<std::uint8_t> out) {
  for (std::size_t i = 0; i < out.size(); ++i) {
    int high = hex(text[2 * i]);
    int low = hex(text[2 * i + 1]);
    if (high < 0 || low < 0) return false;
    out[i] = static_cast<std::uint8_t>(high * 16 + low);
  }
  return true;
}

void append_hex(std::string& out, std::span<const std::uint8_t> bytes) {
  for (std::uint8_t byte : bytes) {
    out += kHex[byte >> 4];
    out += kHex[byte & 15];
  }
}

bool zero(std::span<const std::uint8_t> bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](std::uint8_t b) { return b == 0; });
}

void draw(std::span<std::uint8_t> bytes, Rng& rng) {
  do {
    for (std::size_t i = 0; i < bytes.size(); i += 8) {
      std::uint64_t word = rng.next();
      for (std::size_t j = 0; j < 8; ++j) bytes[i + j] = static_cast<std::uint8_t>(word >> (8 * j));
    }
  } while (zero(bytes));
}

}  // namespace

std::optional<TraceContext> parse_traceparent(std::string_view h) {
  TraceContext out;
  std::uint8_t version[1];
  std::uint8_t flags[1];
  if (h.size() < kTraceparentBytes) return std::nullopt;
  if (!read_hex(h.substr(0, 2), version) || version[0] == 0xff) return std::nullopt;
  if (version[0] == 0 && h.size() != kTraceparentBytes) return std::nullopt;
  if (h.size() > kTraceparentBytes && h[kTraceparentBytes] != '-') return std::nullopt;
  if (h[2] != '-' || h[35] != '-' || h[52] != '-') return std::nullopt;
  if (!read_hex(h.substr(3, 32), out.trace_id) || zero(out.trace_id)) return std::nullopt;
  if (!read_hex(h.substr(36, 16), out.parent_id) || zero(out.parent_id)) return std::nullopt;
  if (!read_hex(h.substr(53, 2), flags)) return std::nullopt;
  out.sampled = (flags[0] & 1) != 0;
  out.random = (flags[0] & 2) != 0;
  return out;
}

void append_traceparent(std::string& out, const TraceContext& context) {
  std::uint8_t flags[1] = {
      static_cast<std::uint8_t>((context.sampled ? 1 : 0) | (context.random ? 2 : 0))};
  out += "00-";
  append_hex(out, context.trace_id);
  out += '-';
  append_hex(out, context.parent_id);
  out += '-';
  append_hex(out, flags);
}

void append_trace_id(std::string& out, const TraceContext& context) {
  append_hex(out, context.trace_id);
}

TraceContext child_of(const TraceContext& context, Rng& rng) {
  TraceContext out = context;
  draw(out.parent_id, rng);
  return out;
}

TraceContext new_trace(Rng& rng) {
  TraceContext out;
  draw(out.trace_id, rng);
  draw(out.parent_id, rng);
  out.random = true;
  return out;
}

}  // namespace signalbox::telemetry
