// SPDX-License-Identifier: Apache-2.0
// The built-in tables: engine profiles (model x accelerator x tensor parallelism x precision),
// accelerators and models. Constant data, compiled in from data/catalogue (origins there). Pure.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "core/perf/coefficients.h"

namespace signalbox::perf {

// Where a profile's timings come from; data/catalogue/README.md says how good each is.
enum class Method { Measured, Ops, Scaled };

std::string_view name(Method method);

// Numbers below zero mean that the table does not say.
struct Accelerator {
  std::string_view name;  // such as H100-SXM-80GB
  std::string_view vendor;
  std::string_view architecture;
  double memory_gb = 0;
  double bandwidth_tb_s = 0;
  double bf16_tflops = 0;  // dense, without sparsity
  double fp8_tflops = 0;   // 0: no such units
  double fp4_tflops = 0;
  double link_gb_s = 0;    // to its peers, one direction
  int link_domain = 0;     // accelerators that reach each other at that speed
  double usd_per_hour = 0; // on demand, median of listings
  bool price_is_estimate = false;
};

struct ModelCard {
  std::string_view name;  // such as Llama-3.1-70B
  std::string_view architecture;
  double params_b = 0;
  double active_params_b = 0;  // per token
  std::string_view native_dtype;
  double layers = 0;
  double hidden = 0;
  double heads = 0;
  double head_dim = 0;
  double experts = 0;
  double experts_per_token = 0;
  double context_tokens = 0;
  double kv_bytes_per_token = 0;       // bf16
  double kv_bytes_per_token_long = 0;  // at long context
  std::string_view licence;

  bool is_moe() const { return experts > 0; }
};

// One row. Times in seconds; relative errors as fractions.
struct Profile {
  std::string_view model;
  std::string_view accelerator;
  int tensor_parallel = 1;
  std::string_view precision;
  Method method = Method::Ops;
  std::string_view engine;
  double a = 0, b = 0, c = 0;                       // prefill
  double d = 0, e = 0, f = 0;                       // decode, linear form
  double pw_d = -1, pw_e1 = -1, pw_e2 = -1, pw_f = -1;  // decode, piecewise form
  double pw_break = -1;                             // its batch break
  double prefill_error = -1, decode_error = -1, pw_error = -1;  // of the fits
  double weight_gb = -1;                            // per accelerator
  double kv_tokens = -1;                            // that fit beside the weights
  double e2e_points = -1, e2e_ratio = -1, e2e_error = -1;  // against measured serving

  // The piecewise decode form where the row has one, else the linear. KV capacity included.
  Coefficients coefficients() const;
};

std::span<const Accelerator> accelerators();
std::span<const ModelCard> models();
std::span<const Profile> profiles();

// Null when the name is unknown. Upper and lower case are the same. The first words of an
// accelerator's name are enough (`H100`); of several forms the one for a socket (SXM) is meant.
const Accelerator* find_accelerator(std::string_view name);
const ModelCard* find_model(std::string_view name);

// The catalogue model that an engine means by a name like `meta-llama/Llama-3.1-70B-Instruct` or
// `Qwen3-32B-FP8`; null when none fits (distilled and merged models are other models).
const ModelCard* recognise_model(std::string_view served_name);

// The most trustworthy row for this key, or null. On Blackwell accelerators and for mixtures of
// experts that the operator tables miss, measured rows come first; else operator rows, which know
// f and the piecewise form, then measured, then scaled. Among measured rows one of `engine`
// (vllm, sglang, trtllm; empty: vllm) wins, then the smaller error.
const Profile* find(std::string_view model, std::string_view accelerator, int tensor_parallel,
                    std::string_view precision, std::string_view engine = {});

// Up to `count` names nearest to a mistyped one, nearest first; for error messages.
std::vector<std::string_view> nearest_accelerators(std::string_view name, std::size_t count = 3);
std::vector<std::string_view> nearest_models(std::string_view name, std::size_t count = 3);

}  // namespace signalbox::perf
