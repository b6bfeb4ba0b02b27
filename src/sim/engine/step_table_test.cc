// SPDX-License-Identifier: Apache-2.0
// Goal: the tables say what the measured grid says, and something sensible between and beyond.
// Method: points of data/truth read back from the CSV, formulas worked by hand, laws.
#include "sim/engine/step_table.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <sstream>
#include <string>

#include "sim/engine/catalogue.h"

namespace signalbox::truth {
namespace {

TEST(StepTable, GivesTheFormulaBackExactlyForDecode) {
  const StepTable table = StepTable::formula(10, 0.1, 1e-5, 8, 0.5, 1e-4);
  EXPECT_NEAR(table.decode_ms(3, 700), 8 + 0.5 * 3 + 1e-4 * 3 * 700, 1e-3);
  EXPECT_NEAR(table.decode_ms(1, 1), 8.5, 1e-3);
  EXPECT_NEAR(table.decode_ms(400, 200), 8 + 0.5 * 400 + 1e-4 * 400 * 200, 1e-2);
  EXPECT_NEAR(table.decode_fixed_ms(), 8 + 1e-4 * 0 * 128, 1e-3);
}

TEST(StepTable, GivesTheFormulaBackAtThePointsForPrefill) {
  const StepTable table = StepTable::formula(10, 0.1, 1e-5, 8, 0.5, 1e-4);
  EXPECT_NEAR(table.prefill_ms(512, 4096), 10 + 51.2 + 1e-5 * 512 * (4096 + 256), 1e-3);
  EXPECT_NEAR(table.prefill_fixed_ms(), 10, 0.01);
}

TEST(StepTable, TakesAttentionAwayForANegativePrefix) {
  const StepTable table = StepTable::formula(10, 0.1, 1e-5, 8, 0.5, 1e-4);
  // Two prefills of 512 have half the attention of one of 1,024.
  EXPECT_NEAR(table.prefill_ms(1024, -256), 10 + 102.4 + 1e-5 * 1024 * 256, 1e-2);
}

TEST(StepTable, CompiledTablesEqualTheCsv) {
  std::ifstream in(SIGNALBOX_SOURCE_DIR "/data/truth/grid.csv");
  ASSERT_TRUE(in) << "data/truth/grid.csv is missing";
  std::map<std::string, const Profile*> profiles;
  for (const Profile& p : catalogue())
    profiles[std::string(p.model) + "," + std::string(p.gpu) + "," +
             std::to_string(p.tensor_parallel) + "," + std::string(p.precision)] = &p;
  std::string line;
  std::getline(in, line);
  int rows = 0;
  while (std::getline(in, line)) {
    std::istringstream cells(line);
    std::string cell, key;
    for (int i = 0; i < 4; ++i) {
      std::getline(cells, cell, ',');
      key += (i > 0 ? "," : "") + cell;
    }
    std::string phase, n, ctx, ms;
    std::getline(cells, phase, ',');
    std::getline(cells, n, ',');
    std::getline(cells, ctx, ',');
    std::getline(cells, ms, ',');
    ASSERT_TRUE(profiles.contains(key)) << key;
    const StepTable table(profiles[key]->prefill, profiles[key]->decode);
    const double got = phase == "p" ? table.prefill_ms(std::stod(n), std::stod(ctx))
                                    : table.decode_ms(std::stod(n), std::stod(ctx));
    ASSERT_NEAR(got, std::stod(ms), 1e-5 * std::stod(ms) + 1e-4) << line;
    ++rows;
  }
  EXPECT_GT(rows, 5000);
}

TEST(Catalogue, FindsByTheBeginningOfTheGpusName) {
  const auto found = find_profile("llama-3.1-70b", "h100x4/fp8");
  ASSERT_TRUE(found);
  EXPECT_EQ((*found)->gpu, "H100-SXM-80GB");
  EXPECT_EQ((*found)->tensor_parallel, 4);
  EXPECT_EQ((*found)->precision, "fp8");
}

TEST(Catalogue, TakesTheSmallestParallelismWhenNoneIsGiven) {
  const auto found = find_profile("Llama-3.1-8B", "L40S");
  ASSERT_TRUE(found);
  EXPECT_EQ((*found)->tensor_parallel, 1);
  EXPECT_EQ((*found)->precision, "bf16");
}

TEST(Catalogue, AnUnknownNameIsAnErrorThatListsWhatThereIs) {
  const auto model = find_profile("gpt-9", "h100");
  ASSERT_FALSE(model);
  EXPECT_NE(model.error().message.find("Llama-3.1-8B"), std::string::npos);
  const auto gpu = find_profile("Llama-3.1-8B", "tpu");
  ASSERT_FALSE(gpu);
  EXPECT_NE(gpu.error().message.find("H100-SXM-80GBx1/bf16"), std::string::npos);
  EXPECT_FALSE(find_profile("Llama-3.1-8B", "/fp8"));
}

RC_GTEST_PROP(StepTable, EveryMeasuredTableIsPositiveEverywhere, ()) {
  const auto profiles = catalogue();
  const Profile& p = profiles[*rc::gen::inRange<std::size_t>(0, profiles.size())];
  const StepTable table(p.prefill, p.decode);
  const double fresh = *rc::gen::inRange(1, 40000);
  const double prefix = *rc::gen::inRange(0, 130000);
  RC_ASSERT(table.prefill_ms(fresh, prefix) > 0);
  const double batch = *rc::gen::inRange(1, 512);
  const double length = *rc::gen::inRange(1, 130000);
  RC_ASSERT(table.decode_ms(batch, length) > 0);
}

RC_GTEST_PROP(StepTable, FormulaTablesGrowInEveryArgument, ()) {
  const StepTable table = StepTable::formula(10, 0.05, 1e-6, 8, 0.2, 1e-4);
  const double fresh = *rc::gen::inRange(1, 20000);
  const double prefix = *rc::gen::inRange(0, 100000);
  RC_ASSERT(table.prefill_ms(fresh + 64, prefix) > table.prefill_ms(fresh, prefix));
  RC_ASSERT(table.prefill_ms(fresh, prefix + 4096) > table.prefill_ms(fresh, prefix));
  const double batch = *rc::gen::inRange(1, 300);
  RC_ASSERT(table.decode_ms(batch + 1, 1000) > table.decode_ms(batch, 1000));
}

}  // namespace
}  // namespace signalbox::truth
