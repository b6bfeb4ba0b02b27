// SPDX-License-Identifier: Apache-2.0
// Sums spans, mixes names.
#include "sim/trace/span.h"

namespace signalbox::trace {

std::int64_t tokens_of(std::span<const Span> spans) {
  std::int64_t sum = 0;
  for (const Span& span : spans) sum += span.tokens;
  return sum;
}

std::uint64_t mixed(std::uint64_t a, std::uint64_t b) {
  std::uint64_t x = a * 0x9E3779B97F4A7C15ull + b + 0xD1B54A32D192ED03ull;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
  return x ^ (x >> 31);
}

}  // namespace signalbox::trace
