// SPDX-License-Identifier: Apache-2.0
// Makes evidence out of engine answers and histograms.
#include "core/perf/evidence.h"

#include <algorithm>

#include "base/time.h"

namespace signalbox::perf {
namespace {

bool follows(const model::SumCount& before, const model::SumCount& after) {
  return before.count >= 0 && after.count >= before.count && before.sum >= 0 &&
         after.sum >= before.sum;
}

double growth(std::int64_t before, std::int64_t after) {
  return before >= 0 && after >= before ? static_cast<double>(after - before) : 0;
}

}  // namespace

std::optional<PrefillEvidence> prefill_from(model::EndpointId endpoint,
                                            const model::EngineTimings& timings,
                                            const model::Usage& usage, const Company& company) {
  const double cached = static_cast<double>(std::max<std::int64_t>(0, usage.cached_tokens));
  double fresh = static_cast<double>(timings.prefill_tokens);
  if (fresh < 0 && usage.prompt_tokens >= 0 && usage.cached_tokens >= 0) {
    fresh = static_cast<double>(usage.prompt_tokens) - cached;
  }
  if (timings.prefill <= Duration::zero() || fresh <= 0) return std::nullopt;
  PrefillEvidence e;
  e.endpoint = endpoint;
  e.witness = Witness::Answer;
  e.seconds = to_seconds(timings.prefill);
  e.fresh = fresh;
  e.attention = fresh * (cached + fresh / 2);
  e.decoding = company.decoding_before;
  e.decoding_kv = company.decoding_kv_before;
  return e;
}

std::optional<DecodeEvidence> decode_from(model::EndpointId endpoint,
                                          const model::EngineTimings& timings,
                                          std::int64_t generated, const Company& company) {
  if (timings.decode <= Duration::zero() || generated < 2) return std::nullopt;
  DecodeEvidence e;
  e.endpoint = endpoint;
  e.witness = Witness::Answer;
  e.steps = static_cast<double>(generated - 1);
  e.seconds = to_seconds(timings.decode);
  e.batch = std::max(1.0, company.batch);
  e.kv = company.kv;
  e.others_fresh = company.others_fresh;
  e.others_attention = company.others_attention;
  return e;
}

PrefillEvidence prefill_when_idle(model::EndpointId endpoint, double seconds, double fresh,
                                  double cached) {
  PrefillEvidence e;
  e.endpoint = endpoint;
  e.witness = Witness::OwnClock;
  e.seconds = seconds;
  e.fresh = fresh;
  e.attention = fresh * (cached + fresh / 2);
  return e;
}

std::optional<HistogramWatch::Delta> HistogramWatch::observe(model::EndpointId endpoint,
                                                             const model::EngineState& state,
                                                             double decoding, double kv) {
  const bool comparable = has_last_ && last_.incarnation == state.incarnation &&
                          follows(last_.prefill_seconds, state.prefill_seconds) &&
                          follows(last_.prefill_tokens, state.prefill_tokens);
  const model::EngineState before = last_;
  last_ = state;
  has_last_ = true;
  if (!comparable) return std::nullopt;
  Delta delta;
  PrefillEvidence& e = delta.prefill;
  e.requests = static_cast<double>(state.prefill_seconds.count - before.prefill_seconds.count);
  e.seconds = state.prefill_seconds.sum - before.prefill_seconds.sum;
  e.fresh = state.prefill_tokens.sum - before.prefill_tokens.sum;
  if (e.requests < 1 || e.fresh <= 0 || e.seconds <= 0) return std::nullopt;
  e.endpoint = endpoint;
  e.witness = Witness::Histogram;
  const double cached = growth(before.cached_tokens_total, state.cached_tokens_total) / e.requests;
  // Exponential lengths: the mean square is twice the squared mean.
  e.attention = e.fresh * (cached + e.fresh / e.requests);
  e.decoding = decoding;
  e.decoding_kv = kv;
  if (follows(before.queue_seconds, state.queue_seconds)) {
    const auto n = state.queue_seconds.count - before.queue_seconds.count;
    const double waited = state.queue_seconds.sum - before.queue_seconds.sum;
    if (n > 0) delta.queue_seconds = waited / static_cast<double>(n);
  }
  return delta;
}

}  // namespace signalbox::perf
