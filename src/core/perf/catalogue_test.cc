// SPDX-License-Identifier: Apache-2.0
// Goal: the compiled tables are the tables of data/catalogue, and the trusted row is found.
// Method: the CSV files are read again, cell by cell; known keys with known answers.
#include "core/perf/catalogue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <sstream>
#include <string>

namespace signalbox::perf {
namespace {

using Row = std::map<std::string, std::string>;

std::vector<std::string> cells(const std::string& line) {
  std::vector<std::string> out(1);
  bool quoted = false;
  for (char c : line) {
    if (c == '"') quoted = !quoted;
    else if (c == ',' && !quoted) out.emplace_back();
    else if (c != '\r') out.back().push_back(c);
  }
  return out;
}

std::vector<Row> read(const std::string& file) {
  std::ifstream in(std::string(SIGNALBOX_SOURCE_DIR) + "/data/catalogue/" + file);
  std::string line;
  std::getline(in, line);
  const auto head = cells(line);
  std::vector<Row> rows;
  while (std::getline(in, line)) {
    const auto values = cells(line);
    Row row;
    for (std::size_t i = 0; i < head.size(); ++i) row[head[i]] = values.at(i);
    rows.push_back(row);
  }
  return rows;
}

void expect_cell(const Row& row, const char* column, double value, double scale = 1) {
  const std::string& text = row.at(column);
  const double expected = text.empty() ? -1 : std::stod(text) * scale;
  EXPECT_NEAR(value, expected, 1e-12 * std::abs(expected) + 1e-300) << column;
}

TEST(Catalogue, ProfilesAreThoseOfTheTable) {
  const auto rows = read("engine-profiles.csv");
  ASSERT_EQ(profiles().size(), rows.size());
  ASSERT_GT(rows.size(), 500u);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const Row& row = rows[i];
    const Profile& p = profiles()[i];
    EXPECT_EQ(p.model, row.at("model"));
    EXPECT_EQ(p.accelerator, row.at("gpu"));
    EXPECT_EQ(std::to_string(p.tensor_parallel), row.at("tp"));
    EXPECT_EQ(p.precision, row.at("precision"));
    EXPECT_EQ(name(p.method), row.at("method"));
    EXPECT_EQ(p.engine, row.at("engine"));
    expect_cell(row, "prefill_a_ms", p.a, 1e-3);
    expect_cell(row, "prefill_b_ms_per_token", p.b, 1e-3);
    expect_cell(row, "prefill_c_ms_per_token2", p.c, 1e-3);
    expect_cell(row, "decode_d_ms", p.d, 1e-3);
    expect_cell(row, "decode_e_ms_per_seq", p.e, 1e-3);
    expect_cell(row, "decode_f_ms_per_kv_token", p.f, 1e-3);
    expect_cell(row, "prefill_mape", p.prefill_error);
    expect_cell(row, "decode_mape", p.decode_error);
    expect_cell(row, "pw_mape", p.pw_error);
    expect_cell(row, "pw_batch_break", p.pw_break);
    expect_cell(row, "max_kv_tokens", p.kv_tokens);
    expect_cell(row, "e2e_mape", p.e2e_error);
    if (!row.at("pw_d_ms").empty()) {
      expect_cell(row, "pw_d_ms", p.pw_d, 1e-3);
      expect_cell(row, "pw_e1_ms", p.pw_e1, 1e-3);
      expect_cell(row, "pw_e2_ms", p.pw_e2, 1e-3);
      expect_cell(row, "pw_f_ms", p.pw_f, 1e-3);
    }
  }
}

TEST(Catalogue, AcceleratorsAndModelsAreThoseOfTheTables) {
  const auto gpus = read("gpus.csv");
  ASSERT_EQ(accelerators().size(), gpus.size());
  for (std::size_t i = 0; i < gpus.size(); ++i) {
    EXPECT_EQ(accelerators()[i].name, gpus[i].at("gpu"));
    expect_cell(gpus[i], "memory_bw_tb_s", accelerators()[i].bandwidth_tb_s);
    expect_cell(gpus[i], "fp8_tflops_dense", accelerators()[i].fp8_tflops);
    expect_cell(gpus[i], "usd_per_gpu_hour_on_demand_median", accelerators()[i].usd_per_hour);
  }
  const auto cards = read("models.csv");
  ASSERT_EQ(models().size(), cards.size());
  for (std::size_t i = 0; i < cards.size(); ++i) {
    EXPECT_EQ(models()[i].name, cards[i].at("model"));
    EXPECT_EQ(models()[i].licence, cards[i].at("model_licence"));
    expect_cell(cards[i], "params_b", models()[i].params_b);
    expect_cell(cards[i], "layers", models()[i].layers);
    expect_cell(cards[i], "kv_bytes_per_token_long_context", models()[i].kv_bytes_per_token_long);
  }
}

TEST(Catalogue, EveryProfileNamesAKnownModelAndAccelerator) {
  for (const Profile& p : profiles()) {
    EXPECT_NE(find_model(p.model), nullptr) << p.model;
    EXPECT_NE(find_accelerator(p.accelerator), nullptr) << p.accelerator;
    const Coefficients k = p.coefficients();
    EXPECT_GT(k.b, 0);
    EXPECT_GT(k.d, 0);
    EXPECT_GE(k.e1, 0);
    EXPECT_GE(k.f, 0);
  }
}

TEST(Catalogue, PrefersOperatorRowsAndTheirPiecewiseForm) {
  const Profile* p = find("gpt-oss-120b", "H200-SXM-141GB", 2, "mxfp4");
  ASSERT_NE(p, nullptr);
  EXPECT_EQ(p->method, Method::Ops);
  const Coefficients k = p->coefficients();
  EXPECT_EQ(k.batch_break, 24);
  EXPECT_DOUBLE_EQ(k.e1, 0.2848e-3);
  EXPECT_DOUBLE_EQ(k.e2, 0.03604e-3);
  EXPECT_EQ(k.kv_capacity_tokens, 2 * 2488878);
}

TEST(Catalogue, PrefersMeasuredRowsWhereOperatorTablesMiss) {
  const Profile* blackwell = find("gpt-oss-120b", "B200-SXM-180GB", 4, "mxfp4");
  ASSERT_NE(blackwell, nullptr);
  EXPECT_EQ(blackwell->method, Method::Measured);
  EXPECT_EQ(blackwell->engine, "vllm 0.15.1");
  EXPECT_EQ(find("gpt-oss-120b", "B200-SXM-180GB", 4, "mxfp4", "trtllm")->engine,
            "trtllm 1.2.0rc2/1.2.0rc2.post2");
  EXPECT_EQ(find("Qwen3-235B-A22B", "H200-SXM-141GB", 4, "fp8")->method, Method::Measured);
  EXPECT_EQ(find("Llama-3.1-70B", "MI300X-192GB", 4, "bf16")->method, Method::Scaled);
}

TEST(Catalogue, UnknownKeysFindNothing) {
  EXPECT_EQ(find("Llama-3.1-70B", "H100-SXM-80GB", 3, "fp8"), nullptr);
  EXPECT_EQ(find("", "", 0, ""), nullptr);
  EXPECT_EQ(find_accelerator("H1"), nullptr);
  EXPECT_EQ(find_accelerator(""), nullptr);
  EXPECT_EQ(find_accelerator("H100-SXM-80GB-and-more"), nullptr);
}

TEST(Catalogue, TheUsualNameOfAnAcceleratorIsEnough) {
  EXPECT_EQ(find_accelerator("H100"), find_accelerator("H100-SXM-80GB"));
  EXPECT_EQ(find_accelerator("a100"), find_accelerator("A100-SXM-80GB"));
  EXPECT_EQ(find_accelerator("h100-pcie"), find_accelerator("H100-PCIe-80GB"));
  EXPECT_EQ(find_accelerator("H20")->name, "H20-96GB");
  EXPECT_EQ(find_accelerator("MI300X")->name, "MI300X-192GB");
}

TEST(Catalogue, NamesTheNearest) {
  EXPECT_THAT(nearest_accelerators("H100", 2),
              testing::ElementsAre("H100-SXM-80GB", "H100-PCIe-80GB"));
  EXPECT_EQ(nearest_accelerators("H1OO-SXM-80GB", 1)[0], "H100-SXM-80GB");
  EXPECT_EQ(nearest_models("lama-3.1-70b", 1)[0], "Llama-3.1-70B");
}

TEST(Catalogue, RecognisesTheNamesEnginesUse) {
  const std::pair<const char*, const char*> cases[] = {
      {"meta-llama/Llama-3.1-70B-Instruct", "Llama-3.1-70B"},
      {"meta-llama/Meta-Llama-3.1-8B-Instruct", "Llama-3.1-8B"},
      {"Qwen/Qwen3-32B-FP8", "Qwen3-32B"},
      {"qwen3-30b-a3b-instruct-2507", "Qwen3-30B-A3B"},
      {"openai/gpt-oss-120b", "gpt-oss-120b"},
      {"Qwen/Qwen2.5-7B-Instruct-1M", "Qwen2.5-7B"},
  };
  for (const auto& [served, expected] : cases) {
    ASSERT_NE(recognise_model(served), nullptr) << served;
    EXPECT_EQ(recognise_model(served)->name, expected);
  }
  for (const char* other : {"", "DeepSeek-R1-Distill-Llama-70B", "DeepSeek-V3.1", "Qwen2.5-0.5B",
                            "gpt-4o", "Qwen3-8Bit"}) {
    EXPECT_EQ(recognise_model(other), nullptr) << other;
  }
}

}  // namespace
}  // namespace signalbox::perf
