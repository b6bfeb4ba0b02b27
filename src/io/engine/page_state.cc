// SPDX-License-Identifier: Apache-2.0
// Metric names are those of reference pages of vLLM 0.32, llama.cpp b11434, SGLang and TensorRT-LLM
// of 2026; older names stand beside the newer ones.
#include "io/engine/page_state.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

namespace signalbox::engine {
namespace {

// What a metric means to us, the same for all engines.
enum Field : std::uint8_t {
  Running, Waiting, Slots, KvUsage, Capacity, BlockTokens, Blocks, Context,
  PromptTokens, ComputedTokens, CachedTokens, CachedTokensOld, GeneratedTokens, Preemptions,
  PrefillSum, PrefillCount, PrefillTokensSum, PrefillTokensCount, QueueSum, QueueCount,
  TokenSum, TokenCount, StartTime, CreatedTime, Awake, CacheInfo, kFields
};

struct Metric {
  std::string_view name;
  Field field;
};

constexpr Metric kVllm[] = {
    {"vllm:num_requests_running", Running},
    {"vllm:num_requests_waiting", Waiting},
    {"vllm:kv_cache_usage_perc", KvUsage},
    {"vllm:cache_config_info", CacheInfo},
    {"vllm:engine_sleep_state", Awake},
    {"vllm:prompt_tokens_total", PromptTokens},
    {"vllm:prompt_tokens_cached_total", CachedTokens},
    {"vllm:prefix_cache_hits_total", CachedTokensOld},
    {"vllm:generation_tokens_total", GeneratedTokens},
    {"vllm:num_preemptions_total", Preemptions},
    {"vllm:num_preemptions_created", CreatedTime},
    {"vllm:request_prefill_time_seconds_sum", PrefillSum},
    {"vllm:request_prefill_time_seconds_count", PrefillCount},
    {"vllm:request_prefill_kv_computed_tokens_sum", PrefillTokensSum},
    {"vllm:request_prefill_kv_computed_tokens_count", PrefillTokensCount},
    {"vllm:request_queue_time_seconds_sum", QueueSum},
    {"vllm:request_queue_time_seconds_count", QueueCount},
    {"vllm:inter_token_latency_seconds_sum", TokenSum},
    {"vllm:inter_token_latency_seconds_count", TokenCount},
    {"process_start_time_seconds", StartTime},
};
constexpr Metric kSglang[] = {
    {"sglang:num_running_reqs", Running},
    {"sglang:num_queue_reqs", Waiting},
    {"sglang:token_usage", KvUsage},
    {"sglang:max_total_num_tokens", Capacity},
    {"sglang:max_running_requests", Slots},
    {"sglang:context_len", Context},
    {"sglang:cache_config_info", CacheInfo},
    {"sglang:prompt_tokens_total", PromptTokens},
    {"sglang:cached_tokens_total", CachedTokens},
    {"sglang:generation_tokens_total", GeneratedTokens},
    {"sglang:num_retracted_requests_total", Preemptions},
    {"sglang:queue_time_seconds_sum", QueueSum},
    {"sglang:queue_time_seconds_count", QueueCount},
    {"sglang:inter_token_latency_seconds_sum", TokenSum},
    {"sglang:inter_token_latency_seconds_count", TokenCount},
    {"process_start_time_seconds", StartTime},
};
constexpr Metric kLlamaCpp[] = {
    {"llamacpp:requests_processing", Running},
    {"llamacpp:requests_deferred", Waiting},
    {"llamacpp:prompt_tokens_total", ComputedTokens},
    {"llamacpp:prompt_tokens_cached_total", CachedTokens},
    {"llamacpp:tokens_predicted_total", GeneratedTokens},
    {"llamacpp:prompt_seconds_total", PrefillSum},
};
constexpr Metric kTrtLlm[] = {
    {"trtllm_num_requests_running", Running},
    {"trtllm_num_requests_waiting", Waiting},
    {"trtllm_kv_cache_utilization", KvUsage},
    {"trtllm_kv_cache_tokens_per_block", BlockTokens},
    {"trtllm_kv_cache_max_blocks", Blocks},
    {"trtllm_request_queue_time_seconds_sum", QueueSum},
    {"trtllm_request_queue_time_seconds_count", QueueCount},
    {"process_start_time_seconds", StartTime},
};

enum class Across : std::uint8_t { Sum, Mean, Max };

constexpr Across across(Field field) {
  switch (field) {
    case KvUsage: return Across::Mean;
    case Context: case BlockTokens: case StartTime: case CreatedTime: return Across::Max;
    default: return Across::Sum;
  }
}

// The series of one metric. Within one process they add up (labels such as cache_source split one
// figure); processes that repeat a rank's figure count by their largest; ranks fold as across()
// says.
class Series {
 public:
  void add(int rank, int twin, double value, Across how) {
    for (Entry& entry : entries_) {
      if (entry.rank == rank && entry.twin == twin) {
        entry.sum = how == Across::Max ? std::max(entry.sum, value) : entry.sum + value;
        return;
      }
    }
    if (entries_.size() < kSeriesMax) entries_.push_back({rank, twin, value});
  }

