// SPDX-License-Identifier: Apache-2.0
// Goal: a tenant's cap counts its own requests, and nothing leaks. Method: acquire and release.
#include "core/admission/tenant_caps.h"

#include <gtest/gtest.h>

namespace signalbox::admission {
namespace {

using model::TenantId;

TEST(TenantCaps, RefusesATenantBeyondItsOwnCapAlone) {
  TenantCaps caps;
  caps.set_limit(TenantId(1), 2);
  EXPECT_TRUE(caps.acquire(TenantId(1)));
  EXPECT_TRUE(caps.acquire(TenantId(1)));
  EXPECT_FALSE(caps.acquire(TenantId(1)));
  EXPECT_TRUE(caps.acquire(TenantId(2)));
  caps.release(TenantId(1));
  EXPECT_TRUE(caps.acquire(TenantId(1)));
}

TEST(TenantCaps, TakesZeroForUnlimited) {
  TenantCaps caps;
  caps.set_limit(TenantId(1), 0);
  for (int i = 0; i < 1000; ++i) ASSERT_TRUE(caps.acquire(TenantId(1)));
}

TEST(TenantCaps, CountsOnWhenLimitsChange) {
  TenantCaps caps;
  caps.set_limit(TenantId(1), 3);
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(caps.acquire(TenantId(1)));
  caps.clear_limits();
  caps.set_limit(TenantId(1), 2);
  caps.release(TenantId(1));
  EXPECT_FALSE(caps.acquire(TenantId(1)));
  caps.release(TenantId(1));
  EXPECT_TRUE(caps.acquire(TenantId(1)));
}

TEST(TenantCaps, IsIdleOnceAllIsReleased) {
  TenantCaps caps;
  EXPECT_TRUE(caps.acquire(TenantId(1)));
  EXPECT_FALSE(caps.idle());
  caps.release(TenantId(1));
  EXPECT_TRUE(caps.idle());
  EXPECT_EQ(caps.in_flight(TenantId(1)), 0);
}

TEST(TenantCapsDeathTest, StopsAtAReleaseTooMany) {
  TenantCaps caps;
  EXPECT_DEATH(caps.release(TenantId(1)), "in_flight_");
}

}  // namespace
}  // namespace signalbox::admission
