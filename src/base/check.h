// SPDX-License-Identifier: Apache-2.0
// CHECK(condition): a broken assumption stops the process, in release builds too. Input from
// outside is never CHECKed; it gets a Result.
#pragma once

namespace signalbox {

// Prints where and what to standard error and aborts.
[[noreturn]] void check_failed(const char* file, int line, const char* condition);

}  // namespace signalbox

#define CHECK(condition)                                                    \
  do {                                                                      \
    if (!(condition)) [[unlikely]]                                          \
      ::signalbox::check_failed(__FILE__, __LINE__, #condition);            \
  } while (false)
