// SPDX-License-Identifier: Apache-2.0
// Compares gateways, blocks of other modules included.
#include "core/spec/gateway.h"

#include "core/spec/same.h"

namespace signalbox::spec {

bool Gateway::operator==(const Gateway& other) const {
  return name == other.name && same_settings(*this, other);
}

}  // namespace signalbox::spec
