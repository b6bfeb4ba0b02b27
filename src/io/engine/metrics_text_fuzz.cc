// SPDX-License-Identifier: Apache-2.0
// Any bytes as a metrics page: the scanner ends, stays inside the page, and gives sane views.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "io/engine/page_state.h"

using namespace signalbox;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string_view page(reinterpret_cast<const char*>(data), size);
  static const engine::WantedNames wanted({"vllm:num_requests_running", "vllm:cache_config_info",
                                           "process_start_time_seconds"});
  engine::MetricsScanner scanner(page, wanted);
  engine::Sample sample;
  while (scanner.next(sample)) {
    if (sample.name < 0 || sample.name > 2) std::abort();
    if (!sample.labels.empty() &&
        (sample.labels.data() < page.data() ||
         sample.labels.data() + sample.labels.size() > page.data() + page.size())) {
      std::abort();
    }
    (void)engine::label(sample.labels, "block_size");
  }
  for (auto kind : {model::EngineKind::Vllm, model::EngineKind::Sglang,
                    model::EngineKind::LlamaCpp, model::EngineKind::TrtLlm}) {
    engine::PageState got = engine::read_page(kind, page, -1);
    if (got.state.running < -1 || got.state.kv_usage > 1.0) std::abort();
    (void)engine::read_page(kind, page, 1);
  }
  return 0;
}
