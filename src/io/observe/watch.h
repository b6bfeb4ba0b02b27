// SPDX-License-Identifier: Apache-2.0
// One target under watch: its connection, its timer, and where the conversation stands. Part of
// Observer; runs on its loop.
#pragma once

#include <cstdint>
#include <string>

#include "io/net/stream.h"
#include "io/observe/conversation.h"
#include "io/observe/exchange.h"
#include "io/observe/observer.h"
#include "io/observe/schedule.h"

namespace signalbox::observe {

class Observer::Watch final : public net::Watcher {
 public:
  Watch(Observer& observer, Target target);
  ~Watch();

  // Equal for targets that are watched in the same way.
  static std::string identity(const Target& target);
  std::string identity() const { return identity(target_); }
  bool settled() const { return settled_; }  // found out, or failed, at least once
  bool closed() const { return closed_; }
  void set_members(std::vector<Member> members);
  // From the next look on.
  void set_pace(Duration interval, Duration answer_within);

  void start();    // asks for a turn
  void granted();  // has one: a look begins
  void close();    // for good; nothing is told any more
  void on_ready(std::uint32_t events) override;

 private:
  enum class Phase : std::uint8_t {
    Waiting,     // until the next look is due; the connection may be open
    Queued,      // due; waits for its turn
    Connecting,  // for a look
    Checking,    // an idle connection was closed: is the engine still there?
    Asking,      // the request is on its way, or its answer is
  };

  void connect(Phase phase);
  void connected();
  void ask();
  bool flush();
  void read();
  void answered();
  void conclude(const Conversation::Step& step);
  void tell_states();
  void broken(std::string_view reason);
  void postpone();
  void fail(std::string reason, bool refused);
  void tell_lost(std::string reason);
  void wait_until(Instant due);
  void release_turn();
  void disconnect();
  void on_timer();
  void first_outcome();

  Observer& observer_;
  Target target_;
  Conversation conversation_;
  Schedule schedule_;
  Exchange exchange_;
  net::Stream stream_;
  net::Timer timer_;
  Phase phase_ = Phase::Waiting;
  std::string out_;           // the request
  std::size_t written_ = 0;   // of it
  Instant began_{};           // of the present look
  Instant due_{};             // of the next look
  Instant refresh_at_{};      // when models are looked at again
  engine::Discovery told_;    // what Sink::found was told last
  bool reused_ = false;       // the connection carried an answer before
  bool found_ = false;        // Sink::found was told
  bool failing_ = false;      // Sink::lost was told
  bool untold_ = false;       // in this look, load was asked for and not told
  bool settled_ = false;
  bool holds_turn_ = false;   // counts into Observer::active()
  bool checked_ = false;      // an idle connection was replaced since the last look
  bool closed_ = false;
};

}  // namespace signalbox::observe
