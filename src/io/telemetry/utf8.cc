// SPDX-License-Identifier: Apache-2.0
// Table 3-7 of the Unicode standard: the second byte's range depends on the first.
#include "io/telemetry/utf8.h"

namespace signalbox::telemetry {
namespace {

unsigned byte(std::string_view text, std::size_t i) {
  return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u;
}

bool between(unsigned value, unsigned low, unsigned high) { return value >= low && value <= high; }

}  // namespace

std::size_t utf8_length(std::string_view text) {
  unsigned first = byte(text, 0);
  if (first < 0x80) return 1;
  unsigned second = byte(text, 1);
  if (between(first, 0xC2, 0xDF)) return between(second, 0x80, 0xBF) ? 2 : 0;
  if (between(first, 0xE0, 0xEF)) {
    unsigned low = first == 0xE0 ? 0xA0 : 0x80;
    unsigned high = first == 0xED ? 0x9F : 0xBF;
    return between(second, low, high) && between(byte(text, 2), 0x80, 0xBF) ? 3 : 0;
  }
  if (between(first, 0xF0, 0xF4)) {
    unsigned low = first == 0xF0 ? 0x90 : 0x80;
    unsigned high = first == 0xF4 ? 0x8F : 0xBF;
    return between(second, low, high) && between(byte(text, 2), 0x80, 0xBF) &&
                   between(byte(text, 3), 0x80, 0xBF)
               ? 4
               : 0;
  }
  return 0;
}

}  // namespace signalbox::telemetry
