// SPDX-License-Identifier: Apache-2.0
// A scenario file on disk: read, overridden from the command line, and made into scenarios with the
// traces that it names. Blocking file reads.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "core/spec/problem.h"
#include "core/spec/tree.h"
#include "sim/scenario_form.h"

namespace signalbox::app {

class ScenarioFile {
 public:
  // `sets`: overrides, `PATH=VALUE` each, in order. The error lists every problem, one a line.
  static Result<ScenarioFile> open(const std::string& path, const std::vector<std::string>& sets);
  // The same of a text; `path` is what its problems are told of, and where its traces lie.
  static Result<ScenarioFile> parse(const std::string& path, const std::string& text,
                                    const std::vector<std::string>& sets);

  const std::string& path() const { return path_; }
  const sim::ScenarioForm& form() const { return form_; }
  Result<sim::Scenario> scenario(std::uint64_t seed);

 private:
  Result<std::string> text_of(const std::string& file);

  std::string path_;
  sim::ScenarioForm form_;
  bool overridden_ = false;                   // from the command line
  spec::Report places_;                       // clean; knows where each setting stands
  std::map<std::string, std::string> texts_;  // files that were read, unpacked
};

// Puts `PATH=VALUE` into a tree: PATH as in error messages (`load.requests`, `fleet[0].count`; an
// index of one more than there are appends), VALUE in YAML.
Result<bool> set_value(spec::Node& root, std::string_view assignment);

// The bytes of a regular file, unpacked if they are gzip. An error is a sentence without the name.
Result<std::string> read_unpacked(const std::string& path, std::size_t bytes_max);

}  // namespace signalbox::app
