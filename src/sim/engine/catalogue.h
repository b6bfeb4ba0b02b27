// SPDX-License-Identifier: Apache-2.0
// The engines whose step times are known by measurement (data/truth), and how to name one.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "base/result.h"
#include "sim/engine/step_table.h"

namespace signalbox::truth {

struct Profile {
  std::string_view model;
  std::string_view gpu;
  int tensor_parallel;
  std::string_view precision;
  std::int64_t kv_tokens;           // what the KV cache of the instance holds
  std::int64_t kv_bytes_per_token;  // of the whole model
  std::int64_t context_tokens;      // the model's own limit of prompt + answer
  StepTable::Prefill prefill;
  StepTable::Decode decode;
};

// In the order of data/truth/profiles.csv.
std::span<const Profile> catalogue();

// `model` as in the catalogue, letter case ignored. `profile` is `GPU[xTP][/PRECISION]`: the
// beginning of a GPU's name, the tensor parallelism (else the least there is) and the precision
// (else the first there is), as in `h100x4/fp8`. The error names what there is.
Result<const Profile*> find_profile(std::string_view model, std::string_view profile);

}  // namespace signalbox::truth
