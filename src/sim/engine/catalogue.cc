// SPDX-License-Identifier: Apache-2.0
// The compiled-in tables and the search by name.
#include "sim/engine/catalogue.h"

#include <algorithm>
#include <charconv>
#include <string>

namespace signalbox::truth {
namespace {

constexpr Profile kProfiles[] = {
#include "sim/engine/grid.inc"
};

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

bool same(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](char x, char y) { return lower(x) == lower(y); });
}

struct Wanted {
  std::string_view gpu;
  int tensor_parallel = 0;  // 0: any
  std::string_view precision;
};

Result<Wanted> parse(std::string_view text) {
  Wanted wanted;
  const auto slash = text.find('/');
  if (slash != text.npos) wanted.precision = text.substr(slash + 1);
  wanted.gpu = text.substr(0, slash);
  const auto x = wanted.gpu.rfind('x');
  if (x != wanted.gpu.npos && x + 1 < wanted.gpu.size()) {
    const auto digits = wanted.gpu.substr(x + 1);
    const auto [end, failure] = std::from_chars(digits.data(), digits.data() + digits.size(),
                                                wanted.tensor_parallel);
    if (failure == std::errc() && end == digits.data() + digits.size())
      wanted.gpu = wanted.gpu.substr(0, x);
    else
      wanted.tensor_parallel = 0;
  }
  if (wanted.gpu.empty())
    return invalid("The profile `" + std::string(text) +
                   "` names no GPU: write GPU[xTP][/PRECISION], such as h100x4/fp8.");
  return wanted;
}

bool matches(const Profile& p, const Wanted& wanted) {
  return same(p.gpu.substr(0, wanted.gpu.size()), wanted.gpu) &&
         (wanted.tensor_parallel == 0 || p.tensor_parallel == wanted.tensor_parallel) &&
         (wanted.precision.empty() || same(p.precision, wanted.precision));
}

std::string describe(const Profile& p) {
  return std::string(p.gpu) + "x" + std::to_string(p.tensor_parallel) + "/" +
         std::string(p.precision);
}

Error unknown(std::string_view model, std::string_view profile) {
  std::string models, profiles;
  for (const Profile& p : kProfiles) {
    if (same(p.model, model)) profiles += (profiles.empty() ? "" : ", ") + describe(p);
    if (models.find(p.model) == models.npos)
      models += (models.empty() ? "" : ", ") + std::string(p.model);
  }
  if (profiles.empty())
    return invalid("No step times are known for the model `" + std::string(model) +
                   "`. Known models: " + models + ".");
  return invalid("No step times are known for `" + std::string(model) + "` on `" +
                 std::string(profile) + "`. Known profiles: " + profiles + ".");
}

}  // namespace

std::span<const Profile> catalogue() { return kProfiles; }

Result<const Profile*> find_profile(std::string_view model, std::string_view profile) {
  TRY_ASSIGN(const Wanted wanted, parse(profile));
  const Profile* best = nullptr;
  for (const Profile& p : kProfiles) {
    if (!same(p.model, model) || !matches(p, wanted)) continue;
    if (best == nullptr || p.tensor_parallel < best->tensor_parallel) best = &p;
  }
  if (best == nullptr) return unknown(model, profile);
  return best;
}

}  // namespace signalbox::truth
