// SPDX-License-Identifier: Apache-2.0
// What is wrong with a configuration, and where. A report collects every problem of one reading,
// so that a person mends them all at once.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace signalbox::spec {

// A place in a file. Line and column count from 1; 0: the file as a whole.
struct Place {
  std::string file;
  int line = 0;
  int column = 0;
};

struct Problem {
  Place place;
  std::string path;     // `Pool/llama.spec.endpoints[1]`; empty: no resource yet
  std::string message;  // a sentence: what is wrong, and how to mend it
};

// `pools.yaml:12:15: Pool/llama.spec.engine: ...`
std::string to_string(const Problem& problem);

// Path of each node that was read, with its place.
using SourceMap = std::map<std::string, Place, std::less<>>;

class Report {
 public:
  static constexpr std::size_t kProblemsMax = 100;  // the rest are counted only

  void record(const std::string& path, Place place) { places_.insert_or_assign(path, place); }
  void add(Place place, std::string_view path, std::string message);
  // At the place of `path`, or of the nearest enclosing path that was written.
  void add(std::string_view path, std::string message);

  const Place& place_of(std::string_view path) const;
  // Further problems are only counted: no need to word them well.
  bool full() const { return problems_.size() >= kProblemsMax; }
  bool clean() const { return problems_.empty(); }
  std::size_t omitted() const { return omitted_; }
  const std::vector<Problem>& problems() const { return problems_; }
  const SourceMap& places() const { return places_; }
  // All problems in the order of their places, one a line. Call only when not clean().
  Error error() const;

 private:
  std::vector<Problem> problems_;
  std::size_t omitted_ = 0;
  SourceMap places_;
};

}  // namespace signalbox::spec
