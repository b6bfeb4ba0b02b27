// SPDX-License-Identifier: Apache-2.0
// Goal: each engine's page gives the right figures, whole and by rank. Method: recorded pages of
// vLLM and llama.cpp, hand-made pages in the form of SGLang and TensorRT-LLM.
#include "io/engine/page_state.h"

#include <gtest/gtest.h>

#include "io/engine/recorded_for_test.inc"

namespace signalbox::engine {
namespace {

using model::EngineKind;

TEST(PageState, ReadsTheRecordedPageOfVllm) {
  PageState got = read_page(EngineKind::Vllm, recorded_file("vllm-0.32-metrics.txt"), -1);
  EXPECT_EQ(got.state.running, 0);
  EXPECT_EQ(got.state.waiting, 0);
  EXPECT_EQ(got.state.slots, -1);
  EXPECT_EQ(got.state.kv_usage, 0);
  EXPECT_EQ(got.state.kv_capacity_tokens, 32 * 16384);
  EXPECT_EQ(got.state.prompt_tokens_total, 174);
  EXPECT_EQ(got.state.cached_tokens_total, 0);
  EXPECT_EQ(got.state.generated_tokens_total, 1132);
  EXPECT_EQ(got.state.preemptions_total, 0);
  EXPECT_DOUBLE_EQ(got.state.prefill_seconds.sum, 31.036956096999347);
  EXPECT_EQ(got.state.prefill_seconds.count, 19);
  EXPECT_EQ(got.state.prefill_tokens.sum, 174);
  EXPECT_EQ(got.state.prefill_tokens.count, 19);
  EXPECT_DOUBLE_EQ(got.state.queue_seconds.sum, 0.0005006250004271351);
  EXPECT_FALSE(got.state.asleep);
  EXPECT_DOUBLE_EQ(got.start_time, 1.79597399657e9);
}

TEST(PageState, ReadsTheRecordedPageOfLlamaCpp) {
  PageState got = read_page(EngineKind::LlamaCpp, llamacpp_body("GET /metrics"), -1);
  EXPECT_EQ(got.state.running, 0);
  EXPECT_EQ(got.state.waiting, 0);
  EXPECT_EQ(got.state.prompt_tokens_total, 32);
  EXPECT_EQ(got.state.cached_tokens_total, 0);
  EXPECT_EQ(got.state.generated_tokens_total, 16);
  EXPECT_DOUBLE_EQ(got.state.prefill_seconds.sum, 0.58526);
  EXPECT_EQ(got.state.prefill_seconds.count, -1);
  EXPECT_EQ(got.state.kv_usage, -1);
  EXPECT_EQ(got.start_time, -1);
}

TEST(PageState, CountsCachedPromptTokensOfLlamaCppAsPromptTokens) {
  PageState got = read_page(EngineKind::LlamaCpp,
                            "llamacpp:prompt_tokens_total 32\n"
                            "llamacpp:prompt_tokens_cached_total 100\n",
                            -1);
  EXPECT_EQ(got.state.prompt_tokens_total, 132);
  EXPECT_EQ(got.state.prefill_tokens.sum, 32);
}

constexpr std::string_view kTwoRanks =
    "vllm:num_requests_running{engine=\"0\",model_name=\"m\"} 3.0\n"
    "vllm:num_requests_running{engine=\"1\",model_name=\"m\"} 5.0\n"
    "vllm:kv_cache_usage_perc{engine=\"0\",model_name=\"m\"} 0.2\n"
    "vllm:kv_cache_usage_perc{engine=\"1\",model_name=\"m\"} 0.6\n"
    "vllm:engine_sleep_state{engine=\"0\",sleep_state=\"awake\"} 1.0\n"
    "vllm:engine_sleep_state{engine=\"1\",sleep_state=\"awake\"} 0.0\n"
    "vllm:engine_sleep_state{engine=\"1\",sleep_state=\"discard_all\"} 1.0\n"
    "vllm:cache_config_info{block_size=\"16\",engine=\"0\",num_gpu_blocks=\"100\"} 1.0\n"
    "vllm:cache_config_info{block_size=\"16\",engine=\"1\",num_gpu_blocks=\"200\"} 1.0\n";

TEST(PageState, TakesOneRankOrTheWholeServer) {
  PageState whole = read_page(EngineKind::Vllm, kTwoRanks, -1);
  EXPECT_EQ(whole.state.running, 8);
  EXPECT_DOUBLE_EQ(whole.state.kv_usage, 0.4);
  EXPECT_EQ(whole.state.kv_capacity_tokens, 4800);
  PageState first = read_page(EngineKind::Vllm, kTwoRanks, 0);
  EXPECT_EQ(first.state.running, 3);
  EXPECT_EQ(first.state.kv_capacity_tokens, 1600);
  EXPECT_FALSE(first.state.asleep);
  PageState second = read_page(EngineKind::Vllm, kTwoRanks, 1);
  EXPECT_DOUBLE_EQ(second.state.kv_usage, 0.6);
  EXPECT_TRUE(second.state.asleep);
}

TEST(PageState, LeavesCapacityUnknownWhileVllmHasNoBlocksYet) {
  PageState got = read_page(EngineKind::Vllm,
                            "vllm:cache_config_info{block_size=\"16\",num_gpu_blocks=\"None\"} 1\n",
                            -1);
  EXPECT_EQ(got.state.kv_capacity_tokens, -1);
}

TEST(PageState, ReadsSglangWithRanksAndRepeatingProcesses) {
  constexpr std::string_view kPage =
      "sglang:num_running_reqs{dp_rank=\"0\",model_name=\"m\",pp_rank=\"0\",tp_rank=\"0\"} 4.0\n"
      "sglang:num_running_reqs{dp_rank=\"0\",model_name=\"m\",pp_rank=\"0\",tp_rank=\"1\"} 4.0\n"
      "sglang:num_running_reqs{dp_rank=\"1\",model_name=\"m\",pp_rank=\"0\",tp_rank=\"0\"} 6.0\n"
      "sglang:num_queue_reqs{dp_rank=\"0\",tp_rank=\"0\"} 1.0\n"
      "sglang:token_usage{dp_rank=\"0\",tp_rank=\"0\"} 0.5\n"
      "sglang:token_usage{dp_rank=\"1\",tp_rank=\"0\"} 0.7\n"
      "sglang:max_total_num_tokens{dp_rank=\"0\",tp_rank=\"0\"} 1000.0\n"
      "sglang:max_total_num_tokens{dp_rank=\"1\",tp_rank=\"0\"} 1000.0\n"
      "sglang:prompt_tokens_total{model_name=\"m\"} 900.0\n"
      "sglang:cached_tokens_total{cache_source=\"device\",model_name=\"m\"} 300.0\n"
      "sglang:cached_tokens_total{cache_source=\"host\",model_name=\"m\"} 20.0\n"
      "sglang:queue_time_seconds_sum{model_name=\"m\"} 1.5\n"
      "sglang:queue_time_seconds_count{model_name=\"m\"} 10.0\n";
  PageState whole = read_page(EngineKind::Sglang, kPage, -1);
  EXPECT_EQ(whole.state.running, 10);
  EXPECT_EQ(whole.state.waiting, 1);
  EXPECT_DOUBLE_EQ(whole.state.kv_usage, 0.6);
  EXPECT_EQ(whole.state.kv_capacity_tokens, 2000);
  EXPECT_EQ(whole.state.prompt_tokens_total, 900);
  EXPECT_EQ(whole.state.cached_tokens_total, 320);
  EXPECT_EQ(whole.state.queue_seconds.count, 10);
  PageState second = read_page(EngineKind::Sglang, kPage, 1);
  EXPECT_EQ(second.state.running, 6);
  EXPECT_EQ(second.state.waiting, -1);
  EXPECT_EQ(second.state.kv_capacity_tokens, 1000);
}

TEST(PageState, TakesSglangCapacityOnceFromGaugeOrPages) {
  constexpr std::string_view kInfo =
      "sglang:cache_config_info{num_pages=\"50\",page_size=\"16\"} 1\n";
  constexpr std::string_view kGauge = "sglang:max_total_num_tokens 800\n";
  EXPECT_EQ(read_page(EngineKind::Sglang, kInfo, -1).state.kv_capacity_tokens, 800);
  for (const std::string& page : {std::string(kInfo) + std::string(kGauge),
                                  std::string(kGauge) + std::string(kInfo)}) {
    EXPECT_EQ(read_page(EngineKind::Sglang, page, -1).state.kv_capacity_tokens, 800);
  }
}

TEST(PageState, ReadsTrtLlm) {
  PageState got = read_page(EngineKind::TrtLlm,
                            "trtllm_num_requests_running{model_name=\"m\"} 2\n"
                            "trtllm_num_requests_waiting{model_name=\"m\"} 7\n"
                            "trtllm_kv_cache_utilization{model_name=\"m\"} 0.62\n"
                            "trtllm_kv_cache_tokens_per_block{model_name=\"m\"} 32\n"
                            "trtllm_kv_cache_max_blocks{model_name=\"m\"} 10\n",
                            -1);
  EXPECT_EQ(got.state.running, 2);
  EXPECT_EQ(got.state.waiting, 7);
  EXPECT_DOUBLE_EQ(got.state.kv_usage, 0.62);
  EXPECT_EQ(got.state.kv_capacity_tokens, 320);
}

TEST(PageState, IgnoresNumbersThatCannotBe) {
  PageState got = read_page(EngineKind::Vllm,
                            "vllm:num_requests_running NaN\nvllm:num_requests_waiting -3\n"
                            "vllm:kv_cache_usage_perc 7\nvllm:prompt_tokens_total +Inf\n"
                            "vllm:generation_tokens_total 1e300\n",
                            -1);
  EXPECT_EQ(got.state.running, -1);
  EXPECT_EQ(got.state.waiting, -1);
  EXPECT_EQ(got.state.kv_usage, 1);
  EXPECT_EQ(got.state.prompt_tokens_total, -1);
  EXPECT_GT(got.state.generated_tokens_total, 0);
}

TEST(PageState, KnowsWhosePageItIs) {
  EXPECT_EQ(page_owner(recorded_file("vllm-0.32-metrics.txt")), EngineKind::Vllm);
  EXPECT_EQ(page_owner(llamacpp_body("GET /metrics")), EngineKind::LlamaCpp);
  EXPECT_EQ(page_owner("sglang:num_running_reqs 0\n"), EngineKind::Sglang);
  EXPECT_EQ(page_owner("trtllm_num_requests_running 0\n"), EngineKind::TrtLlm);
  EXPECT_EQ(page_owner("process_start_time_seconds 1.7e9\n"), EngineKind::Auto);
  EXPECT_EQ(page_owner("<html>"), EngineKind::Auto);
}

}  // namespace
}  // namespace signalbox::engine
