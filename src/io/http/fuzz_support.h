// SPDX-License-Identifier: Apache-2.0
// For fuzzers: ways to split an input, drawn from the input itself, and a property that must hold.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

namespace signalbox::http::fuzz {

inline constexpr std::size_t kInputMax = 4096;  // splitting byte by byte is quadratic in tests

// Sizes of pieces; the same input gives the same ones.
inline std::vector<std::size_t> split_of(std::string_view input, std::uint64_t salt) {
  std::uint64_t h = 1469598103934665603ULL ^ salt;
  for (char c : input) h = (h ^ static_cast<unsigned char>(c)) * 1099511628211ULL;
  std::vector<std::size_t> sizes;
  for (int i = 0; i < 24; ++i) {
    h = h * 6364136223846793005ULL + 1442695040888963407ULL;
    const unsigned spread = (h >> 60) < 8 ? 3 : 64;
    sizes.push_back(1 + static_cast<std::size_t>(h >> 33) % spread);
  }
  return sizes;
}

// Prints both readings and aborts when they differ.
inline void must_equal(const char* law, const std::string& a, const std::string& b) {
  if (a == b) return;
  std::fprintf(stderr, "%s\n--- one\n%s\n--- other\n%s\n", law, a.c_str(), b.c_str());
  std::abort();
}

}  // namespace signalbox::http::fuzz
