// SPDX-License-Identifier: Apache-2.0
// Finds the best belief about an engine's speed and says how far to trust it.
#include "core/perf/prior.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <utility>

#include "base/check.h"
#include "core/perf/catalogue.h"

namespace signalbox::perf {
namespace {

constexpr double kGemm = 0.65;       // share of peak FLOPS that GEMMs reach
constexpr double kAttention = 0.6;   // the same for attention
constexpr double kMemory = 0.9;      // share of peak bandwidth
constexpr double kLayer = 50e-6;     // s of kernel launches and small kernels a layer
constexpr double kSyncLayer = 20e-6; // s of all-reduce latency a layer
constexpr double kReduce = 1.5;      // all-reduce time over bytes / link speed
constexpr double kReserve = 2.5e9;   // bytes an engine keeps beside weights and KV
constexpr double kUsable = 0.9;      // share of memory an engine takes

// Rows time the GPU step alone, so even a perfect row is off by the host's share, which differs
// between engines and versions; most of all in the fixed part of a prefill.
constexpr double kHostFixed = 0.5;
constexpr double kHostPrefill = 0.15;
constexpr double kHostDecode = 0.10;

double together(double x, double y) { return std::sqrt(x * x + y * y); }

struct Format {
  std::string_view name;
  double bytes;  // of a weight; 4 bits have their scales
};
constexpr Format kFormats[] = {
    {"bf16", 2},     {"fp16", 2},     {"fp8", 1},     {"int8", 1},  {"q8_0", 1}, {"fp4", 0.56},
    {"mxfp4", 0.56}, {"nvfp4", 0.56}, {"int4", 0.56}, {"q4", 0.56}, {"fp32", 4}};

double bytes_per_weight(std::string_view precision) {
  for (const Format& format : kFormats) {
    if (format.name == precision) return format.bytes;
  }
  return 2;
}

double flops_at(const Accelerator& gpu, std::string_view precision) {
  if ((precision == "fp4" || precision == "nvfp4") && gpu.fp4_tflops > 0) return gpu.fp4_tflops;
  if ((precision == "fp8" || precision == "fp4") && gpu.fp8_tflops > 0) return gpu.fp8_tflops;
  return gpu.bf16_tflops;
}

Shape shape_of(const ModelCard& card) {
  Shape s;
  s.params_b = card.params_b;
  s.active_params_b = card.active_params_b;
  s.layers = card.layers;
  s.hidden = card.hidden;
  s.attention_width = card.heads * (card.head_dim > 0 ? card.head_dim : 128);
  s.kv_bytes_per_token =
      card.kv_bytes_per_token_long > 0 ? card.kv_bytes_per_token_long : card.kv_bytes_per_token;
  if (card.is_moe()) s.experts_ratio = card.experts / std::max(1.0, card.experts_per_token);
  return s;
}

Machine machine_of(const Accelerator& gpu, int count, std::string_view precision) {
  Machine m;
  m.bandwidth = gpu.bandwidth_tb_s * 1e12;
  m.flops = flops_at(gpu, precision) * 1e12;
  m.flops_bf16 = gpu.bf16_tflops * 1e12;
  m.link = gpu.link_gb_s * 1e9;
  m.memory = gpu.memory_gb * 1e9;
  m.count = std::max(1, count);
  m.bytes_per_weight = bytes_per_weight(precision);
  return m;
}

// Fills what is unknown about a model's shape from its size: 12·L·h² parameters with h = 128·L.
Shape completed(Shape s) {
  if (s.active_params_b <= 0) s.active_params_b = s.params_b;
  const double width_b = std::sqrt(s.params_b * s.active_params_b);
  if (s.layers <= 0) s.layers = std::max(4.0, std::cbrt(width_b * 1e9 / (12.0 * 128 * 128)));
  if (s.hidden <= 0) s.hidden = 128 * s.layers;
  if (s.attention_width <= 0) s.attention_width = s.hidden;
  if (s.kv_bytes_per_token <= 0) s.kv_bytes_per_token = 4096 * s.layers;  // 8 KV heads of 128
  if (s.experts_ratio <= 0 && s.active_params_b < 0.7 * s.params_b) s.experts_ratio = 16;
  return s;
}

double b_of(const Shape& s, const Machine& m) {
  const double n = m.count;
  const double reduce = m.link > 0 ? 2 * s.layers * s.hidden * 4 * (n - 1) / n / m.link : 0;
  return 2 * s.active_params_b * 1e9 / (n * m.flops * kGemm) + kReduce * reduce;
}

Uncertainty row_sigma(const Profile& p) {
  const double decode_fit = p.pw_error >= 0 ? p.pw_error : p.decode_error;
  const double seen = p.e2e_points > 0 && p.e2e_error >= 0 ? p.e2e_error : 0.10;
  Uncertainty u;
  switch (p.method) {
    case Method::Ops:
      u.prefill = together(kHostPrefill, p.prefill_error);
      u.decode = together(kHostDecode, together(std::max(0.0, decode_fit), seen));
      break;
    case Method::Measured:  // prefill is seen there only through its effect on decode
      u.prefill = 0.30;
      u.decode = together(kHostDecode, p.decode_error);
      break;
    case Method::Scaled:
      u.prefill = 0.35;
      u.decode = 0.30;
      break;
  }
  u.fixed = kHostFixed;
  return u;
}

std::string describe_row(const Profile& p) {
  std::string text(p.model);
  text.append(" on ").append(std::to_string(p.tensor_parallel)).append(" x ");
  text.append(p.accelerator).append(", ").append(p.precision).append(", ").append(name(p.method));
  return text.append(" (").append(p.engine).append(")");
}

// How unlike a row is to what was asked for; nothing when it is another model.
std::optional<double> unlikeness(const Profile& p, std::string_view model, const Accelerator& gpu,
                                 const ProfileQuery& query, std::string_view precision) {
  if (p.model != model) return std::nullopt;
  double total = p.method == Method::Scaled ? 3 : p.method == Method::Measured ? 0.5 : 0;
  total += std::abs(std::log2(static_cast<double>(p.tensor_parallel) /
                              std::max(1, query.tensor_parallel)));
  if (p.precision != precision) total += 1.5;
  if (p.accelerator != gpu.name) {
    const Accelerator* other = find_accelerator(p.accelerator);
    const bool kin = other != nullptr && other->architecture == gpu.architecture;
    total += kin ? 2 : 4;
  }
  return total;
}

double ratio(double wanted, double known) { return known > 0 && wanted > 0 ? wanted / known : 1; }

void carry_over(Coefficients& k, const Coefficients& wanted, const Coefficients& known) {
  k.a *= ratio(wanted.a, known.a);
  k.b *= ratio(wanted.b, known.b);
  k.c *= ratio(wanted.c, known.c);
  k.d *= ratio(wanted.d, known.d);
  k.e1 *= ratio(wanted.e1, known.e1);
  k.e2 *= ratio(wanted.e2, known.e2);
  k.f *= ratio(wanted.f, known.f);
  k.kv_capacity_tokens = wanted.kv_capacity_tokens;
}

// A row of the same model elsewhere, times the ratio of rooflines.
std::optional<Prior> related(const ModelCard& card, const Accelerator& gpu,
                             const ProfileQuery& query, std::string_view precision) {
  const Profile* best = nullptr;
  double best_unlikeness = 0;
  for (const Profile& p : profiles()) {
    const auto u = unlikeness(p, card.name, gpu, query, precision);
    if (u && (best == nullptr || *u < best_unlikeness)) best = &p, best_unlikeness = *u;
  }
  const Accelerator* known = best == nullptr ? nullptr : find_accelerator(best->accelerator);
  if (known == nullptr) return std::nullopt;
  const Shape shape = shape_of(card);
  Prior prior;
  prior.coefficients = best->coefficients();
  carry_over(prior.coefficients,
             roofline(shape, machine_of(gpu, query.tensor_parallel, precision)),
             roofline(shape, machine_of(*known, best->tensor_parallel, best->precision)));
  const Uncertainty row = row_sigma(*best);
  const double extra = 0.15 + 0.05 * best_unlikeness;
  prior.sigma = {together(row.fixed, extra), together(row.prefill, extra),
                 together(row.decode, extra)};
  prior.split_share = 0.5;
  prior.origin = Origin::Related;
  prior.source = "carried over from " + describe_row(*best) + " by the ratio of rooflines";
  return prior;
}

// `13B`, `0.5b`, `135M`, `8x7B` in billions; 0 when the word is no size.
double billions(std::string_view word) {
  if (word.size() < 2 || word.size() > 12) return 0;
  const bool millions = word.back() == 'M' || word.back() == 'm';
  if (!millions && word.back() != 'B' && word.back() != 'b') return 0;
  word.remove_suffix(1);
  double product = 1;
  double value = 0;
  double decimal = 0;  // what the next digit after the point is worth; 0: before the point
  for (char c : word) {
    if (c >= '0' && c <= '9') {
      value = decimal > 0 ? value + (c - '0') * decimal : value * 10 + (c - '0');
      decimal /= 10;
    } else if (c == '.' && decimal == 0) {
      decimal = 0.1;
    } else if (c == 'x' && value > 0) {
      product *= value;
      value = decimal = 0;
    } else {
      return 0;
    }
  }
  return product * value * (millions ? 1e-3 : 1);
}

Prior wide(const Shape& shape) {
  // The geometric middle between one large model on GPUs (0.1 ms a prompt token) and a small one
  // on a CPU (5 ms): factors of seven either way are within one standard deviation.
  Prior prior;
  Coefficients& k = prior.coefficients;
  k = {0.02, 5e-4, 5e-8, 0.02, 2e-3, 2e-3, 3e-7};
  prior.sigma = {1.5, 2.0, 2.0};
  prior.split_share = 1;
  prior.origin = Origin::Wide;
  prior.source = shape.params_b > 0 ? "a wide guess: the accelerator is unknown"
                                    : "a wide guess: model and accelerator are unknown";
  return prior;
}

struct Known {
  const ModelCard* card = nullptr;
  const Accelerator* gpu = nullptr;
  Shape shape;
  std::string_view precision;
};

Known resolve(const ProfileQuery& query) {
  Known k;
  k.card = find_model(query.model);
  if (k.card == nullptr) k.card = recognise_model(query.model);
  k.gpu = find_accelerator(query.accelerator);
  if (k.card != nullptr) k.shape = shape_of(*k.card);
  const NamedSize named = size_from_name(query.model);
  if (k.card == nullptr) k.shape.params_b = named.params_b;
  if (k.card == nullptr) k.shape.active_params_b = named.active_params_b;
  if (query.params_b > 0) k.shape.params_b = query.params_b;
  if (query.active_params_b > 0) k.shape.active_params_b = query.active_params_b;
  k.precision = query.precision;
  if (k.precision.empty()) k.precision = k.card != nullptr ? k.card->native_dtype : "bf16";
  return k;
}

Prior from_roofline(const Known& known, const ProfileQuery& query) {
  Prior prior;
  const Machine machine = machine_of(*known.gpu, query.tensor_parallel, known.precision);
  prior.coefficients = roofline(known.shape, machine);
  prior.sigma = {0.7, 0.5, 0.45};
  prior.split_share = 0.7;
  prior.origin = Origin::Roofline;
  prior.source = "a roofline of " + std::to_string(std::lround(known.shape.params_b * 10) / 10) +
                 "B parameters on " + std::to_string(machine.count) + " x " +
                 std::string(known.gpu->name);
  return prior;
}

}  // namespace

std::string_view name(Origin origin) {
  switch (origin) {
    case Origin::Row: return "row";
    case Origin::Related: return "related";
    case Origin::Roofline: return "roofline";
    case Origin::Wide: return "wide";
  }
  CHECK(false);
}

Coefficients roofline(const Shape& raw, const Machine& m) {
  const Shape s = completed(raw);
  const double n = m.count;
  const double bandwidth = n * m.bandwidth * kMemory;
  const double weights = s.params_b * 1e9 * m.bytes_per_weight;
  const double active = s.active_params_b * 1e9 * m.bytes_per_weight;
  Coefficients k;
  k.b = b_of(s, m);
  k.c = 4 * s.layers * s.attention_width / (n * m.flops_bf16 * kAttention);
  k.d = active / bandwidth + s.layers * (kLayer + (n > 1 ? kSyncLayer : 0));
  k.e1 = k.e2 = 2 * s.active_params_b * 1e9 / (n * m.flops * kGemm);
  if (s.experts_ratio > 0) {
    k.batch_break = 1.5 * s.experts_ratio;
    k.e1 = std::max(k.e2, (weights - active) / bandwidth / k.batch_break);
  }
  k.f = s.kv_bytes_per_token / bandwidth;
  k.a = std::max(0.9 * k.d, weights / bandwidth + s.layers * kLayer);
  const double room = n * (m.memory * kUsable - kReserve) - weights;
  if (room > 0) k.kv_capacity_tokens = static_cast<std::int64_t>(room / s.kv_bytes_per_token);
  return k;
}

NamedSize size_from_name(std::string_view name) {
  NamedSize size;
  if (const auto slash = name.rfind('/'); slash != name.npos) name.remove_prefix(slash + 1);
  while (!name.empty()) {
    const std::size_t end = std::min(name.find_first_of("-_:"), name.size());
    std::string_view word = name.substr(0, end);
    name.remove_prefix(std::min(end + 1, name.size()));
    const bool active = word.starts_with('A') || word.starts_with('a');
    if (active) word.remove_prefix(1);
    double& slot = active ? size.active_params_b : size.params_b;
    if (slot == 0) slot = billions(word);
  }
  if (size.params_b == 0) size.active_params_b = 0;
  return size;
}

std::vector<std::string_view> precisions() {
  std::vector<std::string_view> names;
  for (const Format& format : kFormats) names.push_back(format.name);
  return names;
}

Prior make_prior(const ProfileQuery& query) {
  const Known known = resolve(query);
  const bool own_size = query.params_b > 0 && known.card != nullptr &&
                        std::abs(std::log(query.params_b / known.card->params_b)) > 0.1;
  if (known.card != nullptr && known.gpu != nullptr && !own_size) {
    const Profile* row = find(known.card->name, known.gpu->name, std::max(1, query.tensor_parallel),
                              known.precision, query.engine);
    if (row != nullptr) {
      return {row->coefficients(), row_sigma(*row), 0.5, Origin::Row, describe_row(*row)};
    }
    if (auto prior = related(*known.card, *known.gpu, query, known.precision)) return *prior;
  }
  if (known.gpu != nullptr && known.shape.params_b > 0) return from_roofline(known, query);
  return wide(known.shape);
}

Prior beside(Prior prior, const Prior& known) {
  if (prior.origin != Origin::Wide || known.origin == Origin::Wide) return prior;
  const Coefficients own = std::exchange(prior.coefficients, known.coefficients);
  prior.coefficients.chunk_tokens = own.chunk_tokens;
  prior.coefficients.sequences_max = own.sequences_max;
  prior.coefficients.kv_capacity_tokens = own.kv_capacity_tokens;
  prior.source += ", so it counts as fast as another pool of the model: " + known.source;
  return prior;
}

}  // namespace signalbox::perf
