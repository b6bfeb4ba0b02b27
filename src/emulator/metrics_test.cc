// SPDX-License-Identifier: Apache-2.0
// Goal: the pages carry the series that real engines have, under the same names and labels.
// Method: names read from the dialects' own lists; values put in and read back.
#include "emulator/metrics.h"

#include <gtest/gtest.h>

namespace signalbox::emulator {
namespace {

MetricsView view(const RequestMetrics& requests) {
  MetricsView v;
  v.model = "m\"x";
  v.started_unix = 1795974090.5;
  RankView& rank = v.ranks.emplace_back();
  rank.gauges = {3, 2, 100, 25};
  rank.counters.prompt_tokens = 170;
  rank.counters.cached_tokens = 96;
  rank.counters.generated_tokens = 1132;
  rank.requests = &requests;
  return v;
}

bool has(const std::string& page, const std::string& line) {
  return page.find("\n" + line + "\n") != page.npos;
}

TEST(VllmMetrics, TellsWhatTheEngineCounts) {
  RequestMetrics requests;
  requests.prefill.observe(0.25);
  requests.prefill.observe(0.5);
  requests.finished_length = 18;
  const std::string page = vllm_metrics(view(requests));
  const std::string labels = R"({engine="0",model_name="m\"x"})";
  EXPECT_TRUE(has(page, "vllm:num_requests_running" + labels + " 3.0"));
  EXPECT_TRUE(has(page, "vllm:num_requests_waiting" + labels + " 2.0"));
  EXPECT_TRUE(has(page, "vllm:kv_cache_usage_perc" + labels + " 0.25"));
  EXPECT_TRUE(has(page, "vllm:prompt_tokens_total" + labels + " 170.0"));
  EXPECT_TRUE(has(page, "vllm:prompt_tokens_cached_total" + labels + " 96.0"));
  EXPECT_TRUE(has(page, "vllm:generation_tokens_total" + labels + " 1132.0"));
  EXPECT_TRUE(has(page, "vllm:request_prefill_time_seconds_sum" + labels + " 0.75"));
  EXPECT_TRUE(has(page, "vllm:request_prefill_time_seconds_count" + labels + " 2.0"));
  EXPECT_TRUE(has(page, R"(vllm:request_prefill_time_seconds_bucket{engine="0",le="0.3",)"
                        R"(model_name="m\"x"} 1.0)"));
  EXPECT_TRUE(has(page, R"(vllm:request_prefill_time_seconds_bucket{engine="0",le="+Inf",)"
                        R"(model_name="m\"x"} 2.0)"));
  EXPECT_TRUE(has(page, R"(vllm:request_success_total{engine="0",finished_reason="length",)"
                        R"(model_name="m\"x"} 18.0)"));
  EXPECT_NE(page.find("num_gpu_blocks=\"100\""), page.npos);
  EXPECT_TRUE(has(page, "process_start_time_seconds 1795974090.5"));
}

TEST(VllmMetrics, EveryHistogramOfTheRealPageIsThere) {
  const RequestMetrics requests;
  const std::string page = vllm_metrics(view(requests));
  for (const char* name :
       {"time_to_first_token_seconds", "inter_token_latency_seconds",
        "request_time_per_output_token_seconds", "e2e_request_latency_seconds",
        "request_queue_time_seconds", "request_inference_time_seconds",
        "request_prefill_time_seconds", "request_decode_time_seconds", "request_prompt_tokens",
        "request_generation_tokens", "iteration_tokens_total", "request_params_n",
        "request_params_max_tokens", "request_max_num_generation_tokens",
        "request_num_preemptions", "request_prefill_kv_computed_tokens"}) {
    EXPECT_NE(page.find("\nvllm:" + std::string(name) + "_sum{"), page.npos) << name;
    EXPECT_NE(page.find("\nvllm:" + std::string(name) + "_count{"), page.npos) << name;
  }
}

TEST(LlamaCppMetrics, CountsEndedRequests) {
  RequestMetrics requests;
  requests.computed_prompt_tokens = 32;
  requests.prompt_seconds = 0.5;
  requests.predicted_tokens = 16;
  const std::string page = llamacpp_metrics(view(requests));
  EXPECT_TRUE(has(page, "llamacpp:prompt_tokens_total 32"));
  EXPECT_TRUE(has(page, "llamacpp:prompt_seconds_total 0.5"));
  EXPECT_TRUE(has(page, "llamacpp:tokens_predicted_total 16"));
  EXPECT_TRUE(has(page, "llamacpp:prompt_tokens_seconds 64"));
  EXPECT_TRUE(has(page, "llamacpp:requests_processing 3"));
  EXPECT_TRUE(has(page, "llamacpp:requests_deferred 2"));
}

TEST(BucketHistogram, CountsAValueInItsOwnBucket) {
  static constexpr double kBounds[] = {1, 2};
  BucketHistogram h(kBounds);
  h.observe(1);
  h.observe(1.5);
  h.observe(9);
  EXPECT_EQ(h.cumulative(0), 1);
  EXPECT_EQ(h.cumulative(1), 2);
  EXPECT_EQ(h.cumulative(2), 3);
  EXPECT_EQ(h.sum(), 11.5);
}

}  // namespace
}  // namespace signalbox::emulator
