// SPDX-License-Identifier: Apache-2.0
// The list.
#include "sim/peers/registry.h"

#include <array>
#include <string>

#include "sim/peers/rules.h"

namespace signalbox::peers {
namespace {

constexpr std::array kPeers = {
    Peer{"round-robin", "lightseekorg/smg policies/round_robin.rs", round_robin},
    Peer{"random", "lightseekorg/smg policies/random.rs", random_choice},
    Peer{"least-requests", "nginx least_conn", least_requests},
    Peer{"power-of-two", "lightseekorg/smg policies/power_of_two.rs", power_of_two},
    Peer{"prefix-hash", "lightseekorg/smg policies/prefix_hash.rs", prefix_hash},
    Peer{"session-hash", "lightseekorg/smg policies/consistent_hashing.rs", session_hash},
    Peer{"smg-cache-aware", "lightseekorg/smg policies/cache_aware.rs", smg_cache_aware},
    Peer{"smg-least-load", "lightseekorg/smg policies/least_load.rs", smg_least_load},
    Peer{"llmd-blend", "llm-d blog 2026-08-17 and llm-d/llm-d-router scorers", llmd_blend},
    Peer{"llmd-sticky", "llm-d/llm-d-router filter/prefixcacheaffinity", llmd_sticky},
    Peer{"dynamo", "ai-dynamo/dynamo lib/kv-router/src/scheduling/selector/default.rs",
         +[] { return dynamo_kv(); }},
    Peer{"mooncake", "FAST'25, Qin et al., Algorithm 1", +[] { return mooncake(); }},
    Peer{"lmetric", "OSDI'26, arXiv 2603.15202; blitz-serving/blitz-router docs/dsl", lmetric},
    Peer{"preble", "ICLR'25, arXiv 2407.00023; WukLab/preble global_scheduler_with_time.py",
         preble},
    Peer{"vllm-dp", "vllm-project/vllm v1/engine/core_client.py DPLBAsyncMPClient", vllm_dp},
};

}  // namespace

std::span<const Peer> all() { return kPeers; }

Result<Peer> find(std::string_view name) {
  std::string names;
  for (const Peer& peer : kPeers) {
    if (peer.name == name) return peer;
    names += (names.empty() ? "" : ", ") + std::string(peer.name);
  }
  return invalid("No peer is called `" + std::string(name) + "`; there are " + names + ".");
}

}  // namespace signalbox::peers
