// SPDX-License-Identifier: Apache-2.0
// Goal: a line says all that is known and is valid JSON whatever clients sent. Method: exact lines.
#include "io/telemetry/access_log.h"

#include <gtest/gtest.h>

namespace signalbox::telemetry {
namespace {

using namespace std::chrono_literals;

std::string line(const AccessRecord& record) {
  AccessFormat format;
  std::string out;
  format.append(out, record);
  return out;
}

TEST(AccessLog, WritesEverythingThatIsKnown) {
  AccessRecord r;
  r.unix_nanos = 1'795'974'123'045'999'999;
  r.request_id = "req-1";
  r.trace_id = "0af7651916cd43dd8448eb211c80319c";
  r.client = "10.0.0.1:5";
  r.tenant = "acme";
  r.method = "POST";
  r.path = "/v1/chat/completions";
  r.model = "llama";
  r.route = "llama";
  r.pool = "p";
  r.endpoint = "10.0.0.2:8000";
  r.status = 200;
  r.outcome = "completed";
  r.stream = true;
  r.attempts = 1;
  r.queue = 0ms;
  r.ttft = 12345678ns;
  r.total = 2500ms;
  r.usage = {100, 64, 7};
  r.bytes_in = 1200;
  r.bytes_out = 600;
  r.engine_request_id = "req-2";
  EXPECT_EQ(line(r),
            "{\"time\":\"2026-11-29T17:42:03.045Z\",\"request_id\":\"req-1\","
            "\"engine_request_id\":\"req-2\","
            "\"trace_id\":\"0af7651916cd43dd8448eb211c80319c\",\"client\":\"10.0.0.1:5\","
            "\"tenant\":\"acme\",\"method\":\"POST\",\"path\":\"/v1/chat/completions\","
            "\"model\":\"llama\",\"route\":\"llama\",\"pool\":\"p\","
            "\"endpoint\":\"10.0.0.2:8000\",\"status\":200,\"outcome\":\"completed\","
            "\"stream\":true,\"attempts\":1,\"queue_ms\":0,\"ttft_ms\":12.345,\"total_ms\":2500,"
            "\"prompt_tokens\":100,\"cached_tokens\":64,\"completion_tokens\":7,"
            "\"bytes_in\":1200,\"bytes_out\":600}\n");
}

TEST(AccessLog, LeavesOutWhatIsNotKnown) {
  AccessRecord r;
  r.outcome = "queue_full";
  EXPECT_EQ(line(r), "{\"time\":\"1970-01-01T00:00:00.000Z\",\"outcome\":\"queue_full\","
                     "\"stream\":false}\n");
}

TEST(AccessLog, EscapesWhatClientsInvent) {
  AccessRecord r;
  r.model = "a\"b\\c\nd\x01\xff\xc3\xa9\xed\xa0\x80";
  EXPECT_NE(line(r).find("\"model\":\"a\\\"b\\\\c\\nd\\u0001\xEF\xBF\xBD\xc3\xa9"
                         "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\""),
            std::string::npos);
}

TEST(AccessLog, TellsTheTimeAcrossSecondsDaysAndLeapYears) {
  UtcClockText clock;
  auto at = [&](std::int64_t nanos) {
    std::string out;
    clock.append(out, nanos);
    return out;
  };
  EXPECT_EQ(at(1'709'164'799'999'000'000), "2024-02-28T23:59:59.999Z");
  EXPECT_EQ(at(1'709'164'800'000'000'000), "2024-02-29T00:00:00.000Z");
  EXPECT_EQ(at(1'709'164'800'001'000'000), "2024-02-29T00:00:00.001Z");
}

TEST(AccessLog, WritesMillisecondsWithoutNeedlessDigits) {
  auto text = [](std::int64_t nanos) {
    std::string out;
    append_millis(out, nanos);
    return out;
  };
  EXPECT_EQ(text(0), "0");
  EXPECT_EQ(text(999), "0");
  EXPECT_EQ(text(1'000), "0.001");
  EXPECT_EQ(text(10'000), "0.01");
  EXPECT_EQ(text(1'500'000), "1.5");
  EXPECT_EQ(text(3'000'000'000), "3000");
}

}  // namespace
}  // namespace signalbox::telemetry
