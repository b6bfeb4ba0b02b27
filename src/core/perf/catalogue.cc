// SPDX-License-Identifier: Apache-2.0
// Lookups in the built-in tables.
#include "core/perf/catalogue.h"

#include <algorithm>
#include <cstdint>
#include <numeric>

#include "base/check.h"

namespace signalbox::perf {
namespace {

#include "core/perf/catalogue_data.inc"

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

bool same(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](char x, char y) { return lower(x) == lower(y); });
}

bool starts_with(std::string_view text, std::string_view prefix) {
  return text.size() >= prefix.size() && same(text.substr(0, prefix.size()), prefix);
}

bool contains(std::string_view text, std::string_view part) {
  for (std::size_t i = 0; i + part.size() <= text.size(); ++i) {
    if (same(text.substr(i, part.size()), part)) return true;
  }
  return false;
}

// Levenshtein distance, letters compared without case.
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i + 1;
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t replace = diagonal + (lower(a[i]) == lower(b[j]) ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({row[j] + 1, row[j + 1] + 1, replace});
    }
  }
  return row.back();
}

// A name that contains the other (H100 in H100-SXM-80GB) is near whatever its length.
std::size_t strangeness(std::string_view wanted, std::string_view candidate) {
  const bool part = !wanted.empty() && contains(candidate, wanted);
  return part ? candidate.size() - wanted.size() : 1000 + distance(wanted, candidate);
}

template <typename Row>
std::vector<std::string_view> nearest(std::span<const Row> rows, std::string_view wanted,
                                      std::size_t count) {
  wanted = wanted.substr(0, 64);
  std::vector<std::pair<std::size_t, std::size_t>> ranked;  // strangeness, place in the table
  for (std::size_t i = 0; i < rows.size(); ++i) {
    ranked.emplace_back(strangeness(wanted, rows[i].name), i);
  }
  std::sort(ranked.begin(), ranked.end());
  ranked.resize(std::min(count, ranked.size()));
  std::vector<std::string_view> names;
  for (const auto& [rank, i] : ranked) names.push_back(rows[i].name);
  return names;
}

template <typename Row>
const Row* find_by_name(std::span<const Row> rows, std::string_view wanted) {
  const auto is_wanted = [&](const Row& row) { return same(row.name, wanted); };
  const auto at = std::find_if(rows.begin(), rows.end(), is_wanted);
  return at == rows.end() ? nullptr : &*at;
}

// Operator tables overstate Blackwell and Qwen3-235B (data/catalogue/README.md).
bool measured_first(const Profile& p) {
  const Accelerator* gpu = find_accelerator(p.accelerator);
  const bool blackwell = gpu != nullptr && starts_with(gpu->architecture, "Blackwell");
  return blackwell || p.model == "Qwen3-235B-A22B";
}

// Less is better.
double distrust(const Profile& p, std::string_view engine) {
  switch (p.method) {
    case Method::Ops: return measured_first(p) ? 20 : 0;
    case Method::Scaled: return 30;
    case Method::Measured: break;
  }
  const std::string_view wanted = engine.empty() ? "vllm" : engine;
  return 10 + (starts_with(p.engine, wanted) ? 0 : 1) + p.decode_error;
}

}  // namespace

std::string_view name(Method method) {
  switch (method) {
    case Method::Measured: return "measured";
    case Method::Ops: return "ops";
    case Method::Scaled: return "scaled";
  }
  CHECK(false);
}

Coefficients Profile::coefficients() const {
  Coefficients k;
  k.a = a;
  k.b = b;
  k.c = c;
  const bool piecewise = pw_d >= 0 && pw_break > 0;
  k.d = piecewise ? pw_d : d;
  k.e1 = piecewise ? pw_e1 : e;
  k.e2 = piecewise ? pw_e2 : e;
  k.f = piecewise ? pw_f : f;
  if (piecewise) k.batch_break = pw_break;
  // gpt-oss keeps KV of half its layers in a window, so twice the tokens fit.
  const double windowed = starts_with(model, "gpt-oss") ? 2 : 1;
  if (kv_tokens > 0) k.kv_capacity_tokens = static_cast<std::int64_t>(kv_tokens * windowed);
  return k;
}

std::span<const Accelerator> accelerators() { return kAccelerators; }
std::span<const ModelCard> models() { return kModels; }
std::span<const Profile> profiles() { return kProfiles; }

const Accelerator* find_accelerator(std::string_view name) {
  const Accelerator* found = find_by_name(accelerators(), name);
  if (found != nullptr || name.empty()) return found;
  for (const Accelerator& gpu : accelerators()) {
    if (!starts_with(gpu.name, name) || gpu.name[name.size()] != '-') continue;
    if (found == nullptr || contains(gpu.name, "-SXM-")) found = &gpu;
  }
  return found;
}
const ModelCard* find_model(std::string_view name) { return find_by_name(models(), name); }

const ModelCard* recognise_model(std::string_view served_name) {
  std::string_view rest = served_name;
  if (const auto slash = rest.rfind('/'); slash != rest.npos) rest.remove_prefix(slash + 1);
  if (starts_with(rest, "meta-")) rest.remove_prefix(5);
  for (std::string_view other : {"distill", "merge", "draft", "eagle"}) {
    if (contains(rest, other)) return nullptr;
  }
  for (const ModelCard& card : kModels) {
    if (!starts_with(rest, card.name)) continue;
    if (rest.size() == card.name.size()) return &card;
    const char next = rest[card.name.size()];
    if (next == '-' || next == '_' || next == ':') return &card;
  }
  return nullptr;
}

const Profile* find(std::string_view model, std::string_view accelerator, int tensor_parallel,
                    std::string_view precision, std::string_view engine) {
  const Profile* best = nullptr;
  for (const Profile& p : kProfiles) {
    if (p.tensor_parallel != tensor_parallel || !same(p.model, model) ||
        !same(p.accelerator, accelerator) || !same(p.precision, precision)) {
      continue;
    }
    if (best == nullptr || distrust(p, engine) < distrust(*best, engine)) best = &p;
  }
  return best;
}

std::vector<std::string_view> nearest_accelerators(std::string_view name, std::size_t count) {
  return nearest(accelerators(), name, count);
}
std::vector<std::string_view> nearest_models(std::string_view name, std::size_t count) {
  return nearest(models(), name, count);
}

}  // namespace signalbox::perf
