// SPDX-License-Identifier: Apache-2.0
// YAML text into trees with positions. The subset that says one thing in one way: no anchors,
// aliases, tags or keys that are not text. Equal keys are kept, for the reader to refuse.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "core/spec/problem.h"
#include "core/spec/tree.h"

namespace signalbox::config {

struct YamlLimits {
  std::size_t bytes_max = 8u << 20;   // of one file
  int depth_max = 32;
  std::size_t nodes_max = 1'000'000;  // of one file
};

// The documents of one file, `file` being its name in errors. After a problem the list holds what
// stood before it.
std::vector<spec::Document> read_yaml(const std::string& file, std::string_view text,
                                      const YamlLimits& limits, spec::Report& report);

}  // namespace signalbox::config
