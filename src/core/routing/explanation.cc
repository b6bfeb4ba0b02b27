// SPDX-License-Identifier: Apache-2.0
// Explanations and the search for the smallest flip.
#include "core/routing/explanation.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace signalbox::routing {
namespace {

constexpr float kSecondsMax = 1e6f;
constexpr float kRequestsMax = 1e6f;

// One candidate input to change: towards `limit`, in whole steps or in seconds.
struct Direction {
  bool of_chosen;
  Field field;
  float from;
  float limit;
  float scale;  // what a change is measured against
  bool whole;
};

class Flipper {
 public:
  Flipper(const Ask& ask, const Inputs& chosen, const Inputs& runner_up)
      : ask_(ask), chosen_(chosen), runner_up_(runner_up), chosen_terms_(score(ask, chosen)),
        runner_up_terms_(score(ask, runner_up)) {}

  std::optional<Flip> smallest() const;

 private:
  bool flips(const Direction& d, float value) const;
  std::optional<float> nearest(const Direction& d) const;

  const Ask& ask_;
  const Inputs& chosen_;
  const Inputs& runner_up_;
  Terms chosen_terms_;
  Terms runner_up_terms_;
};

bool Flipper::flips(const Direction& d, float value) const {
  const Terms changed = score(ask_, with(d.of_chosen ? chosen_ : runner_up_, d.field, value));
  const Terms& chosen = d.of_chosen ? changed : chosen_terms_;
  const Terms& other = d.of_chosen ? runner_up_terms_ : changed;
  return ranks_before(other, chosen) && !nearly_tied(other, chosen, ask_.tie_band);
}

// The value nearest to `from` that flips, to the token, request or about a millionth of a second.
// Keeps throughout: `far` flips, `near` does not.
std::optional<float> Flipper::nearest(const Direction& d) const {
  if (d.from == d.limit) return std::nullopt;
  const float sign = d.limit > d.from ? 1.0f : -1.0f;
  float near = d.from;
  float far = d.limit;
  for (float step = d.whole ? 1.0f : 1e-3f; step < std::abs(d.limit - d.from); step *= 2) {
    if (flips(d, d.from + sign * step)) {
      far = d.from + sign * step;
      break;
    }
    near = d.from + sign * step;
  }
  if (!flips(d, far)) return std::nullopt;
  for (int i = 0; i < 64; ++i) {
    float middle = near + (far - near) / 2;
    if (d.whole) middle = std::round(middle);
    if (middle == near || middle == far) break;
    (flips(d, middle) ? far : near) = middle;
  }
  return far;
}

std::optional<Flip> Flipper::smallest() const {
  const float prompt = ask_.prompt;
  const float seconds = std::max(1e-3f, chosen_terms_.ttft);
  const float most_held = std::max(0.0f, prompt - 1);
  const Direction directions[] = {
      {false, Field::Cached, runner_up_.cached, most_held, prompt, true},
      {true, Field::Cached, chosen_.cached, 0, prompt, true},
      {false, Field::Wait, runner_up_.wait, 0, seconds, false},
      {true, Field::Wait, chosen_.wait, kSecondsMax, seconds, false},
      {false, Field::InFlight, runner_up_.in_flight, 0, runner_up_.in_flight + 1, true},
      {true, Field::InFlight, chosen_.in_flight, kRequestsMax, chosen_.in_flight + 1, true},
  };
  std::optional<Flip> best;
  for (const Direction& d : directions) {
    const std::optional<float> value = nearest(d);
    if (!value) continue;
    const float relative = std::abs(*value - d.from) / d.scale;
    if (best && best->relative <= relative) continue;
    const auto endpoint = d.of_chosen ? chosen_.endpoint : runner_up_.endpoint;
    best = Flip{endpoint, d.field, d.from, *value, relative};
  }
  return best;
}

std::string number(const char* format, double value) {
  char text[64];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

std::string change(const Flip& flip) {
  const auto by = static_cast<double>(std::abs(flip.to - flip.from));
  const bool more = flip.to > flip.from;
  switch (flip.field) {
    case Field::Cached:
      return number("%.0f", by) + (more ? " fewer" : " more") + " uncached tokens";
    case Field::Wait:
      return number("%.3g", by) + " s " + (more ? "more" : "less") + " queued prefill";
    case Field::InFlight:
      return number("%.0f", by) + (more ? " more" : " fewer") + " requests in flight";
  }
  return {};
}

}  // namespace

Inputs with(Inputs inputs, Field field, float value) {
  switch (field) {
    case Field::Cached: inputs.cached = value; break;
    case Field::Wait: inputs.wait = value; break;
    case Field::InFlight: inputs.in_flight = value; break;
  }
  return inputs;
}

Explanation explain(const Decision& decision) {
  Explanation e;
  e.kind = decision.kind;
  e.objective_missed = decision.objective_missed;
  e.retried = decision.retried;
  e.ejected = decision.ejected;
  e.drawn = decision.near_ties > 1;
  e.evaluated = decision.evaluated;
  e.near_ties = decision.near_ties;
  e.ask = decision.ask;
  for (std::size_t i = 0; i < decision.count; ++i) {
    e.candidates.push_back({decision.candidates[i], score(decision.ask, decision.candidates[i])});
  }
  e.chosen = decision.chosen;
  for (int r = 0; r < kReasons; ++r) {
    const Refusals& refusals = decision.refusals[static_cast<std::size_t>(r)];
    if (refusals.count > 0) e.refused.push_back({static_cast<Reason>(r), refusals});
  }
  if (decision.count < 2 || decision.kind != Decision::Kind::Place) return e;
  e.runner_up = e.chosen == 0 ? 1 : 0;
  e.flip = Flipper(decision.ask, e.candidates[e.chosen].inputs,
                   e.candidates[*e.runner_up].inputs)
               .smallest();
  return e;
}

std::string sentence(const Explanation& e,
                     const std::function<std::string(model::EndpointId)>& name) {
  if (e.retried) return "every endpoint that could serve it had failed it already";
  if (e.kind == Decision::Kind::Wait) return "it waits: every endpoint that could serve it is full";
  if (e.kind == Decision::Kind::None) return "no endpoint could serve it";
  if (!e.runner_up) return "no other endpoint could have served it";
  if (!e.flip) return "no single change would have changed the choice";
  const auto chosen = e.candidates[e.chosen].inputs.endpoint;
  const auto other = e.candidates[*e.runner_up].inputs.endpoint;
  const std::string winner = name(other) + " would have won ";
  if (e.flip->endpoint == other) return winner + "with " + change(*e.flip);
  return winner + "if " + name(chosen) + " had " + change(*e.flip);
}

}  // namespace signalbox::routing
