// SPDX-License-Identifier: Apache-2.0
// Closes a descriptor when its owner goes.
#include "io/net/fd.h"

#include <unistd.h>

namespace signalbox::net {

void Fd::reset() {
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
}

}  // namespace signalbox::net
