// SPDX-License-Identifier: Apache-2.0
// Goal: settings are read as people mean them and wrong ones are refused with a useful sentence.
// Method: tables of right and wrong spellings, and the law that writing then reading is identity.
#include "base/units.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <limits>

namespace signalbox {
namespace {

using std::chrono::hours;
using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

TEST(Units, ReadsDurationsInEveryUnit) {
  const std::pair<const char*, Duration> cases[] = {
      {"0", Duration::zero()},         {"0s", Duration::zero()},
      {"30s", seconds(30)},            {"250ms", milliseconds(250)},
      {"1m30s", seconds(90)},          {"7d", hours(168)},
      {"1h0m5s", seconds(3605)},       {"1.5s", milliseconds(1500)},
      {"0.25ms", microseconds(250)},   {"12us", microseconds(12)},
      {"3ns", Duration(3)},            {"1m2s3ms4us5ns", Duration(62'003'004'005)},
      {"1m1.5s", milliseconds(61500)}, {"0.5d", hours(12)},
  };
  for (const auto& [text, expected] : cases) {
    const auto got = parse_duration(text);
    ASSERT_TRUE(got) << text << ": " << got.error().message;
    EXPECT_EQ(*got, expected) << text;
  }
}

TEST(Units, RefusesWrongDurations) {
  for (const char* text :
       {"", "30", "s", "-5s", "+5s", "5 s", " 5s", "5s ", "5sec", "5S", "1.s", ".5s", "1..5s",
        "1s1m", "1s1s", "1.5m3s", "0.5ns",
        "1e3s", "999999999d", "99999999999999999999999999999999999999s",
        "0.00000000000000001s", "5\xC2\xB5s", "1s,2ms", "nan", "inf"}) {
    const auto got = parse_duration(text);
    EXPECT_FALSE(got) << text;
    if (!got) {
      EXPECT_EQ(got.error().code, Code::InvalidArgument);
    }
  }
}

TEST(Units, ErrorsNameTheTextTheFaultAndTheCure) {
  EXPECT_EQ(parse_duration("30").error().message,
            "`30` has a number without a unit; write a duration like `30s`, `250ms` or `1m30s`.");
  EXPECT_EQ(parse_bytes("8Mb").error().message,
            "`8Mb` has the unknown unit `Mb` (units are B, KiB, MiB, GiB, TiB, kB, MB, GB, TB); "
            "write a size like `8MiB`, `64KiB`, `1GB` or `512B`.");
}

TEST(Units, ReadsSizes) {
  const std::pair<const char*, std::int64_t> cases[] = {
      {"0", 0},        {"0B", 0},         {"512B", 512},          {"8MiB", 8 << 20},
      {"64KiB", 65536}, {"1kB", 1000},     {"2MB", 2'000'000},     {"1GB", 1'000'000'000},
      {"1.5KiB", 1536}, {"0.5GiB", 1 << 29}, {"1TiB", std::int64_t{1} << 40},
      {"9223372036854775807B", std::numeric_limits<std::int64_t>::max()}};
  for (const auto& [text, expected] : cases) {
    const auto got = parse_bytes(text);
    ASSERT_TRUE(got) << text << ": " << got.error().message;
    EXPECT_EQ(got->value, expected) << text;
  }
}

TEST(Units, RefusesWrongSizes) {
  for (const char* text : {"", "8", "MiB", "-1B", "8 MiB", "8mib", "8M", "8MiB1KiB", "0.3B", "1.B",
                           "9223372036854775808B", "9000000TiB", "1e6B", "8MiB "}) {
    EXPECT_FALSE(parse_bytes(text)) << text;
  }
}

TEST(Units, WritesTheCanonicalForm) {
  EXPECT_EQ(format_duration(Duration::zero()), "0s");
  EXPECT_EQ(format_duration(seconds(90)), "1m30s");
  EXPECT_EQ(format_duration(milliseconds(1500)), "1.5s");
  EXPECT_EQ(format_duration(microseconds(250)), "250us");
  EXPECT_EQ(format_duration(hours(168)), "7d");
  EXPECT_EQ(format_duration(-milliseconds(20)), "-20ms");
  EXPECT_EQ(format_duration(Duration::min()), "-106751d23h47m16.854775807s");
  EXPECT_EQ(format_bytes(Bytes{8 << 20}), "8MiB");
  EXPECT_EQ(format_bytes(Bytes{1536}), "1536B");
  EXPECT_EQ(format_bytes(Bytes{2'000'000}), "2MB");
  EXPECT_EQ(format_bytes(Bytes{0}), "0B");
}

std::int64_t of_any_magnitude() {
  const int bits = *rc::gen::inRange(1, 64);
  const auto raw = *rc::gen::arbitrary<std::uint64_t>();
  return static_cast<std::int64_t>(raw >> (64 - bits));
}

RC_GTEST_PROP(UnitsLaw, WrittenDurationsReadBack, ()) {
  const Duration d(of_any_magnitude());
  const auto back = parse_duration(format_duration(d));
  RC_ASSERT(back.has_value());
  RC_ASSERT(*back == d);
}

RC_GTEST_PROP(UnitsLaw, WrittenSizesReadBack, ()) {
  const std::int64_t unit = *rc::gen::element<std::int64_t>(1, 1000, 1024, 1 << 20, 1'000'000);
  const Bytes b{of_any_magnitude() / unit * unit};
  const auto back = parse_bytes(format_bytes(b));
  RC_ASSERT(back.has_value());
  RC_ASSERT(*back == b);
}

RC_GTEST_PROP(UnitsLaw, AnyTextIsReadOrRefused, (const std::string& text)) {
  const auto d = parse_duration(text);
  const auto b = parse_bytes(text);
  if (d) RC_ASSERT(*d >= Duration::zero());
  if (b) RC_ASSERT(b->value >= 0);
}

}  // namespace
}  // namespace signalbox
