// SPDX-License-Identifier: Apache-2.0
// Walks the tree of prompts.
#include "sim/trace/trace.h"

#include <algorithm>
#include <utility>

namespace signalbox::trace {
namespace {

// Copy 0 of everything keeps the recorded names.
std::uint64_t renamed(std::uint64_t content, std::uint64_t copy, std::uint64_t other) {
  if (copy != 0) content = mixed(content, copy);
  return other == 0 ? content : mixed(other, content);
}

std::size_t place(std::int32_t index) { return static_cast<std::size_t>(index); }

std::optional<std::string> fault_of_call(const Trace& trace, std::size_t index) {
  const Call& call = trace.calls[index];
  if (call.last < 0 || place(call.last) >= trace.pieces.size()) return "has no prompt";
  if (call.prompt_tokens != tokens_of(prompt_of(trace, call))) return "is not its pieces' length";
  if (call.prompt_tokens > kTokensMax || call.output_tokens > kTokensMax) return "is too long";
  if (call.output_tokens < 1) return "has no answer";
  if (call.after >= static_cast<std::int32_t>(index)) return "waits for a later call";
  if (call.at < Duration::zero() || call.think < Duration::zero()) return "comes before the start";
  if (!trace.sessions.empty()) return std::nullopt;
  if (call.after >= 0) return "waits in a trace without sessions";
  if (call.at > trace.lasts) return "comes after the end";
  if (index > 0 && call.at < trace.calls[index - 1].at) return "comes before the one in front";
  return std::nullopt;
}

std::optional<std::string> fault_of_sessions(const Trace& trace) {
  std::int32_t next = 0;
  for (const Session& session : trace.sessions) {
    if (session.first != next || session.calls < 1) return "sessions do not cover the calls";
    next += session.calls;
    if (place(next) > trace.calls.size()) return "a session goes beyond the calls";
    if (session.start > trace.lasts) return "a session starts after the end";
    for (std::int32_t i = session.first; i < next; ++i) {
      const std::int32_t after = trace.calls[place(i)].after;
      if (after >= 0 && after < session.first) return "a call waits for another session's";
    }
  }
  if (!trace.sessions.empty() && place(next) != trace.calls.size()) return "a call has no session";
  return std::nullopt;
}

}  // namespace

std::vector<Span> prompt_of(const Trace& trace, const Call& call, std::uint64_t copy) {
  std::vector<Span> spans;
  for (std::int32_t at = call.last; at >= 0; at = trace.pieces[place(at)].before) {
    const Piece& piece = trace.pieces[place(at)];
    spans.push_back({piece.common ? piece.content : renamed(piece.content, call.copy, copy),
                     piece.tokens});
  }
  std::reverse(spans.begin(), spans.end());
  return spans;
}

std::uint64_t answer_of(const Call& call, std::uint64_t copy) {
  return renamed(call.answer, call.copy, copy);
}

std::uint64_t origin_of(const Trace& trace, const Call& call) {
  std::uint64_t origin = call.answer;
  for (std::int32_t at = call.last; at >= 0; at = trace.pieces[place(at)].before) {
    if (!trace.pieces[place(at)].common) origin = trace.pieces[place(at)].content;
  }
  return renamed(origin, call.copy, 0);
}

void sort_by_time(std::vector<Call>& calls) {
  const auto earlier = [](const Call& a, const Call& b) { return a.at < b.at; };
  if (std::is_sorted(calls.begin(), calls.end(), earlier)) return;
  std::vector<std::pair<Duration, std::size_t>> order;
  order.reserve(calls.size());
  for (std::size_t i = 0; i < calls.size(); ++i) order.emplace_back(calls[i].at, i);
  std::sort(order.begin(), order.end());
  std::vector<Call> sorted;
  sorted.reserve(calls.size());
  for (const auto& [at, index] : order) sorted.push_back(calls[index]);
  calls = std::move(sorted);
}

std::optional<std::string> fault_of(const Trace& trace) {
  for (std::size_t i = 0; i < trace.pieces.size(); ++i) {
    const Piece& piece = trace.pieces[i];
    if (piece.before >= static_cast<std::int32_t>(i) || piece.tokens < 1) {
      return "piece " + std::to_string(i) + " is empty or follows a later one";
    }
  }
  for (std::size_t i = 0; i < trace.calls.size(); ++i) {
    if (auto fault = fault_of_call(trace, i)) return "call " + std::to_string(i) + " " + *fault;
  }
  return fault_of_sessions(trace);
}

}  // namespace signalbox::trace
