// SPDX-License-Identifier: Apache-2.0
// The deciding rooms' settings, out of a configuration and back into one: the same for everything
// that drives the core. Pure.
#pragma once

#include "core/flow/config.h"
#include "core/spec/gateway.h"

namespace signalbox::flow {

Config config_of(const spec::Gateway& gateway);
// The rest of the Gateway is at its defaults.
spec::Gateway gateway_of(const Config& config);

}  // namespace signalbox::flow