  // Negative: no series was seen.
  double fold(Across how) {
    if (entries_.empty()) return -1;
    std::sort(entries_.begin(), entries_.end(), [](const Entry& a, const Entry& b) {
      return a.rank != b.rank ? a.rank < b.rank : a.sum > b.sum;
    });
    double sum = 0;
    double most = 0;
    int ranks = 0;
    for (std::size_t i = 0; i < entries_.size(); ++i) {
      if (i > 0 && entries_[i].rank == entries_[i - 1].rank) continue;
      sum += entries_[i].sum;
      most = std::max(most, entries_[i].sum);
      ++ranks;
    }
    if (how == Across::Mean) return sum / ranks;
    return how == Across::Max ? most : sum;
  }

 private:
  static constexpr std::size_t kSeriesMax = 1024;
  struct Entry {
    int rank;
    int twin;
    double sum;
  };
  std::vector<Entry> entries_;
};

// A dialect: its metrics, and the labels that tell ranks and repeating processes apart.
struct Dialect {
  Dialect(const Metric* begin, const Metric* end, std::string_view rank_name)
      : metrics(begin, end), names(list(metrics)), rank_label(rank_name) {}

  static std::vector<std::string_view> list(const std::vector<Metric>& metrics) {
    std::vector<std::string_view> names;
    for (const Metric& metric : metrics) names.push_back(metric.name);
    return names;
  }

  std::vector<Metric> metrics;
  WantedNames names;
  std::string_view rank_label;
};

const Dialect* dialect_of(model::EngineKind kind) {
  static const Dialect vllm(std::begin(kVllm), std::end(kVllm), "engine");
  static const Dialect sglang(std::begin(kSglang), std::end(kSglang), "dp_rank");
  static const Dialect llamacpp(std::begin(kLlamaCpp), std::end(kLlamaCpp), "");
  static const Dialect trtllm(std::begin(kTrtLlm), std::end(kTrtLlm), "dp_rank");
  switch (kind) {
    case model::EngineKind::Vllm: return &vllm;
    case model::EngineKind::Sglang: return &sglang;
    case model::EngineKind::LlamaCpp: return &llamacpp;
    case model::EngineKind::TrtLlm: return &trtllm;
    case model::EngineKind::Auto: case model::EngineKind::OpenAi: break;
  }
  return nullptr;
}

int number_label(std::string_view labels, std::string_view name, int absent) {
  if (name.empty()) return absent;
  auto text = label(labels, name);
  if (!text) return absent;
  auto number = whole_number(*text);
  return number && *number >= 0 && *number < (1 << 20) ? static_cast<int>(*number) : absent;
}

// KV capacity in tokens from an info metric: vLLM block_size x num_gpu_blocks
// (kv_cache_size_tokens counts hybrid caches rightly where it is given), SGLang page_size x
// num_pages. Negative: not told.
double capacity_of(std::string_view labels) {
  auto number = [&](std::string_view name) -> double {
    auto text = label(labels, name);
    auto value = text ? whole_number(*text) : std::nullopt;
    return value && *value > 0 ? static_cast<double>(*value) : -1;
  };
  if (double tokens = number("kv_cache_size_tokens"); tokens > 0) return tokens;
  for (auto [size, count] : {std::pair{"block_size", "num_gpu_blocks"},
                             std::pair{"page_size", "num_pages"}}) {
    double tokens = number(size);
    double blocks = number(count);
    if (tokens > 0 && blocks > 0) return tokens * blocks;
  }
  return -1;
}

int to_int(double value) {
  if (value < 0) return -1;
  return value > 2e9 ? 2'000'000'000 : static_cast<int>(std::lround(value));
}

std::int64_t to_int64(double value) {
  if (value < 0) return -1;
  return value > 9e18 ? std::numeric_limits<std::int64_t>::max() : std::llround(value);
}

class Fields {
 public:
  void add(Field field, int rank, int twin, double value) {
    series_[field].add(rank, twin, value, across(field));
  }
  double operator[](Field field) { return series_[field].fold(across(field)); }

