// SPDX-License-Identifier: Apache-2.0
// Goal: one call is one readable line, whatever the values hold. Method: exact texts, and standard
// error captured.
#include "io/telemetry/log.h"

#include <gtest/gtest.h>

#include <chrono>

namespace signalbox::telemetry {
namespace {

using namespace std::chrono_literals;

TEST(Log, WritesFieldsPlainlyAndQuotesOnlyWhereNeeded) {
  EXPECT_EQ(log_text("listening", {{"address", "[::1]:8080"}, {"threads", 4}, {"tls", true}}),
            "listening address=[::1]:8080 threads=4 tls=true");
  EXPECT_EQ(log_text("x", {{"empty", ""}, {"path", std::string("a b")}, {"share", 0.25}}),
            "x empty=\"\" path=\"a b\" share=0.25");
}

TEST(Log, WritesDurationsInTheUnitThatFits) {
  EXPECT_EQ(log_text("t", {{"a", Duration(15ns)}, {"b", Duration(1500ns)}, {"c", Duration(20ms)},
                           {"d", Duration(90s)}}),
            "t a=15ns b=1.5us c=20ms d=90.0s");
}

TEST(Log, KeepsControlBytesOffTheTerminal) {
  EXPECT_EQ(log_text("two\nlines", {{"name", "a\n\x1b[31m\""}}),
            "two lines name=\"a\\n\\u001b[31m\\\"\"");
}

TEST(Log, WritesLevelsFromTheOneThatIsSet) {
  testing::internal::CaptureStderr();
  log_debug("hidden");
  log_warn("shown", {{"n", 1}});
  set_log_level(Level::Error);
  log_warn("hidden too");
  set_log_level(Level::Info);
  std::string text = testing::internal::GetCapturedStderr();
  EXPECT_EQ(text.find("hidden"), std::string::npos);
  EXPECT_NE(text.find("shown n=1\n"), std::string::npos);
  EXPECT_NE(text.find("Z warning"), std::string::npos);
}

}  // namespace
}  // namespace signalbox::telemetry
