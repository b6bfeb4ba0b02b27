// SPDX-License-Identifier: Apache-2.0
// The identities that cross the rooms. All are assigned by us, dense from 1, and never reused
// while the process lives; 0 is "none".
#pragma once

#include <cstdint>

#include "base/ids.h"

namespace signalbox::model {

using ModelId = Id<struct ModelTag>;
using PoolId = Id<struct PoolTag>;
using EndpointId = Id<struct EndpointTag>;    // one (address, rank)
using TenantId = Id<struct TenantTag>;
using RouteId = Id<struct RouteTag>;          // one public model name
using ObjectiveId = Id<struct ObjectiveTag>;
using RequestId = Id<struct RequestTag, std::uint64_t>;
using AttemptId = Id<struct AttemptTag>;      // counts from 1 within its request

}  // namespace signalbox::model