  // The first of two that was seen.
  double either(Field first, Field second) {
    double value = (*this)[first];
    return value >= 0 ? value : (*this)[second];
  }

 private:
  std::array<Series, kFields> series_;
};

void fill(model::EngineState& state, Fields& fields) {
  state.running = to_int(fields[Running]);
  state.waiting = to_int(fields[Waiting]);
  state.slots = to_int(fields[Slots]);
  state.kv_usage = std::min(fields[KvUsage], 1.0);
  state.kv_capacity_tokens = to_int64(fields[Capacity]);
  if (state.kv_capacity_tokens <= 0 && fields[BlockTokens] > 0 && fields[Blocks] > 0) {
    state.kv_capacity_tokens = to_int64(fields[BlockTokens] * fields[Blocks]);
  }
  if (state.kv_capacity_tokens == 0) state.kv_capacity_tokens = -1;
  state.context_tokens = to_int64(fields[Context]);
  state.cached_tokens_total = to_int64(fields.either(CachedTokens, CachedTokensOld));
  state.prompt_tokens_total = to_int64(fields[PromptTokens]);
  state.generated_tokens_total = to_int64(fields[GeneratedTokens]);
  state.preemptions_total = to_int64(fields[Preemptions]);
  state.prefill_seconds = {fields[PrefillSum], to_int64(fields[PrefillCount])};
  state.prefill_tokens = {fields[PrefillTokensSum], to_int64(fields[PrefillTokensCount])};
  state.queue_seconds = {fields[QueueSum], to_int64(fields[QueueCount])};
  state.token_seconds = {fields[TokenSum], to_int64(fields[TokenCount])};
  if (fields[ComputedTokens] >= 0) {
    // llama.cpp counts computed tokens apart from cached ones and has no count of requests.
    state.prompt_tokens_total =
        to_int64(fields[ComputedTokens] + std::max(fields[CachedTokens], 0.0));
    state.prefill_tokens.sum = fields[ComputedTokens];
  }
}

}  // namespace

PageState read_page(model::EngineKind kind, std::string_view page, int rank) {
  PageState out;
  const Dialect* dialect = dialect_of(kind);
  if (dialect == nullptr) return out;
  Fields fields;
  bool cache_seen = false;
  MetricsScanner scanner(page, dialect->names);
  Sample sample;
  while (scanner.next(sample)) {
    Field field = dialect->metrics[static_cast<std::size_t>(sample.name)].field;
    if (field != StartTime) ++out.samples;
    int own = number_label(sample.labels, dialect->rank_label, -1);
    if (rank >= 0 && own >= 0 && own != rank) continue;
    if (!std::isfinite(sample.value) || sample.value < 0) continue;
    double value = sample.value;
    if (field == Awake) {
      bool awake = label(sample.labels, "sleep_state") == std::string_view("awake");
      if (awake ? value == 0 : value > 0) out.state.asleep = true;
      continue;
    }
    if (field == CacheInfo) {
      value = capacity_of(sample.labels);
      if (value < 0) continue;
      field = Capacity;
      // A capacity gauge beside the info metric would count twice.
      if (fields[Capacity] >= 0 && !cache_seen) continue;
      cache_seen = true;
    } else if (field == Capacity && cache_seen) {
      continue;
    }
    int twin = number_label(sample.labels, "tp_rank", 0) * 4096 +
               number_label(sample.labels, "pp_rank", 0);
    fields.add(field, own, twin, value);
  }
  fill(out.state, fields);
  out.start_time = fields.either(StartTime, CreatedTime);
  return out;
}

model::EngineKind page_owner(std::string_view page) {
  for (auto kind : {model::EngineKind::Vllm, model::EngineKind::Sglang,
                    model::EngineKind::LlamaCpp, model::EngineKind::TrtLlm}) {
    if (read_page(kind, page, -1).samples > 0) return kind;
  }
  return model::EngineKind::Auto;
}

}  // namespace signalbox::engine
