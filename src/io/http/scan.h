// SPDX-License-Identifier: Apache-2.0
// The searches on which speed depends, 16 bytes at a time where the processor has SSE2. Never
// reads outside [begin, end).
#pragma once

#include "io/http/chars.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace signalbox::http {

// The first byte that may not stand in a field value: a control other than tab, or DEL. `end` when
// there is none. CR and LF are such bytes.
inline const char* find_control(const char* begin, const char* end) {
  const char* p = begin;
#if defined(__SSE2__)
  const __m128i top = _mm_set1_epi8(0x1f);
  const __m128i tab = _mm_set1_epi8('\t');
  const __m128i del = _mm_set1_epi8(0x7f);
  while (end - p >= 16) {
    const __m128i x = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
    const __m128i low = _mm_cmpeq_epi8(_mm_min_epu8(x, top), x);
    const __m128i bad = _mm_or_si128(_mm_andnot_si128(_mm_cmpeq_epi8(x, tab), low),
                                     _mm_cmpeq_epi8(x, del));
    const int mask = _mm_movemask_epi8(bad);
    if (mask != 0) return p + __builtin_ctz(static_cast<unsigned>(mask));
    p += 16;
  }
#endif
  while (p != end && is(kText, *p)) ++p;
  return p;
}

// The first ":", or `end`. Made for field names, most of which are shorter than 16 bytes.
inline const char* find_colon(const char* begin, const char* end) {
  const char* p = begin;
#if defined(__SSE2__)
  const __m128i colon = _mm_set1_epi8(':');
  while (end - p >= 16) {
    const __m128i x = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
    const int mask = _mm_movemask_epi8(_mm_cmpeq_epi8(x, colon));
    if (mask != 0) return p + __builtin_ctz(static_cast<unsigned>(mask));
    p += 16;
  }
#endif
  while (p != end && *p != ':') ++p;
  return p;
}

// The first CR or LF, or `end`.
inline const char* find_line_end(const char* begin, const char* end) {
  const char* p = begin;
#if defined(__SSE2__)
  const __m128i cr = _mm_set1_epi8('\r');
  const __m128i lf = _mm_set1_epi8('\n');
  while (end - p >= 32) {
    const __m128i a = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
    const __m128i b = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p + 16));
    const __m128i hit_a = _mm_or_si128(_mm_cmpeq_epi8(a, cr), _mm_cmpeq_epi8(a, lf));
    const __m128i hit_b = _mm_or_si128(_mm_cmpeq_epi8(b, cr), _mm_cmpeq_epi8(b, lf));
    if (_mm_movemask_epi8(_mm_or_si128(hit_a, hit_b)) != 0) {
      const unsigned mask = static_cast<unsigned>(_mm_movemask_epi8(hit_a)) |
                            static_cast<unsigned>(_mm_movemask_epi8(hit_b)) << 16;
      return p + __builtin_ctz(mask);
    }
    p += 32;
  }
#endif
  while (p != end && *p != '\r' && *p != '\n') ++p;
  return p;
}

}  // namespace signalbox::http
