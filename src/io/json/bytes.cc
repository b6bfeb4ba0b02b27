// SPDX-License-Identifier: Apache-2.0
// The wide loops behind find_special.
#include "io/json/bytes.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace signalbox::json {
namespace {

const char* find_portable(const char* p, const char* end) {
#if defined(__SSE2__)
  for (; end - p >= 16; p += 16) {
    if (const unsigned mask = special_mask(p)) return p + std::countr_zero(mask);
  }
#endif
  while (p != end && !is_special(*p)) ++p;
  return p;
}

#if defined(__x86_64__)
__attribute__((target("avx2"))) inline __m256i special32(const char* p) {
  const __m256i v = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
  const __m256i quote = _mm256_cmpeq_epi8(v, _mm256_set1_epi8('"'));
  const __m256i slash = _mm256_cmpeq_epi8(v, _mm256_set1_epi8('\\'));
  const __m256i control = _mm256_cmpeq_epi8(_mm256_min_epu8(v, _mm256_set1_epi8(0x1F)), v);
  return _mm256_or_si256(_mm256_or_si256(quote, slash), control);
}

__attribute__((target("avx2"))) const char* find_avx2(const char* p, const char* end) {
  for (; end - p >= 64; p += 64) {
    const __m256i low = special32(p);
    const __m256i high = special32(p + 32);
    if (_mm256_testz_si256(_mm256_or_si256(low, high), _mm256_set1_epi8(-1))) continue;
    const std::uint64_t mask =
        static_cast<std::uint32_t>(_mm256_movemask_epi8(low)) |
        std::uint64_t{static_cast<std::uint32_t>(_mm256_movemask_epi8(high))} << 32;
    return p + std::countr_zero(mask);
  }
  return find_portable(p, end);
}
#endif

}  // namespace

const char* find_special_far(const char* p, const char* end) {
#if defined(__x86_64__)
  static const bool avx2 = __builtin_cpu_supports("avx2") != 0;
  if (avx2) return find_avx2(p, end);
#endif
  return find_portable(p, end);
}

}  // namespace signalbox::json
