// SPDX-License-Identifier: Apache-2.0
// Sorts and words the problems of one reading.
#include "core/spec/problem.h"

#include <algorithm>
#include <tuple>

#include "base/check.h"

namespace signalbox::spec {

std::string to_string(const Problem& problem) {
  std::string text = problem.place.file;
  if (problem.place.line > 0) {
    text += ":" + std::to_string(problem.place.line) + ":" + std::to_string(problem.place.column);
  }
  if (!text.empty()) text += ": ";
  if (!problem.path.empty()) text += problem.path + ": ";
  return text + problem.message;
}

void Report::add(Place place, std::string_view path, std::string message) {
  if (problems_.size() >= kProblemsMax) {
    ++omitted_;
    return;
  }
  problems_.push_back({std::move(place), std::string(path), std::move(message)});
}

void Report::add(std::string_view path, std::string message) {
  add(place_of(path), path, std::move(message));
}

const Place& Report::place_of(std::string_view path) const {
  static const Place kNowhere;
  while (true) {
    if (const auto found = places_.find(path); found != places_.end()) return found->second;
    const std::size_t cut = path.find_last_of(".[");
    if (cut == std::string_view::npos || cut == 0) return kNowhere;
    path = path.substr(0, cut);
  }
}

Error Report::error() const {
  CHECK(!clean());
  std::vector<const Problem*> sorted;
  for (const Problem& problem : problems_) sorted.push_back(&problem);
  std::stable_sort(sorted.begin(), sorted.end(), [](const Problem* a, const Problem* b) {
    return std::tie(a->place.file, a->place.line, a->place.column) <
           std::tie(b->place.file, b->place.line, b->place.column);
  });
  std::string text;
  for (const Problem* problem : sorted) text += (text.empty() ? "" : "\n") + to_string(*problem);
  if (omitted_ > 0) text += "\nand " + std::to_string(omitted_) + " more.";
  return invalid(std::move(text));
}

}  // namespace signalbox::spec
