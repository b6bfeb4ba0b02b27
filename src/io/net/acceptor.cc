// SPDX-License-Identifier: Apache-2.0
// Readiness is told by edges: whoever stops before the queue is empty has to come back by itself.
#include "io/net/acceptor.h"

#include <cerrno>
#include <utility>

#include "io/net/stream.h"

namespace signalbox::net {
namespace {

constexpr int kPerTurn = 64;
constexpr Duration kShortage = std::chrono::milliseconds(50);

}  // namespace

Acceptor::Acceptor(Loop& loop, Fd listener, Taken taken, Short ran_short)
    : loop_(loop), listener_(std::move(listener)), taken_(std::move(taken)),
      short_(std::move(ran_short)), again_([this] { take(); }) {}

Acceptor::~Acceptor() { loop_.unwatch(listener_.get(), *this); }

Result<void> Acceptor::start() { return loop_.watch(listener_.get(), *this); }

Address Acceptor::address() const { return local_address(listener_.get()); }

void Acceptor::take() {
  for (int i = 0; i < kPerTurn; ++i) {
    Address peer;
    Fd connection = accept_from(listener_.get(), peer);
    if (connection) {
      taken_(std::move(connection), peer);
      continue;
    }
    if (errno == EAGAIN || errno == EWOULDBLOCK) return;
    const int error = errno;
    if (error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM) {
      if (short_) short_(error);
      return loop_.arm_after(again_, kShortage);
    }
    // Else that one connection went wrong before it was taken.
  }
  loop_.arm_after(again_, Duration::zero());
}

}  // namespace signalbox::net
