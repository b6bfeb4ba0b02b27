// SPDX-License-Identifier: Apache-2.0
// The pages as vLLM 0.32 and llama.cpp print them: names, labels, order of labels, buckets.
#include "emulator/metrics.h"

#include <algorithm>
#include <array>
#include <charconv>

namespace signalbox::emulator {
namespace {

constexpr double kRequestSeconds[] = {0.3, 0.5, 0.8, 1,  1.5, 2,  2.5, 5,   10,  15,  20,
                                      30,  40,  50,  60, 120, 240, 480, 960, 1920, 7680};
constexpr double kFirstTokenSeconds[] = {0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1,
                                         0.25,  0.5,   0.75, 1,    2.5,  5,    7.5,  10,
                                         20,    40,    80,   160,  640,  2560};
constexpr double kTokenSeconds[] = {0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5,
                                    0.75, 1,     2.5,  5,     7.5, 10,   20,  40,  80};
// Up to the context as vLLM builds them for a long one.
constexpr double kTokens[] = {1,   2,    5,    10,   20,    50,    100,   200,
                              500, 1000, 2000, 5000, 10000, 20000, 50000, 100000};
constexpr double kIterationTokens[] = {1,   8,   16,   32,   64,   128,  256,
                                       512, 1024, 2048, 4096, 8192, 16384};
constexpr double kCopies[] = {1, 2, 5, 10, 20};
constexpr double kPreemptions[] = {1, 2, 3, 4, 5, 10, 20};

void append_number(std::string& out, double value) {
  char buffer[32];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, value).ptr;
  const std::string_view text(buffer, static_cast<std::size_t>(end - buffer));
  out += text;
  if (text.find_first_of(".en") == text.npos) out += ".0";
}

std::string escaped_label(std::string_view value) {
  std::string out;
  for (const char c : value) {
    if (c == '\n') {
      out += "\\n";
      continue;
    }
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out;
}

class VllmPage {
 public:
  explicit VllmPage(const MetricsView& view) : view_(view) {
    const std::string model = escaped_label(view.model);
    model_ = "model_name=\"" + model + "\"";
    out_.reserve(64 * 1024);
  }

  void family(std::string_view name, std::string_view help, std::string_view type) {
    out_.append("# HELP vllm:").append(name).append(" ").append(help);
    out_.append("\n# TYPE vllm:").append(name).append(" ").append(type).append("\n");
  }
  // One line a rank. before: labels between the rank's and the model's; after: those behind the
  // model's, in the order of the alphabet.
  template <typename Value>
  void lines(std::string_view name, const Value& value, std::string_view before = {},
             std::string_view after = {}) {
    for (std::size_t rank = 0; rank < view_.ranks.size(); ++rank) {
      line(name, static_cast<double>(value(view_.ranks[rank])), engine(rank) + std::string(before),
           after);
    }
  }
  void line(std::string_view name, double value, std::string_view before,
            std::string_view after = {}) {
    out_.append("vllm:").append(name).append("{").append(before).append(model_).append(after);
    out_ += "} ";
    append_number(out_, value);
    out_ += '\n';
  }
  static std::string engine(std::size_t rank) {
    return "engine=\"" + std::to_string(rank) + "\",";
  }
  template <typename Value>
  void gauge(std::string_view name, std::string_view help, const Value& value) {
    family(name, help, "gauge");
    lines(name, value);
  }
  void created(std::string_view name, std::string_view help) {
    const std::string full = std::string(name) + "_created";
    family(full, help, "gauge");
    lines(full, [&](const RankView&) { return view_.started_unix; });
  }
  template <typename Value>
  void counter(std::string_view name, std::string_view help, const Value& value) {
    const std::string full = std::string(name) + "_total";
    family(full, help, "counter");
    lines(full, value);
    created(name, help);
  }
  void histogram(std::string_view name, std::string_view help,
                 BucketHistogram RequestMetrics::*member) {
    family(name, help, "histogram");
    const std::string bucket = std::string(name) + "_bucket";
    for (std::size_t rank = 0; rank < view_.ranks.size(); ++rank) {
      const BucketHistogram& h = view_.ranks[rank].requests->*member;
      for (std::size_t i = 0; i <= h.bounds().size(); ++i) {
        std::string before = engine(rank) + "le=\"";
        if (i < h.bounds().size())
          append_number(before, h.bounds()[i]);
        else
          before += "+Inf";
        before += "\",";
        line(bucket, static_cast<double>(h.cumulative(i)), before);
      }
      line(std::string(name) + "_count", static_cast<double>(h.cumulative(h.bounds().size())),
           engine(rank));
      line(std::string(name) + "_sum", h.sum(), engine(rank));
    }
    created(name, help);
  }
  std::string& text() { return out_; }

 private:
  const MetricsView& view_;
  std::string model_;
  std::string out_;
};

std::int64_t none(const RankView&) { return 0; }

void vllm_gauges(VllmPage& page) {
  const auto waiting = [](const RankView& r) { return r.gauges.waiting; };
  page.gauge("num_requests_running", "Number of requests in model execution batches.",
             [](const RankView& r) { return r.gauges.running; });
  page.gauge("num_requests_waiting", "Number of requests waiting to be processed.", waiting);
  page.family("num_requests_waiting_by_reason", "Number of waiting requests by reason.", "gauge");
  page.lines("num_requests_waiting_by_reason", waiting, {}, ",reason=\"capacity\"");
  page.lines("num_requests_waiting_by_reason", none, {}, ",reason=\"deferred\"");
  page.family("engine_sleep_state",
              "Engine sleep state; awake = 0 means engine is sleeping; awake = 1 means engine is "
              "awake; weights_offloaded = 1 means sleep level 1; discard_all = 1 means sleep level "
              "2.",
              "gauge");
  page.lines("engine_sleep_state", [](const RankView&) { return 1; }, {},
             ",sleep_state=\"awake\"");
  page.lines("engine_sleep_state", none, {}, ",sleep_state=\"weights_offloaded\"");
  page.lines("engine_sleep_state", none, {}, ",sleep_state=\"discard_all\"");
  page.gauge("kv_cache_usage_perc", "KV-cache usage. 1 means 100 percent usage.",
             [](const RankView& r) { return r.gauges.kv_usage(); });
}

void vllm_counters(VllmPage& page) {
  const auto prompt = [](const RankView& r) { return r.counters.prompt_tokens; };
  const auto cached = [](const RankView& r) { return r.counters.cached_tokens; };
  page.counter("prefix_cache_queries",
               "Prefix cache queries, in terms of number of queried tokens.", prompt);
  page.counter("prefix_cache_hits", "Prefix cache hits, in terms of number of cached tokens.",
               cached);
  page.counter("external_prefix_cache_queries",
               "External prefix cache queries from KV connector cross-instance cache sharing, in "
               "terms of number of queried tokens.",
               none);
  page.counter("external_prefix_cache_hits",
               "External prefix cache hits from KV connector cross-instance cache sharing, in "
               "terms of number of cached tokens.",
               none);
  page.counter("num_preemptions", "Cumulative number of preemption from the engine.",
               [](const RankView& r) { return r.counters.preemptions; });
  page.counter("prompt_tokens", "Number of prefill tokens processed.", prompt);
  page.family("prompt_tokens_by_source_total", "Number of prompt tokens by source.", "counter");
  page.lines("prompt_tokens_by_source_total",
             [&](const RankView& r) { return prompt(r) - cached(r); }, {},
             ",source=\"local_compute\"");
  page.lines("prompt_tokens_by_source_total", cached, {}, ",source=\"local_cache_hit\"");
  page.lines("prompt_tokens_by_source_total", none, {}, ",source=\"external_kv_transfer\"");
  page.counter("prompt_tokens_cached", "Number of cached prompt tokens (local + external).",
               cached);
  page.counter("generation_tokens", "Number of generation tokens processed.",
               [](const RankView& r) { return r.counters.generated_tokens; });
  page.family("request_success_total", "Count of successfully processed requests.", "counter");
  const auto finished = [&](std::string_view reason, const auto& value) {
    page.lines("request_success_total", value,
               "finished_reason=\"" + std::string(reason) + "\",");
  };
  finished("stop", [](const RankView& r) { return r.requests->finished_stop; });
  finished("length", [](const RankView& r) { return r.requests->finished_length; });
  for (std::string_view reason : {"abort", "error", "repetition"}) finished(reason, none);
  page.family("admission_rejections_total",
              "Number of admission attempts rejected by a queue limit, by reason.", "counter");
  page.line("admission_rejections_total", 0, "", ",reason=\"max_num_queued_reqs\"");
  page.line("admission_rejections_total", 0, "", ",reason=\"max_num_queued_tokens\"");
}

void vllm_histograms(VllmPage& page) {
  using R = RequestMetrics;
  page.histogram("request_prompt_tokens", "Number of prefill tokens processed.", &R::prompt_tokens);
  page.histogram("request_generation_tokens", "Number of generation tokens processed.",
                 &R::generation_tokens);
  page.histogram("iteration_tokens_total", "Histogram of number of tokens per engine_step.",
                 &R::iteration_tokens);
  page.histogram("request_max_num_generation_tokens",
                 "Histogram of maximum number of requested generation tokens.",
                 &R::max_generation_tokens);
  page.histogram("request_params_n", "Histogram of the n request parameter.", &R::params_n);
  page.histogram("request_params_max_tokens", "Histogram of the max_tokens request parameter.",
                 &R::params_max_tokens);
  page.histogram("time_to_first_token_seconds", "Histogram of time to first token in seconds.",
                 &R::ttft);
  page.histogram("inter_token_latency_seconds", "Histogram of inter-token latency in seconds.",
                 &R::itl);
  page.histogram("request_time_per_output_token_seconds",
                 "Histogram of time_per_output_token_seconds per request.", &R::tpot);
  page.histogram("e2e_request_latency_seconds", "Histogram of e2e request latency in seconds.",
                 &R::e2e);
  page.histogram("request_queue_time_seconds",
                 "Histogram of time spent in WAITING phase for request.", &R::queue);
  page.histogram("request_inference_time_seconds",
                 "Histogram of time spent in RUNNING phase for request.", &R::inference);
  page.histogram("request_prefill_time_seconds",
                 "Histogram of time spent in PREFILL phase for request.", &R::prefill);
  page.histogram("request_decode_time_seconds",
                 "Histogram of time spent in DECODE phase for request.", &R::decode);
  page.histogram("request_num_preemptions",
                 "Histogram of the number of times a request was preempted.", &R::preemptions);
  page.histogram("request_prefill_kv_computed_tokens",
                 "Histogram of new KV tokens computed during prefill (excluding cached tokens).",
                 &R::prefill_computed);
}

void vllm_cache_config(VllmPage& page, const MetricsView& v) {
  page.family("cache_config_info", "Information of the LLMEngine CacheConfig", "gauge");
  const std::string block = std::to_string(v.block_tokens);
  for (std::size_t rank = 0; rank < v.ranks.size(); ++rank) {
    const std::int64_t count = v.ranks[rank].gauges.kv_blocks;
    const std::string blocks = std::to_string(count);
    const std::string tokens = std::to_string(count * v.block_tokens);
    page.text() +=
        "vllm:cache_config_info{_block_size_resolved=\"True\",block_size=\"" + block +
        "\",cache_dtype=\"auto\",effective_attention_block_size=\"" + block +
        "\",enable_prefix_caching=\"True\"," + VllmPage::engine(rank) +
        "gpu_memory_utilization=\"0.92\","
        "is_attention_free=\"False\",kv_cache_size_tokens=\"" + tokens +
        "\",num_cpu_blocks=\"None\",num_gpu_blocks=\"" + blocks +
        "\",num_gpu_blocks_override=\"None\",prefix_caching_hash_algo=\"sha256\","
        "sliding_window=\"None\",user_specified_block_size=\"False\"} 1.0\n";
  }
}

}  // namespace

void BucketHistogram::observe(double value) {
  std::size_t i = 0;
  while (i < bounds_.size() && value > bounds_[i]) ++i;
  ++counts_[i];
  sum_ += value;
}

std::int64_t BucketHistogram::cumulative(std::size_t i) const {
  std::int64_t total = 0;
  for (std::size_t k = 0; k <= i; ++k) total += counts_[k];
  return total;
}

RequestMetrics::RequestMetrics()
    : prompt_tokens(kTokens),
      generation_tokens(kTokens),
      iteration_tokens(kIterationTokens),
      max_generation_tokens(kTokens),
      params_n(kCopies),
      params_max_tokens(kTokens),
      ttft(kFirstTokenSeconds),
      itl(kTokenSeconds),
      tpot(kTokenSeconds),
      e2e(kRequestSeconds),
      queue(kRequestSeconds),
      inference(kRequestSeconds),
      prefill(kRequestSeconds),
      decode(kRequestSeconds),
      preemptions(kPreemptions),
      prefill_computed(kTokens) {}

std::string vllm_metrics(const MetricsView& view) {
  VllmPage page(view);
  page.text() +=
      "# HELP process_start_time_seconds Start time of the process since unix epoch in seconds.\n"
      "# TYPE process_start_time_seconds gauge\nprocess_start_time_seconds ";
  append_number(page.text(), view.started_unix);
  page.text() += '\n';
  vllm_gauges(page);
  vllm_counters(page);
  vllm_histograms(page);
  vllm_cache_config(page, view);
  return std::move(page.text());
}

std::string llamacpp_metrics(const MetricsView& view) {
  const RankView& v = view.ranks.front();
  std::string out;
  const auto line = [&](std::string_view type, std::string_view name, std::string_view help,
                        double value) {
    out.append("# HELP llamacpp:").append(name).append(" ").append(help);
    out.append("\n# TYPE llamacpp:").append(name).append(" ").append(type);
    out.append("\nllamacpp:").append(name).append(" ");
    char buffer[32];
    out.append(buffer, std::to_chars(buffer, buffer + sizeof buffer, value).ptr);
    out += '\n';
  };
  const RequestMetrics& r = *v.requests;
  const auto rate = [](std::int64_t tokens, double seconds) {
    return seconds > 0 ? static_cast<double>(tokens) / seconds : 0;
  };
  const auto steps = static_cast<double>(v.counters.steps);
  line("counter", "prompt_tokens_total",
       "Number of prompt tokens processed, excluding cached tokens",
       static_cast<double>(r.computed_prompt_tokens));
  line("counter", "prompt_tokens_cached_total", "Number of prompt tokens reused from the cache",
       static_cast<double>(r.cached_prompt_tokens));
  line("counter", "prompt_seconds_total", "Total time spent processing prompts", r.prompt_seconds);
  line("counter", "tokens_predicted_total", "Number of generation tokens processed",
       static_cast<double>(r.predicted_tokens));
  line("counter", "tokens_predicted_seconds_total", "Total time spent generating tokens",
       r.predicted_seconds);
  line("counter", "n_decode_total",
       "Total number of llama_decode() calls, excluding speculative decoding and multimodal "
       "decoding",
       steps);
  line("counter", "n_tokens_max", "Largest observed sequence length (prompt + generation)",
       static_cast<double>(r.longest));
  line("counter", "spec_decode_num_draft_tokens_total", "Speculative: Total draft tokens generated",
       0);
  line("counter", "spec_decode_num_accepted_tokens_total",
       "Speculative: Total draft tokens accepted by the target model", 0);
  line("counter", "spec_decode_num_drafts_total",
       "Speculative: Total speculative decoding verification steps", 0);
  line("gauge", "prompt_tokens_seconds", "Average prompt throughput in tokens/s",
       rate(r.computed_prompt_tokens, r.prompt_seconds));
  line("gauge", "predicted_tokens_seconds", "Average generation throughput in tokens/s",
       rate(r.predicted_tokens, r.predicted_seconds));
  line("gauge", "requests_processing", "Number of requests processing",
       static_cast<double>(v.gauges.running));
  line("gauge", "requests_deferred", "Number of requests deferred",
       static_cast<double>(v.gauges.waiting));
  line("gauge", "n_busy_slots_per_decode", "Average number of busy slots per llama_decode() call",
       steps > 0 ? (static_cast<double>(v.counters.generated_tokens)) / steps : 0);
  return out;
}

}  // namespace signalbox::emulator
