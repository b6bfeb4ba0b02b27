// SPDX-License-Identifier: Apache-2.0
// While an answer runs: its first token and its progress.
#include <algorithm>

#include "core/flow/core.h"

namespace signalbox::flow {

void Core::on(const model::FirstToken& event, Instant now, Actions& out) {
  Request* request = find(event.request);
  if (request == nullptr || request->attempt != event.attempt) {
    ++totals_.stale_events;
    return;
  }
  if (!legal(request->attempt_grammar.take(model::AttemptGrammar::Signal::FirstToken))) return;
  request->has_first_token = true;
  request->first_token = now;
  load_.first_token({event.request, event.attempt}, now);
  ejector_.first_token(request->endpoint, request->pass, now);
  index_.insert(request->endpoint, query(*request), cache::Residence::Held);
  if (EndpointState* endpoint = find(request->endpoint)) {
    connects(*endpoint, true);
    const auto cached = static_cast<double>(request->cached_tokens);
    const double fresh = std::max(0.0, static_cast<double>(request->prompt_tokens) - cached);
    endpoint->fresh_done += fresh;
    endpoint->attention_done += fresh * (cached + fresh / 2);
    request->fresh_at_first = endpoint->fresh_done;
    request->attention_at_first = endpoint->attention_done;
  }
  if (DecisionRecord* record = decisions_.find(request->decision)) {
    record->ttft = now - request->sent;
  }
  if (PoolState* pool = pool_of(request->endpoint); pool && !pool->instances.empty()) {
    watch_gate(*pool, *request, now);
  }
  switch (mode(request->endpoint)) {
    case model::DispatchMode::Immediate:
    case model::DispatchMode::Auto: break;
    case model::DispatchMode::Late: return feed(request->endpoint, now, out);
    case model::DispatchMode::Shuttle: return pass_computed(*request, now, out);
  }
}

void Core::on(const model::Progress& event, Instant now, Actions&) {
  steps_.clear();
  for (const model::Progress::Entry& entry : event.entries) {
    Request* request = find(entry.request);
    if (request == nullptr || request->attempt != entry.attempt) {
      ++totals_.stale_events;
      continue;
    }
    if (!legal(request->attempt_grammar.take(model::AttemptGrammar::Signal::Progress))) continue;
    request->relayed_tokens = std::max(request->relayed_tokens, entry.tokens);
    steps_.push_back({{entry.request, entry.attempt}, entry.tokens});
  }
  load_.progress(steps_, now);
}

}  // namespace signalbox::flow
