// SPDX-License-Identifier: Apache-2.0
// Ends the process on a broken assumption.
#include "base/check.h"

#include <cstdio>
#include <cstdlib>

namespace signalbox {

void check_failed(const char* file, int line, const char* condition) {
  std::fprintf(stderr, "%s:%d: CHECK(%s) failed\n", file, line, condition);
  std::abort();
}

}  // namespace signalbox
