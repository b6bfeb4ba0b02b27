// SPDX-License-Identifier: Apache-2.0
// What is believed about an engine's speed before it has been seen: a catalogue row, else a row of
// the same model carried over by the ratio of rooflines, else a roofline from model size and
// accelerator, else a wide guess. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/perf/coefficients.h"

namespace signalbox::perf {

// What is known of a pool. Empty strings and zeros mean unknown.
struct ProfileQuery {
  std::string_view model;        // catalogue name, or the name the engine serves it by
  double params_b = 0;           // overrides the catalogue; else read off the name (`0.5B`, `8x7B`)
  double active_params_b = 0;    // per token; 0: as the catalogue or all
  std::string_view accelerator;  // a catalogue name
  int tensor_parallel = 1;
  std::string_view precision;    // bf16, fp8, fp4, mxfp4, int4; empty: bf16, or the native one
  std::string_view engine;       // vllm, sglang, trtllm
};

enum class Origin { Row, Related, Roofline, Wide };

std::string_view name(Origin origin);

// Standard deviation of the logarithm of (true / believed) time, by factor: `fixed` is a,
// `prefill` is b and c, `decode` is d, e and f.
struct Uncertainty {
  double fixed = 0;
  double prefill = 0;
  double decode = 0;
};

struct Prior {
  Coefficients coefficients;
  Uncertainty sigma;
  // How far the coefficients of one factor may differ, as a share of the factor's own deviation.
  double split_share = 0.3;
  Origin origin = Origin::Wide;
  std::string source;  // a sentence for people
};

Prior make_prior(const ProfileQuery& query);

// Beside a pool of the same model whose speed is known, one whose speed is a wide guess counts as
// equally fast, and remains as uncertain: a slower guess might lose every request, and nothing
// would ever correct it. Any other prior comes back as it is.
Prior beside(Prior prior, const Prior& known);

// The names of number formats that a prior understands; any other counts as two bytes a weight.
std::vector<std::string_view> precisions();

// Parameters in billions as a model's name tells them: `Foo-30B-A3B` gives {30, 3},
// `Mixtral-8x7B` {56, 0}; zeros when it does not.
struct NamedSize {
  double params_b = 0;
  double active_params_b = 0;
};
NamedSize size_from_name(std::string_view name);

// The roofline itself, in seconds and tokens. With P parameters, A active ones, q bytes a weight,
// L layers, h hidden size, H = heads * head size, n accelerators of bandwidth W, F FLOPS at the
// precision, F16 at bf16 and a link of K bytes/s one way:
//
//   b  = 2·A/(n·F·0.65) + 1.5·(2·L·h·4·(n−1)/n)/K     GEMMs, and two all-reduces a layer
//   c  = 4·L·H/(n·F16·0.6)                            QKᵀ and PV of one token pair
//   d  = q·A/(n·W·0.9) + L·(50 us + 20 us if n > 1)   weights once, kernels and all-reduce latency
//   e2 = 2·A/(n·F·0.65);  e1 = e2, or for mixtures of experts q·(P−A)/(n·W·0.9)/B, B = 1.5·E/E_tok
//   f  = KV bytes a token/(n·W·0.9)
//   a  = max(0.9·d, q·P/(n·W·0.9) + L·50 us)          a pass reads all experts
//
// The constants are fits to the catalogue's operator rows: spread of log(roofline/row) is 0.34 (b),
// 0.14 (c), 0.13 (d), 0.21 (f) for dense models; 0.39, 0.25, 0.41, 0.20 for mixtures of experts.
struct Shape {
  double params_b = 0;
  double active_params_b = 0;
  double layers = 0;   // 0: from the size, as for a model 128 times as wide as deep
  double hidden = 0;
  double attention_width = 0;
  double kv_bytes_per_token = 0;
  double experts_ratio = 0;  // experts / experts per token; 0: dense
};
struct Machine {
  double bandwidth = 0;   // bytes/s of one accelerator
  double flops = 0;       // at the precision
  double flops_bf16 = 0;
  double link = 0;        // bytes/s to its peers
  double memory = 0;      // bytes
  int count = 1;
  double bytes_per_weight = 2;
};
Coefficients roofline(const Shape& shape, const Machine& machine);

}  // namespace signalbox::perf
