// SPDX-License-Identifier: Apache-2.0
// A listening socket on a loop. Hands over every connection that waits, a bounded number a turn.
// Keeps: a connection that cannot be taken now, since descriptors or memory ran out, is taken
// later without a new one having to arrive. On the loop's thread.
#pragma once

#include <cstdint>
#include <functional>

#include "base/result.h"
#include "io/net/address.h"
#include "io/net/fd.h"
#include "io/net/loop.h"
#include "io/net/timer.h"

namespace signalbox::net {

class Acceptor final : public Watcher {
 public:
  // Gets a non-blocking connection with TCP_NODELAY. Must not destroy the acceptor.
  using Taken = std::function<void(Fd connection, const Address& peer)>;
  // Told, at each try, that descriptors or memory ran out; by errno.
  using Short = std::function<void(int error)>;

  // `loop` must outlive the acceptor.
  Acceptor(Loop& loop, Fd listener, Taken taken, Short ran_short = nullptr);
  ~Acceptor();
  Acceptor(const Acceptor&) = delete;
  Acceptor& operator=(const Acceptor&) = delete;

  // Begins to take connections.
  Result<void> start();
  Address address() const;

 private:
  void on_ready(std::uint32_t) override { take(); }
  void take();

  Loop& loop_;
  Fd listener_;
  Taken taken_;
  Short short_;
  Timer again_;
};

}  // namespace signalbox::net
