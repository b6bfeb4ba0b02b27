// SPDX-License-Identifier: Apache-2.0
// Makes traces and curves of texts.
#include "sim/trace_form.h"

#include <utility>

#include "base/rng.h"
#include "core/spec/nearest.h"
#include "sim/trace/agentic.h"
#include "sim/trace/azure.h"
#include "sim/trace/mooncake.h"
#include "sim/trace/operations.h"
#include "sim/trace/servegen.h"
#include "sim/trace/tidal.h"

namespace signalbox::sim {
namespace {

Result<std::string> text_of(const std::string& file, const ReadText& read) {
  auto text = read(file);
  if (text) return text;
  return invalid("the file " + spec::quote(file) + " " + text.error().message);
}

// What a reader says, with the file that it read.
template <typename T>
Result<T> named(Result<T> read, const std::string& file) {
  if (read) return read;
  return invalid("the file " + spec::quote(file) + ": " + read.error().message);
}

Result<trace::Trace> draw_servegen(const TraceForm& form, const ReadText& read,
                                   std::uint64_t seed) {
  TRY_ASSIGN(const std::string rates, text_of(form.file, read));
  TRY_ASSIGN(const std::string lengths, text_of(form.lengths_file, read));
  TRY_ASSIGN(const auto clients, named(trace::read_servegen(form.model, rates, lengths),
                                       form.file));
  trace::ServeGenDraw wanted;
  wanted.start = form.start;
  if (form.length > Duration::zero()) wanted.length = form.length;
  // Of a fleet's worth of calls only as many are drawn as are wanted.
  wanted.scale = form.speed_up;
  if (form.requests_per_second > 0) wanted.scale = form.requests_per_second / clients.mean_rate();
  return trace::draw(clients, wanted, seed);
}

Result<trace::Trace> read_record(const TraceForm& form, const ReadText& read) {
  TRY_ASSIGN(const std::string text, text_of(form.file, read));
  switch (form.format) {
    case TraceFormat::Mooncake: return named(trace::read_mooncake(text), form.file);
    case TraceFormat::Azure: return named(trace::read_azure(text), form.file);
    default: break;
  }
  TRY_ASSIGN(const std::string sessions, text_of(form.sessions_file, read));
  return named(trace::read_agentic(text, sessions), form.file);
}

// The part of the record that is played.
trace::Trace cut(trace::Trace trace, const TraceForm& form, std::uint64_t seed) {
  if (form.spread > Duration::zero()) {
    Rng rng(seed, "trace spread");
    trace = trace::spread(trace, form.spread, rng);
  }
  if (form.start > Duration::zero() || form.length > Duration::zero()) {
    const Duration length = form.length > Duration::zero() ? form.length : trace.lasts;
    trace = trace::slice(trace, form.start, length);
  }
  if (form.first_session > 0 || form.sessions > 0) {
    const auto first = static_cast<std::size_t>(form.first_session);
    const auto count = form.sessions > 0 ? static_cast<std::size_t>(form.sessions)
                                         : trace.sessions.size();
    trace = trace::take_sessions(trace, first, count);
  }
  return trace;
}

}  // namespace

std::optional<std::string> fault_of(const TraceForm& form) {
  const bool agentic = form.format == TraceFormat::Agentic;
  const bool servegen = form.format == TraceFormat::Servegen;
  if (agentic != !form.sessions_file.empty()) {
    return agentic ? "format agentic needs `sessions_file`; add it."
                   : "`sessions_file` belongs to format agentic; remove it.";
  }
  if (servegen != !form.lengths_file.empty()) {
    return servegen ? "format servegen needs `lengths_file`; add it."
                    : "`lengths_file` belongs to format servegen; remove it.";
  }
  if (servegen != !form.model.empty()) {
    return servegen ? "format servegen needs `model`; add it, such as `m-mid`."
                    : "`model` belongs to format servegen; remove it.";
  }
  if (!agentic && (form.first_session > 0 || form.sessions > 0)) {
    return "`sessions` and `first_session` belong to format agentic; use `start` and `length`.";
  }
  if (servegen && form.spread > Duration::zero()) {
    return "`spread` undoes coarse steps, which a drawn stream does not have; remove it.";
  }
  const int rates = (form.speed_up != 1 ? 1 : 0) + (form.requests_per_second > 0 ? 1 : 0) +
                    (form.tokens_per_second > 0 ? 1 : 0);
  if (rates > 1) {
    return "`speed_up`, `requests_per_second` and `tokens_per_second` are three ways to say one "
           "thing; keep one.";
  }
  return std::nullopt;
}

std::optional<std::string> fault_of(const CurveForm& form) {
  const bool servegen = form.format == CurveFormat::Servegen;
  if (servegen == !form.model.empty()) return std::nullopt;
  return servegen ? "format servegen needs `model`; add it, such as `m-mid`."
                  : "`model` belongs to format servegen; remove it.";
}

Result<trace::Trace> make_trace(const TraceForm& form, const ReadText& read, std::uint64_t seed) {
  trace::Trace trace;
  if (form.format == TraceFormat::Servegen) {
    TRY_ASSIGN(trace, draw_servegen(form, read, seed));
  } else {
    TRY_ASSIGN(trace, read_record(form, read));
    trace = cut(std::move(trace), form, seed);
  }
  if (trace.calls.empty()) return invalid("nothing is left of the record; play more of it.");
  if (form.repeat_for > Duration::zero()) trace = trace::splice(trace, form.repeat_for);
  if (form.tokens_per_second > 0) return trace::scale_to_tokens(trace, form.tokens_per_second);
  if (form.format == TraceFormat::Servegen) return trace;
  if (form.requests_per_second > 0) {
    return trace::scale_to_requests(trace, form.requests_per_second);
  }
  return form.speed_up != 1 ? trace::scale_rate(trace, form.speed_up) : trace;
}

Result<trace::RateCurve> make_curve(const CurveForm& form, const ReadText& read) {
  TRY_ASSIGN(const std::string text, text_of(form.file, read));
  const bool tidal = form.format == CurveFormat::Tidal;
  TRY_ASSIGN(trace::RateCurve curve,
             named(tidal ? trace::read_tidal(text) : trace::read_servegen_rates(form.model, text),
                   form.file));
  for (trace::RatePoint& point : curve.points) {
    point.at = from_seconds(to_seconds(point.at) / form.speed_up);
  }
  curve.period = from_seconds(to_seconds(curve.period) / form.speed_up);
  const double mean = trace::mean_of(curve);
  if (mean <= 0) return invalid("the file " + spec::quote(form.file) + " has nobody coming.");
  for (trace::RatePoint& point : curve.points) point.rate /= mean;
  return curve;
}

}  // namespace signalbox::sim
