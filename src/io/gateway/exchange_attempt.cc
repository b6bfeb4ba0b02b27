// SPDX-License-Identifier: Apache-2.0
// One try at an engine: the request with its permitted edits, the connection, the deadlines.
#include <algorithm>
#include <charconv>
#include <utility>

#include "io/gateway/client_fields.h"
#include "io/gateway/exchange.h"
#include "io/gateway/identify.h"
#include "io/gateway/session.h"
#include "io/gateway/worker.h"
#include "io/http/chars.h"
#include "io/http/writer.h"
#include "io/json/splice.h"

namespace signalbox::gateway {
namespace {

using http::FieldName;
using model::AttemptResult;

bool asks_for_usage(const json::RequestScan& scan) {
  return scan.include_usage == json::IncludeUsage::True;
}

// llama.cpp's last chunk carries token counts in its `timings` whether or not usage is asked for.
bool counts_unasked(model::EngineKind kind) { return kind == model::EngineKind::LlamaCpp; }

bool has_chunks(model::Api api) {
  return api == model::Api::ChatCompletions || api == model::Api::Completions;
}

bool event_stream(std::string_view content_type) {
  return http::equals_ignoring_case(http::media_type(content_type), "text/event-stream");
}

// Seconds as a number; dates are left to the client that gets the field passed on.
Duration retry_after(const http::ResponseHead& head) {
  const std::string_view text = head.fields.find(FieldName::RetryAfter).value_or("");
  int seconds = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  if (text.empty() || error != std::errc() || end != text.data() + text.size() || seconds < 0) {
    return Duration(-1);
  }
  return std::chrono::seconds(seconds);
}

}  // namespace

void Exchange::dispatch(const model::Dispatch& action) {
  // The core hears of it in this very turn.
  if (client_left_) return;
  attempt_ = action.attempt;
  decision_ = action.decision;
  phase_ = Phase::Attempt;
  first_token_told_ = false;
  tokens_told_ = 0;
  retried_stale_ = false;
  record_.queued += action.queued;
  waits_since_.reset();
  record_.attempts++;
  record_.first_token = Duration(-1);
  attempt_begun_ = worker_.loop().now();
  retry_after_ = Duration(-1);
  signs_seen_ = 0;
  endpoint_ = published_->endpoint(action.endpoint);
  if (endpoint_ == nullptr) {
    // The fleet changed between arrival and departure. What is known of the request itself still
    // points into what was published when it came.
    record_.endpoint = {};
    newer_ = worker_.published_ptr();
    endpoint_ = newer_->endpoint(action.endpoint);
    if (endpoint_ == nullptr) return end_attempt(AttemptResult::ConnectError);
  }
  record_.endpoint = endpoint_->label;
  build_request(*endpoint_);
  // Nothing of an earlier attempt or request may count for this one.
  relay_.begin(plan_, 0, false);
  open_upstream(false);
}

void Exchange::build_request(const EndpointAccess& endpoint) {
  const engine::Habits& habits = *endpoint.habits;
  json::Splice splice(body_, scan_);
  if (!name_->lora_name && !endpoint.served_model.empty() &&
      endpoint.served_model != scan_.model) {
    splice.set_model(endpoint.served_model);
  }
  plan_ = {};
  plan_.api = api_;
  if (has_chunks(api_)) plan_.choices = std::max(1, scan_.n);
  if (api_ == model::Api::Completions) plan_.choices *= std::max(1, scan_.inputs);
  plan_.client_streams = scan_.stream;
  plan_.event_max = static_cast<std::size_t>(published_->http_limits.sse_tail_bytes_max.value);
  plan_.held_max = published_->answer_held;
  plan_.assembled_max = published_->answer_assembled;
  // llama.cpp names its own alias whatever it was asked for; clients read the name they sent.
  if (!name_->lora_name && (endpoint.served_model != scan_.model || !habits.checks_model)) {
    plan_.model = scan_.model;
  }
  if (has_chunks(api_)) {
    if (!scan_.stream && habits.ask_stream_always && !scan_.stateful) {
      plan_.assemble = true;
      splice.set_stream(true);
      splice.include_usage();
    } else if (scan_.stream && habits.include_usage && !counts_unasked(endpoint.kind) &&
               !asks_for_usage(scan_)) {
      splice.include_usage();
      plan_.drop_usage = true;
    }
  }
  for (const json::Key key : json::kSteering) {
    if (scan_.has(key)) splice.remove(key);
  }
  if (tenant_ != nullptr) {
    // A tenant's own salt could reach another's cache; ours alone counts.
    if (habits.cache_salt && !tenant_->salt.empty()) splice.set_cache_salt(tenant_->salt);
    else if (scan_.has(json::Key::CacheSalt)) splice.remove(json::Key::CacheSalt);
  }
  edits_.reset();
  if (!splice.empty()) edits_.emplace(splice.edits());

  request_head_.clear();
  http::append_request_line(request_head_, "POST", head_->target().starts_with('/')
                                                       ? head_->target()
                                                       : head_->path());
  http::append_field(request_head_, "host", endpoint.host_field);
  append_client_fields(request_head_, endpoint);
  http::append_field(request_head_, "content-length", edits_ ? edits_->total_size() : body_.size());
  http::append_end_of_head(request_head_);
}

// Only listed networks may say for whom they speak.
bool Exchange::trusted_peer() const {
  return in_any(published_->config.gateway.trusted_peers, session_.peer_ip());
}

void Exchange::append_client_fields(std::string& out, const EndpointAccess& endpoint) const {
  const bool own_key = !endpoint.authorization.empty();
  const bool withhold_key = own_key || tenant_ != nullptr;
  for (const http::Field field : head_->fields) {
    switch (field.id) {
      case FieldName::Host:
      case FieldName::ContentLength:
      case FieldName::TransferEncoding:
      case FieldName::Expect:
      case FieldName::XRequestId:
      case FieldName::AcceptEncoding: continue;  // the relay reads what comes back
      case FieldName::Forwarded:
      case FieldName::XForwardedFor:
      case FieldName::XForwardedHost:
      case FieldName::XForwardedProto:
        if (!trusted_peer()) continue;
        break;
      case FieldName::Other: {
        const FieldUse use = use_of(field.name, published_->config.gateway.client_fields);
        if (use == FieldUse::Withheld) continue;
        if (use == FieldUse::Trusted && !trusted_peer()) continue;
        break;
      }
      default: break;
    }
    if (withhold_key && is_credential(field)) continue;
    if (http::is_hop_by_hop(*head_, field)) continue;
    http::append_field(out, field);
  }
  http::append_field(out, "x-request-id", record_.engine_request_id.empty()
                                              ? record_.request_id
                                              : record_.engine_request_id);
  if (own_key) http::append_field(out, "authorization", endpoint.authorization);
  if (!endpoint.rank.empty() && !endpoint.habits->rank_header.empty()) {
    http::append_field(out, endpoint.habits->rank_header, endpoint.rank);
  }
}

void Exchange::open_upstream(bool fresh) {
  if (!fresh) upstream_ = worker_.pool().take(endpoint_->id);
  if (!upstream_) {
    auto opened = Upstream::open(worker_.loop(), worker_.pool(), endpoint_->id, endpoint_->address,
                                 endpoint_->tls, endpoint_->server_name, published_->http_limits);
    if (!opened) {
      if (opened.error().source != Source::Us) return end_attempt(AttemptResult::ConnectError);
      worker_.log_shortage(endpoint_->label, opened.error().message);
      return end_attempt(AttemptResult::Shortage);
    }
    upstream_ = std::move(*opened);
  }
  std::vector<iovec> pieces;
  const auto add = [&](std::string_view bytes) {
    pieces.push_back({const_cast<char*>(bytes.data()), bytes.size()});
  };
  add(request_head_);
  if (edits_) {
    std::vector<std::string_view> parts;
    edits_->pieces(parts);
    for (const std::string_view part : parts) add(part);
  } else {
    add(body_);
  }
  const spec::Timeouts& timeouts = published_->timeouts;
  // The first of several deadlines; deadline_passed() knows which are due.
  const Duration opening = std::min(timeouts.connect, timeouts.tls_handshake);
  arm(std::min(opening, first_token_limit()));
  upstream_->start(*this, std::move(pieces), http::AnswerTo::Other);
}

Duration Exchange::first_token_limit() const {
  // A plain answer comes when it is whole: its first byte is its last token.
  const bool streams = scan_.stream || plan_.assemble;
  return streams ? published_->timeouts.first_token : published_->timeouts.plain_answer;
}

// The answer itself has begun; its first event alone may come long before its first token, and the
// head of a plain answer long before its first byte.
bool Exchange::relaying() const {
  return relay_.content_seen() || relay_.mode() == AnswerRelay::Mode::Pass || holding();
}

// A plain answer has begun that goes on to the client when it is whole.
bool Exchange::holding() const {
  return relay_.mode() == AnswerRelay::Mode::Hold && !relay_.held().empty();
}

Duration Exchange::attempt_age() const { return worker_.loop().now() - attempt_begun_; }

// How long the engine may be silent inside its answer. One that is held has its whole time as well.
void Exchange::await_more() {
  if (!relaying()) return;
  Duration limit = silence_limit();
  if (holding()) limit = std::min(limit, first_token_limit() - attempt_age());
  arm(std::max(limit, Duration::zero()));
}

void Exchange::arm(Duration limit) { worker_.loop().arm_after(deadline_, limit); }

void Exchange::deadline_passed() {
  if (!upstream_) return;
  AttemptResult result = AttemptResult::IdleTimeout;
  const Duration spent = attempt_age();
  if (!upstream_->secured() || !upstream_->connected()) {
    const spec::Timeouts& timeouts = published_->timeouts;
    const Duration limit =
        upstream_->connected() ? upstream_->connected_at() - attempt_begun_ + timeouts.tls_handshake
                               : timeouts.connect;
    const Duration left = std::min(limit, first_token_limit()) - spent;
    if (left > Duration::zero()) return arm(left);
    result = AttemptResult::ConnectError;
  } else if (!relaying() || (holding() && spent >= first_token_limit())) {
    if (spent < first_token_limit()) return arm(first_token_limit() - spent);
    result = AttemptResult::FirstTokenTimeout;
  }
  // An engine that said all and only did not close its stream has answered.
  const AttemptResult said = cut_off();
  end_attempt(said == AttemptResult::Truncated ? result : said);
}

// Hangs up on the engine; what it said so far is judged and passed on.
AttemptResult Exchange::cut_off() {
  upstream_->abandon();
  worker_.pool().bury(std::move(upstream_));
  return end_broken();
}

// The answer breaks off here.
AttemptResult Exchange::end_broken() {
  const AttemptResult said = relay_.end(false);
  if (!relay_.pieces().empty() || head_sent_) flush_relay(said == AttemptResult::Ok);
  return said;
}

void Exchange::abort(const model::Abort& action) {
  if (action.attempt != attempt_ || !upstream_) return;
  upstream_->abandon();
  worker_.pool().bury(std::move(upstream_));
  deadline_.disarm();
}

void Exchange::upstream_head(const http::ResponseHead& head) {
  retry_after_ = retry_after(head);
  const std::string_view type = head.fields.find(FieldName::ContentType).value_or("");
  const bool events = event_stream(type);
  other_type_.reset();
  if (!events && (scan_.stream || plan_.assemble)) other_type_.emplace(type);
  relay_.begin(plan_, head.status, events);
  if (relay_.redirects()) return end_attempt(cut_off());
  keep_answer_fields(head);
}

void Exchange::upstream_body(std::string_view data) { relay_.feed(data); }

void Exchange::upstream_read_done() {
  if (!relay_.pieces().empty()) flush_relay(false);
  if (!first_token_told_ && relay_.content_seen()) {
    first_token_told_ = true;
    record_.first_token = worker_.loop().now() - record_.begun;
    worker_.emit(model::FirstToken{id_, attempt_});
  }
  if (!upstream_) return;
  if (relay_.overrun()) return end_attempt(cut_off());
  if (client_lags()) {
    // The silence that follows is the client's; write_idle watches over it.
    if (relaying()) deadline_.disarm();
    return upstream_->pause();
  }
  // What only keeps a connection open is no part of an answer.
  if (std::exchange(signs_seen_, relay_.signs()) != relay_.signs()) await_more();
}

// An engine that has said the end closes its body in the same breath, or has forgotten to.
Duration Exchange::silence_limit() const {
  constexpr Duration kForgotten = std::chrono::milliseconds(250);
  const Duration limit = published_->timeouts.event_idle;
  return relay_.end_seen() ? std::min(limit, kForgotten) : limit;
}

void Exchange::upstream_end(bool reusable) {
  std::unique_ptr<Upstream> upstream = std::move(upstream_);
  if (reusable) worker_.pool().give_back(std::move(upstream));
  else worker_.pool().bury(std::move(upstream));
  const AttemptResult result = relay_.end(true);
  if (result == AttemptResult::Truncated && other_type_) {
    worker_.log_no_stream(endpoint_->label, *other_type_);
  }
  // An error too long to be held is a failure, but its body ends like any other.
  const bool whole = result == AttemptResult::Ok || relay_.mode() == AnswerRelay::Mode::Pass;
  if (!relay_.pieces().empty() || head_sent_) flush_relay(whole);
  end_attempt(result);
}

void Exchange::upstream_broke(Broke how, const std::string& detail) {
  const bool stale = how == Broke::NoAnswer && upstream_->reused() && !upstream_->answered();
  worker_.pool().bury(std::move(upstream_));
  // The engine closed a kept-alive connection just as we used it: that says nothing about it.
  if (stale && !retried_stale_ && phase_ == Phase::Attempt) {
    retried_stale_ = true;
    return open_upstream(true);
  }
  worker_.log_broken(*endpoint_, detail);
  AttemptResult result = AttemptResult::ConnectError;
  if (how == Broke::NoAnswer || how == Broke::Protocol) result = AttemptResult::Reset;
  if (how == Broke::Truncated) result = end_broken();
  end_attempt(result);
}

// Whether the client has no part in a refusal: the key is ours, the model and the path are known.
bool Exchange::engine_unfit() const {
  if (head_sent_ || endpoint_ == nullptr) return false;
  const bool client_key = endpoint_->authorization.empty() && tenant_ == nullptr;
  const int status = relay_.status();
  if (status == 401 || status == 403) return !client_key;
  return status == 404 && has_chunks(api_) && !name_->lora_name;
}

void Exchange::end_attempt(AttemptResult result) {
  if (result == AttemptResult::ClientError && engine_unfit()) result = AttemptResult::Unfit;
  if (result == AttemptResult::Unfit) worker_.log_unfit(*endpoint_, relay_.status());
  deadline_.disarm();
  comment_.disarm();
  const bool orphan = phase_ == Phase::Orphan;
  phase_ = Phase::Judged;
  waits_since_ = worker_.loop().now();
  if (relay_.status() != 0) {
    record_.usage = relay_.usage();
    record_.tokens = relay_.tokens();
  }
  // Content and the answer's end, or its failure, may have come in one read.
  if (!first_token_told_ && (result == AttemptResult::Ok || relay_.content_seen())) {
    first_token_told_ = true;
    record_.first_token = worker_.loop().now() - record_.begun;
    if (scan_.stream || plan_.assemble) worker_.emit(model::FirstToken{id_, attempt_});
  }
  model::AttemptEnded ended;
  ended.request = id_;
  ended.attempt = attempt_;
  ended.result = result;
  ended.status = relay_.status();
  ended.delivered = head_sent_;
  ended.client_left = orphan;
  ended.retry_after = retry_after_;
  if (ended.status != 0) {
    ended.tokens = relay_.tokens();
    ended.usage = relay_.usage();
    ended.timings = relay_.timings();
  }
  worker_.emit(ended);
  if (orphan) worker_.bury(session_);  // once the core has concluded the request
}

}  // namespace signalbox::gateway
