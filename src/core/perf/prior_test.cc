// SPDX-License-Identifier: Apache-2.0
// Goal: every pool gets a belief, the best one there is, with honest uncertainty.
// Method: each origin by an example; rooflines against all operator rows of the catalogue.
#include "core/perf/prior.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/perf/catalogue.h"

namespace signalbox::perf {
namespace {

ProfileQuery query(std::string_view model, std::string_view gpu, int tp,
                   std::string_view precision) {
  ProfileQuery q;
  q.model = model;
  q.accelerator = gpu;
  q.tensor_parallel = tp;
  q.precision = precision;
  return q;
}

TEST(Prior, TakesTheCatalogueRow) {
  const Prior p = make_prior(query("meta-llama/Llama-3.1-70B-Instruct", "h100-sxm-80gb", 4, "fp8"));
  EXPECT_EQ(p.origin, Origin::Row);
  EXPECT_DOUBLE_EQ(p.coefficients.b, find("Llama-3.1-70B", "H100-SXM-80GB", 4, "fp8")->b);
  EXPECT_LT(p.sigma.decode, 0.25);
  EXPECT_NE(p.source.find("Llama-3.1-70B on 4 x H100-SXM-80GB, fp8, ops"), std::string::npos);
}

TEST(Prior, CarriesARowOverByTheRatioOfRooflines) {
  const Prior p = make_prior(query("Llama-3.1-70B", "H100-PCIe-80GB", 4, "fp8"));
  EXPECT_EQ(p.origin, Origin::Related);
  const Profile* sxm = find("Llama-3.1-70B", "H100-SXM-80GB", 4, "fp8");
  EXPECT_GT(p.coefficients.d, sxm->d * 1.05);
  EXPECT_LT(p.coefficients.d, sxm->d * 2);
  EXPECT_GT(p.coefficients.b, sxm->b);
  const Prior row = make_prior(query("Llama-3.1-70B", "H100-SXM-80GB", 4, "fp8"));
  EXPECT_GT(p.sigma.decode, row.sigma.decode);
}

TEST(Prior, TakesARooflineForUnknownModels) {
  const Prior p = make_prior(query("acme/Anvil-13B-chat", "A100-SXM-80GB", 1, "bf16"));
  EXPECT_EQ(p.origin, Origin::Roofline);
  EXPECT_NEAR(p.coefficients.d, 26e9 / (2.039e12 * 0.9), 0.004);
  EXPECT_GT(p.coefficients.kv_capacity_tokens, 20'000);
  EXPECT_EQ(p.coefficients.e1, p.coefficients.e2);
}

TEST(Prior, IsWideWhenNothingIsKnown) {
  const Prior p = make_prior({});
  EXPECT_EQ(p.origin, Origin::Wide);
  EXPECT_GE(p.sigma.prefill, 1.5);
  EXPECT_GT(p.coefficients.b, 0);
  EXPECT_EQ(p.coefficients.kv_capacity_tokens, 0);
  EXPECT_EQ(make_prior(query("Llama-3.1-70B", "Abacus", 1, "bf16")).origin, Origin::Wide);
}

TEST(Prior, SizeGivenOverridesTheName) {
  ProfileQuery q = query("Llama-3.1-70B", "H100-SXM-80GB", 4, "fp8");
  q.params_b = 35;
  EXPECT_EQ(make_prior(q).origin, Origin::Roofline);
  q.params_b = 70;
  EXPECT_EQ(make_prior(q).origin, Origin::Row);
}

TEST(Prior, AGuessBesideAKnownPoolIsAsFastAndAsUncertainAsAGuess) {
  const Prior known = make_prior(query("Llama-3.1-70B", "H100-SXM", 4, "fp8"));
  const Prior guess = make_prior(query("Llama-3.1-70B", "", 1, ""));
  ASSERT_NE(known.origin, Origin::Wide);
  ASSERT_EQ(guess.origin, Origin::Wide);
  const Prior p = beside(guess, known);
  EXPECT_EQ(p.coefficients.b, known.coefficients.b);
  EXPECT_EQ(p.coefficients.d, known.coefficients.d);
  EXPECT_EQ(p.coefficients.kv_capacity_tokens, 0) << "memory is no matter of speed";
  EXPECT_EQ(p.sigma.prefill, guess.sigma.prefill);
  EXPECT_EQ(p.origin, Origin::Wide);
  EXPECT_EQ(beside(known, known).source, known.source);
  EXPECT_EQ(beside(guess, guess).source, guess.source);
}

TEST(Prior, ReadsSizesOffNames) {
  const auto expect = [](const char* name, double all, double active) {
    EXPECT_NEAR(size_from_name(name).params_b, all, 1e-9) << name;
    EXPECT_NEAR(size_from_name(name).active_params_b, active, 1e-9) << name;
  };
  expect("Qwen2.5-0.5B-Instruct", 0.5, 0);
  expect("SmolLM2-135M", 0.135, 0);
  expect("Qwen3-30B-A3B", 30, 3);
  expect("Mixtral-8x7B-v0.1", 56, 0);
  expect("org-9B/plain", 0, 0);
  expect("gpt-4o", 0, 0);
  expect("b", 0, 0);
  expect("99999999999999999999B", 0, 0);
}

// Median and 90th percentile of |log(roofline / row)| over operator rows.
std::pair<double, double> spread(bool moe, double Coefficients::* coefficient) {
  std::vector<double> errors;
  for (const Profile& p : profiles()) {
    const ModelCard* card = find_model(p.model);
    const Accelerator* gpu = find_accelerator(p.accelerator);
    if (p.method != Method::Ops || card->is_moe() != moe) continue;
    ProfileQuery q = query(p.model, p.accelerator, p.tensor_parallel, p.precision);
    q.params_b = card->params_b * 1.2;  // another size: no row, so a roofline
    q.active_params_b = card->active_params_b * 1.2;
    const Prior prior = make_prior(q);
    EXPECT_EQ(prior.origin, Origin::Roofline) << gpu->name;
    const double known = p.coefficients().*coefficient;
    if (known > 0) errors.push_back(std::abs(std::log(prior.coefficients.*coefficient / known)));
  }
  std::sort(errors.begin(), errors.end());
  return {errors[errors.size() / 2], errors[errors.size() * 9 / 10]};
}

TEST(Prior, RooflinesAreNearTheOperatorRows) {
  // 20 % more parameters shift b and d by up to 0.18; c and f do not depend on them.
  EXPECT_LT(spread(false, &Coefficients::b).second, 0.75);
  EXPECT_LT(spread(false, &Coefficients::c).second, 0.30);
  EXPECT_LT(spread(false, &Coefficients::d).second, 0.40);
  EXPECT_LT(spread(false, &Coefficients::f).second, 0.40);
  EXPECT_LT(spread(true, &Coefficients::b).first, 0.5);
  EXPECT_LT(spread(true, &Coefficients::d).first, 0.5);
}

TEST(Prior, EveryRowOfTheCatalogueGivesASanePrior) {
  for (const Profile& p : profiles()) {
    const Prior prior = make_prior(query(p.model, p.accelerator, p.tensor_parallel, p.precision));
    EXPECT_EQ(prior.origin, Origin::Row);
    for (double sigma : {prior.sigma.fixed, prior.sigma.prefill, prior.sigma.decode}) {
      EXPECT_GT(sigma, 0.05);
      EXPECT_LT(sigma, 1);
    }
  }
}

}  // namespace
}  // namespace signalbox::perf
