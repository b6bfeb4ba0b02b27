// SPDX-License-Identifier: Apache-2.0
// Zero configuration: models and pools made of what was found at bare addresses. Pure.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/spec/config.h"
#include "io/engine/detect.h"

namespace signalbox::app {

// One Model per model id, with the adapters that any of its engines lists, and one Pool per model
// and kind of engine. Addresses where nothing was found yet are in no pool. `found` is keyed by
// host_port().
void compose(spec::Config& config, const std::vector<spec::Url>& addresses,
             const std::map<std::string, engine::Discovery>& found);

// A resource name out of any text: lower case, digits and dashes; unique among `taken`.
std::string resource_name(const std::string& text, const std::vector<std::string>& taken);

}  // namespace signalbox::app
