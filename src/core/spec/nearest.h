// SPDX-License-Identifier: Apache-2.0
// Finds the name that somebody meant. Pure.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace signalbox::spec {

// Insertions, deletions, replacements and swaps of neighbours (Damerau-Levenshtein, restricted)
// that turn one into the other; upper and lower case are the same.
std::size_t edit_distance(std::string_view a, std::string_view b);

// The candidate at the least distance when that is at most a third of the longer name, the first
// of equals; empty when none is near. Names beyond 64 characters have no neighbours.
std::string_view nearest(std::string_view name, const std::vector<std::string_view>& candidates);

// "; did you mean `NEAREST`?", or when none is near the candidates themselves, as far as eight:
// "; write one of `a`, `b`." An empty list gives ".".
std::string suggestion(std::string_view name, const std::vector<std::string_view>& candidates);

// For messages: in backquotes, cut after 60 bytes, control characters shown as `?`.
std::string quote(std::string_view text);

}  // namespace signalbox::spec
