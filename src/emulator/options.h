// SPDX-License-Identifier: Apache-2.0
// What one emulator process is told when it starts. Plain values.
#pragma once

#include <cstdint>
#include <string>

#include "base/describe.h"

namespace signalbox::emulator {

enum class Dialect : std::uint8_t { Vllm, LlamaCpp };

struct EmulatorOptions {
  std::string model = "Llama-3.1-8B";   // of the truth model's catalogue
  std::string profile = "h100";         // GPU[xTP][/PRECISION]; see truth::find_profile
  Dialect dialect = Dialect::Vllm;
  std::string listen = "127.0.0.1:8000";  // of the first engine; the others take the next ports
  std::string admin;                    // an extra address for /emulator/ alone; empty: none
  int count = 1;                        // engines in this process; with port 0 each picks its own
  double speed = 1;                     // the engine runs this many times faster than its profile
  std::uint64_t seed = 1;               // engine i draws its hidden factors from seed + i
  std::uint64_t text_seed = 1;          // engines with the same one give the same answers
  std::string served_model;             // name on the wire; empty: `model`
  std::int64_t context_tokens = 0;      // prompt + answer; 0: the model's own limit
  int slots = 0;                        // sequences that run at once; 0: 256, llamacpp 4
  std::int64_t kv_tokens = 0;           // KV capacity; 0: the profile's, llamacpp slots × context
  std::int64_t block_tokens = 16;       // of a KV block; a multiple of 16
  std::int64_t step_tokens_max = 8192;  // token budget of a step; llamacpp's n_batch is 2048
  double distortion = 0.3;              // hidden factors are drawn from 1 ± this
  double noise = 0.03;                  // relative deviation of a step
  int ranks = 1;                        // data-parallel, behind one barrier; vLLM
  double gather_ms = 0;                 // an engine at rest waits so long for more before a pass
  std::string steps;                    // step times by formula instead of the profile's tables
  double fixed_ttft_ms = 0;             // > 0: every step with prefill takes this, tables aside
  double fixed_itl_ms = 0;              // > 0: every other step takes this
  std::int64_t answer_tokens_mean = 128;  // mean length of an answer that nothing cuts short
  bool prompt_tokens_details = true;    // vLLM: usage tells cached tokens
  bool request_metrics = false;         // vLLM: answers carry `metrics`
  double idle_close_s = 5;              // an idle connection is closed after this; 0: never
  Bytes body_bytes_max{64 << 20};       // of a request
  Bytes backlog_bytes_max{64 << 20};    // unsent answer of one connection; beyond it is closed
  int records_max = 4096;               // requests remembered for /emulator/records
};

template <typename Visitor>
void describe(Visitor& v, EmulatorOptions& c) {
  v(c.model, "model", "Model of the truth catalogue.");
  v(c.profile, "profile", "GPU[xTP][/PRECISION], as in h100x4/fp8.");
  v(c.listen, "listen", "Address of the first engine.");
  v(c.admin, "admin", "Extra address that serves /emulator/ alone.");
  v(c.count, "count", "Engines in this process, on consecutive ports.", Range{1, 10000});
  v(c.speed, "speed", "How many times faster than the profile.", Range{0.001, 1e6});
  v(c.seed, "seed", "Seed of the hidden factors; engine i takes seed + i.");
  v(c.text_seed, "text_seed", "Seed of the answers.");
  v(c.served_model, "served_model", "Model name on the wire.");
  v(c.context_tokens, "context_tokens", "Prompt and answer together; 0: the model's own.",
    Range{0, 1e8});
  v(c.slots, "slots", "Sequences that run at once; 0: the dialect's default.", Range{0, 65536});
  v(c.kv_tokens, "kv_tokens", "KV capacity in tokens; 0: the profile's.", Range{0, 1e9});
  v(c.block_tokens, "block_tokens", "Tokens of a KV block, a multiple of 16.", Range{16, 4096});
  v(c.step_tokens_max, "step_tokens_max", "Token budget of a step.", Range{1, 1e6});
  v(c.distortion, "distortion", "Hidden factors are drawn from 1 ± this.", Range{0, 0.9});
  v(c.noise, "noise", "Relative deviation of the time of a step.", Range{0, 1});
  v(c.ranks, "ranks",
    "Data-parallel ranks whose passes begin together and last as long as the fullest; "
    "X-data-parallel-rank picks one.",
    Range{1, 64});
  v(c.gather_ms, "gather_ms", "How long an engine at rest waits for more before it begins a pass.",
    Range{0, 1000});
  v(c.steps, "steps",
    "Milliseconds instead of the profile's: A,B,C,D,E,F of A + B·new + C·new·(prefix + new/2) for "
    "prefill and D + E·batch + F·kv for decode.");
  v(c.fixed_ttft_ms, "fixed_ttft_ms", "Time of every step with prefill; 0: by table.",
    Range{0, 1e6});
  v(c.fixed_itl_ms, "fixed_itl_ms", "Time of every other step; 0: by table.", Range{0, 1e6});
  v(c.answer_tokens_mean, "answer_tokens_mean", "Mean length of an uncut answer.", Range{1, 1e6});
  v(c.prompt_tokens_details, "prompt_tokens_details", "Whether usage tells cached tokens.");
  v(c.request_metrics, "request_metrics", "Whether vLLM answers carry their own timings.");
  v(c.idle_close_s, "idle_close_s", "An idle connection is closed after this; 0: never.",
    Range{0, 86400});
  v(c.body_bytes_max, "body_bytes_max", "Bytes of a request body.", Range{1024, 4e9});
  v(c.backlog_bytes_max, "backlog_bytes_max", "Unsent bytes of one connection.", Range{1024, 4e9});
  v(c.records_max, "records_max", "Requests remembered for /emulator/records.", Range{0, 1e6});
}

}  // namespace signalbox::emulator
