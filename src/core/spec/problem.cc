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
  if (full()) {
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
  std::vector<std::size_t> order(problems_.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::sort(order.begin(), order.end(), [this](std::size_t a, std::size_t b) {
    const Place& x = problems_[a].place;
    const Place& y = problems_[b].place;
    return std::tie(x.file, x.line, x.column, a) < std::tie(y.file, y.line, y.column, b);
  });
  std::string text;
  for (const std::size_t i : order) text += (text.empty() ? "" : "\n") + to_string(problems_[i]);
  if (omitted_ > 0) text += "\nand " + std::to_string(omitted_) + " more.";
  return invalid(std::move(text));
}

}  // namespace signalbox::spec
