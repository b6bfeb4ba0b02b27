// SPDX-License-Identifier: Apache-2.0
// Draws a stream of calls from clients' rates, burstiness and lengths.
#include <algorithm>
#include <cmath>
#include <string>

#include "sim/trace/servegen.h"

namespace signalbox::trace {
namespace {

struct Draw {
  const ServeGen& servegen;
  const ServeGenDraw& wanted;
  std::uint64_t seed;
  Trace trace;

  Duration end() const { return wanted.start + wanted.length; }
};

// The part of a window that is asked for, in seconds; negative: none.
double overlap(const ServeGen::Window& window, const ServeGenDraw& wanted) {
  const Duration from = std::max(window.at, wanted.start);
  return to_seconds(std::min(window.at + kServeGenWindow, wanted.start + wanted.length) - from);
}

double expected_calls(const ServeGen& servegen, const ServeGenDraw& wanted) {
  double sum = 0;
  for (const ServeGen::Client& client : servegen.clients) {
    for (const ServeGen::Window& window : client.windows) {
      sum += std::max(0.0, overlap(window, wanted)) * window.rate * wanted.scale;
    }
  }
  return sum;
}

const ServeGen::Lengths& lengths_at(const ServeGen& servegen, const ServeGen::Client& client,
                                    Duration at) {
  if (client.lengths.empty()) return servegen.pooled;
  const auto after = std::upper_bound(
      client.lengths.begin(), client.lengths.end(), at,
      [](Duration time, const ServeGen::Lengths& lengths) { return time < lengths.at; });
  return after == client.lengths.begin() ? *after : *(after - 1);
}

std::int64_t tokens(const Quantiles& quantiles, Rng& rng) {
  return std::max<std::int64_t>(0, std::llround(quantiles.at(rng.uniform())));
}

void add_call(Draw& draw, const ServeGen::Client& client, Duration at, Rng& lengths_rng) {
  const ServeGen::Lengths& lengths = lengths_at(draw.servegen, client, at);
  Call call;
  call.at = at - draw.wanted.start;
  for (const Quantiles& input : lengths.inputs) call.prompt_tokens += tokens(input, lengths_rng);
  call.prompt_tokens = std::clamp<std::int64_t>(call.prompt_tokens, 1, kTokensMax);
  call.output_tokens = std::max<std::int64_t>(1, tokens(lengths.output, lengths_rng));
  call.last = static_cast<std::int32_t>(draw.trace.pieces.size());
  const std::uint64_t name = mixed(draw.seed, draw.trace.calls.size());
  call.answer = mixed(9, name);
  draw.trace.pieces.push_back({-1, mixed(8, name), call.prompt_tokens, false});
  draw.trace.calls.push_back(call);
}

void draw_client(Draw& draw, const ServeGen::Client& client) {
  const std::string name = std::to_string(client.id);
  Rng gaps(draw.seed, "gaps" + name);
  Rng lengths(draw.seed, "lengths" + name);
  for (const ServeGen::Window& window : client.windows) {
    const double rate = window.rate * draw.wanted.scale;
    const double seconds = overlap(window, draw.wanted);
    if (rate <= 0 || seconds <= 0) continue;
    const Duration from = std::max(window.at, draw.wanted.start);
    for (double at = draw_rest(window.gaps, gaps) / rate; at < seconds;
         at += draw_gap(window.gaps, gaps) / rate) {
      if (static_cast<std::int64_t>(draw.trace.calls.size()) >= 2 * draw.wanted.calls_max) return;
      add_call(draw, client, from + from_seconds(at), lengths);
    }
  }
}

}  // namespace

Result<Trace> draw(const ServeGen& servegen, const ServeGenDraw& wanted, std::uint64_t seed) {
  const double expected = expected_calls(servegen, wanted);
  if (expected > static_cast<double>(wanted.calls_max)) {
    return invalid("the stretch holds about " + std::to_string(std::llround(expected)) +
                   " calls, beyond `calls_max` of " + std::to_string(wanted.calls_max) +
                   "; draw a shorter one or a smaller `scale`.");
  }
  Draw draw{servegen, wanted, seed, {}};
  for (const ServeGen::Client& client : servegen.clients) draw_client(draw, client);
  sort_by_time(draw.trace.calls);
  draw.trace.lasts = wanted.length;
  return std::move(draw.trace);
}

}  // namespace signalbox::trace
