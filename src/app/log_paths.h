// SPDX-License-Identifier: Apache-2.0
// Finds where logs are written. Refuses logs that could not be written, and one file for two of
// them: their records would be mixed, and neither could be read.
#pragma once

#include "base/result.h"
#include "core/spec/gateway.h"
#include "core/spec/problem.h"
#include "io/config/load.h"

namespace signalbox::app {

// The logs of a configuration with absolute paths; relative ones begin at its folder.
spec::Logs resolved_logs(const config::Loaded& loaded);

// Files that are the same under two names as well. Devices may be shared; `-`, standard output,
// only by logs of lines.
Result<void> check_logs(const spec::Logs& logs);

// Reports, at the place of its setting, each log that could not be opened. `overridden`: those that
// the command line names, in whose stead the configuration's are not looked at.
void check_logs(const config::Loaded& loaded, const spec::Logs& overridden, spec::Report& report);

}  // namespace signalbox::app
