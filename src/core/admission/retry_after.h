// SPDX-License-Identifier: Apache-2.0
// What to tell a client that finds the queue full.
#pragma once

#include "base/time.h"

namespace signalbox::admission {

// When the work that waits will have drained: seconds of engine time waiting, over engine seconds
// done per second (endpoints or slots that work on it). Whole seconds, rounded up, 1 to 120; 120
// where nothing drains or the figures are no numbers.
Duration retry_after(double seconds_of_work, double rate);

}  // namespace signalbox::admission
