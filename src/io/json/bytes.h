// SPDX-License-Identifier: Apache-2.0
// Finds the end of plain text inside a JSON string, many bytes at a time. The build assumes SSE2
// on x86-64 and asks the processor for AVX2 at run time; other machines go byte by byte.
#pragma once

#include <bit>
#include <cstdint>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace signalbox::json {

// True for what ends plain text: a quote, a backslash, a control character.
constexpr bool is_special(char c) {
  return c == '"' || c == '\\' || static_cast<unsigned char>(c) < 0x20;
}

// The first special byte at or after p, or end. For text that is long already.
const char* find_special_far(const char* p, const char* end);

#if defined(__SSE2__)
inline unsigned special_mask(const char* p) {
  const __m128i v = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
  const __m128i quote = _mm_cmpeq_epi8(v, _mm_set1_epi8('"'));
  const __m128i slash = _mm_cmpeq_epi8(v, _mm_set1_epi8('\\'));
  const __m128i control = _mm_cmpeq_epi8(_mm_min_epu8(v, _mm_set1_epi8(0x1F)), v);
  const __m128i any = _mm_or_si128(_mm_or_si128(quote, slash), control);
  return static_cast<unsigned>(_mm_movemask_epi8(any));
}
#endif

// Bit i: p[i] is special. Reads 64 bytes.
inline std::uint64_t special_mask64(const char* p) {
#if defined(__SSE2__)
  return special_mask(p) | std::uint64_t{special_mask(p + 16)} << 16 |
         std::uint64_t{special_mask(p + 32)} << 32 | std::uint64_t{special_mask(p + 48)} << 48;
#else
  std::uint64_t mask = 0;
  for (int i = 0; i < 64; ++i) mask |= std::uint64_t{is_special(p[i])} << i;
  return mask;
#endif
}

// The first special byte at or after p, or end. Reads nothing beyond end.
inline const char* find_special(const char* p, const char* end) {
#if defined(__SSE2__)
  for (int i = 0; i < 4; ++i) {
    if (end - p < 16) break;
    if (const unsigned mask = special_mask(p)) return p + std::countr_zero(mask);
    p += 16;
  }
  if (end - p >= 16) return find_special_far(p, end);
#endif
  while (p != end && !is_special(*p)) ++p;
  return p;
}

}  // namespace signalbox::json
