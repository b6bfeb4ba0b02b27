// SPDX-License-Identifier: Apache-2.0
// Edit distance in three rows.
#include "core/spec/nearest.h"

#include <algorithm>
#include <utility>

namespace signalbox::spec {
namespace {

constexpr std::size_t kLengthMax = 64;
constexpr std::size_t kListedMax = 8;

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

}  // namespace

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before(b.size() + 1), above(b.size() + 1), row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) above[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const bool same = lower(a[i - 1]) == lower(b[j - 1]);
      row[j] = std::min({above[j] + 1, row[j - 1] + 1, above[j - 1] + (same ? 0 : 1)});
      if (i > 1 && j > 1 && lower(a[i - 1]) == lower(b[j - 2]) &&
          lower(a[i - 2]) == lower(b[j - 1])) {
        row[j] = std::min(row[j], before[j - 2] + 1);
      }
    }
    std::swap(before, above);
    std::swap(above, row);
  }
  return above[b.size()];
}

std::string_view nearest(std::string_view name, const std::vector<std::string_view>& candidates) {
  std::string_view best;
  std::size_t best_distance = 0;
  if (name.size() > kLengthMax) return best;
  for (const std::string_view candidate : candidates) {
    if (candidate.size() > kLengthMax) continue;
    const std::size_t distance = edit_distance(name, candidate);
    if (distance > std::max(name.size(), candidate.size()) / 3) continue;
    if (best.empty() || distance < best_distance) {
      best = candidate;
      best_distance = distance;
    }
  }
  return best;
}

std::string suggestion(std::string_view name, const std::vector<std::string_view>& candidates) {
  if (const auto best = nearest(name, candidates); !best.empty()) {
    return "; did you mean " + quote(best) + "?";
  }
  if (candidates.empty()) return ".";
  std::string text = candidates.size() == 1 ? "; write " : "; write one of ";
  for (std::size_t i = 0; i < candidates.size() && i < kListedMax; ++i) {
    text += (i > 0 ? ", " : "") + quote(candidates[i]);
  }
  return text + (candidates.size() > kListedMax ? " and others." : ".");
}

std::string quote(std::string_view text) {
  constexpr std::size_t kShownMax = 60;
  std::size_t end = std::min(text.size(), kShownMax);
  // A cut inside a UTF-8 sequence moves back to its start.
  while (end < text.size() && end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0u) == 0x80u) {
    --end;
  }
  std::string out = "`";
  for (const char c : text.substr(0, end)) {
    const auto byte = static_cast<unsigned char>(c);
    out += byte < 0x20 || byte == 0x7F ? '?' : c;
  }
  return out + (end < text.size() ? "...`" : "`");
}

}  // namespace signalbox::spec
