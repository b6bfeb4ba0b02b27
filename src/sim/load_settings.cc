// SPDX-License-Identifier: Apache-2.0
// Settings of a load that do not go together.
#include "sim/load_settings.h"

#include <initializer_list>
#include <utility>

namespace signalbox::sim {
namespace {

std::optional<std::string> fault_of(const Lengths& lengths, const std::string& name) {
  if (lengths.least > lengths.most) {
    return "`" + name + ".least` is more than `most`; exchange them.";
  }
  for (std::size_t i = 1; i < lengths.quantiles.size(); ++i) {
    const trace::Quantile& before = lengths.quantiles[i - 1];
    const trace::Quantile& here = lengths.quantiles[i];
    if (here.share > before.share && here.value >= before.value) continue;
    return "`" + name + ".quantiles[" + std::to_string(i) +
           "]` does not lie above the one before; write them in rising order.";
  }
  return std::nullopt;
}

std::optional<std::string> fault_of(const trace::RateCurve& curve) {
  for (std::size_t i = 1; i < curve.points.size(); ++i) {
    if (curve.points[i].at > curve.points[i - 1].at) continue;
    return "`arrivals.curve.points[" + std::to_string(i) +
           "]` is not later than the one before; write them in the order of time.";
  }
  const bool repeats = curve.period > Duration::zero() && !curve.points.empty();
  if (repeats && curve.period <= curve.points.back().at) {
    return "`arrivals.curve.period` ends before the last point; make it longer.";
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::string> fault_of(const Load& load) {
  for (const auto& [lengths, name] : {std::pair(&load.system, "system"),
                                      std::pair(&load.turn, "turn"),
                                      std::pair(&load.answer, "answer")}) {
    if (auto fault = fault_of(*lengths, name)) return fault;
  }
  if (auto fault = fault_of(load.arrivals.curve)) return fault;
  const Bursts& bursts = load.arrivals.bursts;
  if ((bursts.on > Duration::zero()) != (bursts.off > Duration::zero())) {
    return "`arrivals.bursts` has one of `on` and `off`; set both, or none.";
  }
  if (load.sessions_at_once > 0 && (!load.trace || load.trace->sessions.empty())) {
    return "`sessions_at_once` needs a trace of sessions; set `sessions_per_second` instead.";
  }
  if (load.lasts > Duration::zero() && load.warm_up >= load.lasts) {
    return "`warm_up` takes all of `lasts`, so that nothing is counted; make it shorter.";
  }
  if (!load.trace) return std::nullopt;
  const auto fault = trace::fault_of(*load.trace);
  return fault ? std::optional("the trace is broken: " + *fault + ".") : std::nullopt;
}

}  // namespace signalbox::sim
