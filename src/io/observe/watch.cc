// SPDX-License-Identifier: Apache-2.0
// A look is: turn, connection, question, answer, and further questions that the answer raises. A
// callback may close this watch; what follows a callback asks closed_ first.
#include "io/observe/watch.h"

#include <cerrno>
#include <cstring>
#include <utility>

namespace signalbox::observe {
namespace {

std::vector<int> ranks_of(const std::vector<Member>& members) {
  if (members.empty()) return {-1};
  std::vector<int> ranks;
  for (const Member& member : members) ranks.push_back(member.rank);
  return ranks;
}

}  // namespace

Observer::Watch::Watch(Observer& observer, Target target)
    : observer_(observer),
      target_(std::move(target)),
      conversation_(target_.declared),
      schedule_(observer.config_),
      exchange_(observer.config_.answer_bytes_max.value),
      timer_([this] { on_timer(); }) {
  schedule_.set_interval(target_.interval);
  conversation_.set_ranks(ranks_of(target_.members));
}

Observer::Watch::~Watch() { close(); }

std::string Observer::Watch::identity(const Target& target) {
  std::string out = target.name + "\n" + target.address.text() + "\n" + target.server_name + "\n" +
                    target.key + "\n";
  out.append(name(target.declared));
  return out + "\n" + std::to_string(reinterpret_cast<std::uintptr_t>(target.tls.get()));
}

void Observer::Watch::set_members(std::vector<Member> members) {
  if (members == target_.members) return;
  std::vector<model::EngineState> states = conversation_.states();
  bool same_ranks = ranks_of(members) == ranks_of(target_.members);
  target_.members = std::move(members);
  if (!same_ranks) conversation_.set_ranks(ranks_of(target_.members));
  if (same_ranks && !states.empty() && schedule_.failures() == 0) tell_states();
}

void Observer::Watch::set_pace(Duration interval, Duration answer_within) {
  target_.interval = interval;
  target_.answer_within = answer_within;
  schedule_.set_interval(interval);
}

void Observer::Watch::start() {
  phase_ = Phase::Queued;
  observer_.enqueue(*this);
}

void Observer::Watch::granted() {
  holds_turn_ = true;
  checked_ = untold_ = false;
  began_ = observer_.loop_.now();
  if (conversation_.known() && began_ >= refresh_at_) conversation_.refresh();
  stream_ ? ask() : connect(Phase::Connecting);
}

void Observer::Watch::close() {
  if (closed_) return;
  closed_ = true;
  timer_.disarm();
  disconnect();
  release_turn();
}

void Observer::Watch::connect(Phase phase) {
  phase_ = phase;
  reused_ = false;
  ++observer_.stats_.connects;
  auto stream = net::Stream::connecting(target_.address, target_.tls, target_.server_name);
  if (!stream && stream.error().source == Source::Us) return postpone();
  if (!stream) return fail(std::move(stream).error().message, false);
  stream_ = std::move(*stream);
  if (auto watched = observer_.loop_.watch(stream_.fd(), *this); !watched) {
    stream_.close();
    return fail(std::move(watched).error().message, false);
  }
  observer_.loop_.arm_after(timer_, observer_.config_.connect_within);
}

// We have no descriptor or port left, which says nothing about the engine.
void Observer::Watch::postpone() {
  due_ = schedule_.after_success(began_, observer_.rng_);
  wait_until(due_);
  release_turn();
  if (!closed_) first_outcome();
}

void Observer::Watch::connected() {
  if (phase_ == Phase::Checking) return wait_until(due_);
  ask();
}

void Observer::Watch::ask() {
  auto request = get_request(conversation_.path(), target_.name, target_.key);
  if (!request) return fail("The target's name or key holds bytes that no HTTP head may.", false);
  phase_ = Phase::Asking;
  out_ = std::move(*request);
  written_ = 0;
  exchange_.begin(observer_.take_storage());
  Duration within = target_.answer_within > Duration::zero() ? target_.answer_within
                                                             : observer_.config_.answer_within;
  if (conversation_.known()) {
    within = std::max(within, engine::manners(conversation_.discovery().kind).answer_within_min);
  }
  observer_.loop_.arm_after(timer_, within);
  flush();
}

// False: the connection broke, and that has been dealt with.
bool Observer::Watch::flush() {
  while (written_ < out_.size()) {
    net::IoResult put = stream_.write(std::string_view(out_).substr(written_));
    if (put.status == net::IoResult::Status::WouldBlock) return true;
    if (put.status != net::IoResult::Status::Ok) {
      broken("the connection broke while the request was sent");
      return false;
    }
    written_ += put.bytes;
  }
  return true;
}

void Observer::Watch::on_ready(std::uint32_t) {
  if (phase_ == Phase::Connecting || phase_ == Phase::Checking) {
    if (int error = stream_.connect_error(); error != 0) {
      return fail(std::strerror(error), error == ECONNREFUSED);
    }
    return connected();
  }
  if (phase_ == Phase::Asking) {
    if (flush()) read();
    return;
  }
  // Idle: anything but silence means that this connection is over. An engine that died closes it,
  // and a new connection tells at once.
  char byte;
  if (stream_.read(&byte, 1).status == net::IoResult::Status::WouldBlock) return;
  disconnect();
  if (phase_ == Phase::Waiting && !std::exchange(checked_, true)) connect(Phase::Checking);
}

void Observer::Watch::read() {
  for (;;) {
    net::IoResult got = stream_.read(observer_.scratch_.get(), kScratch);
    if (got.status == net::IoResult::Status::WouldBlock) return;
    Exchange::State state = Exchange::State::Open;
    if (got.status == net::IoResult::Status::Ok) {
      observer_.stats_.bytes += got.bytes;
      state = exchange_.feed({observer_.scratch_.get(), got.bytes});
    } else if (got.status == net::IoResult::Status::Closed && exchange_.started()) {
      state = exchange_.end_of_input();
    } else {
      return broken("the connection was closed before an answer");
    }
    if (state == Exchange::State::Done) return answered();
    if (state == Exchange::State::Failed) return fail(std::string(exchange_.reason()), false);
    if (!stream_.tls() && got.bytes < kScratch) return;
  }
}

void Observer::Watch::answered() {
  ++observer_.stats_.looks;
  reused_ = true;
  if (!exchange_.keep_alive()) disconnect();
  const std::string asked(conversation_.path());
  Conversation::Step step =
      conversation_.answer({exchange_.status(), exchange_.server(), exchange_.body()});
  const std::string answer = "it answers " + std::to_string(exchange_.status());
  observer_.give_storage(exchange_.release());
  if (step.down) return fail(answer + " and does not serve", false);
  if (conversation_.asks_instead()) {
    untold_ = true;
    tell_lost("GET " + asked + ": " + answer + " and tells no load");
    if (closed_) return;
  }
  conclude(step);
}

void Observer::Watch::conclude(const Conversation::Step& step) {
  if (step.discovered) {
    const engine::Discovery& now = conversation_.discovery();
    refresh_at_ = observer_.loop_.now() + observer_.config_.models_interval;
    schedule_.set_floor(engine::manners(now.kind).interval_min);
    if (!found_ || !(told_ == now)) {
      found_ = true;
      told_ = now;
      if (observer_.sink_.found) observer_.sink_.found({target_.name, target_.members, now});
    }
    if (closed_) return;
    first_outcome();
  }
  if (step.told) tell_states();
  if (closed_) return;
  if (step.ask_again) return stream_ ? ask() : connect(Phase::Connecting);
  if (!untold_) failing_ = false;
  due_ = schedule_.after_success(began_, observer_.rng_);
  wait_until(due_);
  release_turn();
}

void Observer::Watch::tell_states() {
  if (!observer_.sink_.event) return;
  // Copies: a callback may change what is watched.
  const std::vector<model::EngineState> states = conversation_.states();
  const std::vector<Member> members = target_.members;
  for (std::size_t i = 0; i < members.size() && i < states.size() && !closed_; ++i) {
    observer_.sink_.event(model::EndpointObserved{members[i].endpoint, states[i]});
  }
}

// Between two answers a server may close a connection that we are about to use: ask once more.
void Observer::Watch::broken(std::string_view reason) {
  if (const std::string_view wrong = stream_.distrust(); !wrong.empty()) {
    return fail("its TLS certificate is refused: " + std::string(wrong) +
                    " (`tls.server_name` and `tls.ca` of the Pool say what is expected)", false);
  }
  if (!reused_ || exchange_.started()) return fail(std::string(reason), false);
  observer_.give_storage(exchange_.release());
  disconnect();
  connect(Phase::Connecting);
}

void Observer::Watch::fail(std::string reason, bool refused) {
  bool reached = phase_ == Phase::Asking && conversation_.looking();
  std::string what = phase_ == Phase::Asking ? "GET " + std::string(conversation_.path()) + ": "
                                             : std::string("connecting: ");
  const bool no_connection = phase_ == Phase::Connecting || phase_ == Phase::Checking;
  ++observer_.stats_.failures;
  observer_.give_storage(exchange_.release());
  disconnect();
  if (conversation_.failed(refused)) {
    untold_ = true;
    tell_lost(what + std::move(reason));
    if (!closed_) connect(Phase::Connecting);
    return;
  }
  due_ = schedule_.after_failure(observer_.loop_.now(), observer_.rng_);
  if (reached) due_ = schedule_.not_before(due_, began_);
  wait_until(due_);
  release_turn();
  if (closed_) return;
  tell_lost(what + std::move(reason));
  if (observer_.sink_.event) {
    const std::vector<Member> members = target_.members;
    for (std::size_t i = 0; i < members.size() && !closed_; ++i) {
      observer_.sink_.event(model::EndpointUnreachable{members[i].endpoint, no_connection});
    }
  }
  if (!closed_) first_outcome();
}

// Once, until a look has told all that was asked.
void Observer::Watch::tell_lost(std::string reason) {
  if (std::exchange(failing_, true) || !observer_.sink_.lost) return;
  observer_.sink_.lost(target_.name,
                       Error{Code::BadUpstream, Source::Engine, true, std::move(reason)});
}

void Observer::Watch::first_outcome() {
  if (!std::exchange(settled_, true)) observer_.settled_one();
}

void Observer::Watch::wait_until(Instant due) {
  phase_ = Phase::Waiting;
  observer_.loop_.arm(timer_, due);
}

// The last thing before callbacks or at the end: others may begin, fail and call back at once.
void Observer::Watch::release_turn() {
  if (std::exchange(holds_turn_, false)) observer_.finished();
}

void Observer::Watch::disconnect() {
  if (!stream_) return;
  observer_.loop_.unwatch(stream_.fd(), *this);
  stream_.close();
  reused_ = false;
}

void Observer::Watch::on_timer() {
  switch (phase_) {
    case Phase::Waiting: return start();
    case Phase::Queued: return;
    case Phase::Connecting:
    case Phase::Checking: return fail("no connection in time", false);
    case Phase::Asking: return fail("no whole answer in time", false);
  }
}

}  // namespace signalbox::observe
