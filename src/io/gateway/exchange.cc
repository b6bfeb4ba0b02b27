// SPDX-License-Identifier: Apache-2.0
// The exchange between session, core and engine: who speaks when.
#include "io/gateway/exchange.h"

#include "io/gateway/answers.h"
#include "io/gateway/session.h"
#include "io/gateway/worker.h"

namespace signalbox::gateway {
namespace {

constexpr int kClientClosedRequest = 499;  // in our own records, as nginx says it

}  // namespace

Exchange::Exchange(Worker& worker, Session& session)
    : worker_(worker), session_(session), deadline_([this] { deadline_passed(); }),
      comment_([this] { comment_due(); }) {}

Exchange::~Exchange() {
  if (upstream_) worker_.pool().bury(std::move(upstream_));
  if (id_) worker_.unregister(id_);
}

void Exchange::left_unread(const http::RequestHead& head, Read read, Instant begun) {
  note_unread(head, read, begun);
  client_left_ = true;
  record_.status = kClientClosedRequest;
  finish(model::Outcome::ClientGone, false);
}

void Exchange::client_gone() {
  if (phase_ == Phase::Idle || phase_ == Phase::Orphan) return;
  comment_.disarm();
  client_left_ = true;
  record_.status = kClientClosedRequest;
  note_wait();
  if (phase_ == Phase::Attempt && endpoint_->drain_on_abort) {
    // The core hears of it when the engine is done; until then the engine's work is real.
    phase_ = Phase::Orphan;
    return resume_upstream();
  }
  if (upstream_) {
    upstream_->abandon();
    worker_.pool().bury(std::move(upstream_));
  }
  deadline_.disarm();
  phase_ = Phase::Core;
  worker_.emit(model::ClientGone{id_});
}

// It waits no more, and was not served. For those who are, the core tells how long they waited.
void Exchange::note_wait() {
  if (waits_since_) record_.queued += worker_.loop().now() - *waits_since_;
  waits_since_.reset();
}

// Whether reading from the engine has to wait for the client; one that left waits for nothing.
bool Exchange::client_lags() const { return phase_ != Phase::Orphan && session_.congested(); }

void Exchange::resume_upstream() {
  if (!upstream_ || !upstream_->paused() || client_lags()) return;
  if (!deadline_.armed()) await_more();
  upstream_->resume();
}

void Exchange::conclude(const model::Conclude& action) {
  using Answer = model::Conclude::Answer;
  if (upstream_) {
    upstream_->abandon();
    worker_.pool().bury(std::move(upstream_));
  }
  deadline_.disarm();
  comment_.disarm();
  if (action.answer != Answer::PassOn) note_wait();
  if (client_left_) {
    const bool orphan = phase_ == Phase::Orphan;
    finish(action.outcome, false);
    if (orphan) worker_.bury(session_);
    return;
  }
  if (action.answer == Answer::None) return finish(action.outcome, false);
  if (action.answer == Answer::Local) {
    const OwnAnswer own = own_answer(action.outcome);
    // The answer was whole before the core's word overtook its end.
    if (end_sent_) return finish(action.outcome, true);
    if (head_sent_) {
      end_stream_with_error(action.outcome);
      return finish(action.outcome, false);
    }
    send_local_error(own.status, own.message, own.code, action.retry_after);
    return finish(action.outcome, true);
  }
  if (!head_sent_) {
    send_held();
  } else if (!end_sent_) {
    // The engine ended its stream with an error: so do we, and never as if it were whole.
    end_stream_with_error(model::Outcome::Truncated);
    return finish(action.outcome, false);
  }
  finish(action.outcome, true);
}

void Exchange::finish(model::Outcome outcome, bool keep_alive) {
  record_.outcome = outcome;
  if (id_) worker_.unregister(id_);
  id_ = {};
  record_.bytes_out = session_.bytes_out() - record_.bytes_out;
  phase_ = Phase::Idle;
  worker_.account(record_);
  edits_.reset();
  endpoint_ = nullptr;
  newer_.reset();
  name_ = nullptr;
  if (!client_left_) session_.answered(keep_alive && keep_alive_);
}

std::optional<model::Progress::Entry> Exchange::progress() {
  if (phase_ != Phase::Attempt && phase_ != Phase::Orphan) return std::nullopt;
  if (relay_.tokens() == tokens_told_) return std::nullopt;
  tokens_told_ = relay_.tokens();
  return model::Progress::Entry{id_, attempt_, tokens_told_};
}

}  // namespace signalbox::gateway
