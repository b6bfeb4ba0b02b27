// SPDX-License-Identifier: Apache-2.0
// A check for options without a sign: the parser would take -1 for the largest number.
#pragma once

#include <string>

namespace signalbox::app {

// Empty when `text` is a whole number from 0 on, else what is wrong: the form that the parser of
// options asks for.
inline std::string natural(const std::string& text) {
  const bool digits =
      !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
  return digits ? std::string() : "'" + text + "' is no whole number from 0 on";
}

}  // namespace signalbox::app
