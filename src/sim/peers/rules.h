// SPDX-License-Identifier: Apache-2.0
// The rules, one file each; the head of the file names its source, its constants and every choice
// that the source leaves open.
#pragma once

#include <memory>

#include "sim/peers/rule.h"

namespace signalbox::peers {

std::unique_ptr<Rule> round_robin();
std::unique_ptr<Rule> random_choice();
std::unique_ptr<Rule> least_requests();
std::unique_ptr<Rule> power_of_two();
std::unique_ptr<Rule> prefix_hash();
std::unique_ptr<Rule> session_hash();
std::unique_ptr<Rule> smg_cache_aware();
std::unique_ptr<Rule> smg_least_load();
std::unique_ptr<Rule> llmd_blend();
std::unique_ptr<Rule> llmd_sticky();
// `temperature`: of the softmax over costs; 0: the least. `overlap`: credit of a cached block,
// 0..1. `prefill_scale`: weight of prefill against decode blocks.
std::unique_ptr<Rule> dynamo_kv(double temperature = 0, double overlap = 1,
                                double prefill_scale = 1);
// `ttft_wanted`: refuses what cannot have its first token by then; 0: never refuses.
std::unique_ptr<Rule> mooncake(Duration ttft_wanted = Duration::zero());
std::unique_ptr<Rule> lmetric();
std::unique_ptr<Rule> preble();
std::unique_ptr<Rule> vllm_dp();

}  // namespace signalbox::peers
