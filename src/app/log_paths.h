// SPDX-License-Identifier: Apache-2.0
// Refuses one file for two logs: their records would be mixed, and neither could be read.
#pragma once

#include "base/result.h"
#include "core/spec/gateway.h"

namespace signalbox::app {

// Files that are the same under two names as well. Devices may be shared; `-`, standard output,
// only by logs of lines.
Result<void> check_logs(const spec::Logs& logs);

}  // namespace signalbox::app
