// SPDX-License-Identifier: Apache-2.0
// The thread owns its names and a share of the mailbox, and reaches the loop through it alone.
#include "app/resolver.h"

#include <mutex>
#include <thread>
#include <utility>

namespace signalbox::app {

struct Resolver::Mailbox {
  Done done;          // the loop's thread alone
  bool busy = false;  // the loop's thread alone
  std::mutex mutex;
  net::Loop* loop = nullptr;  // under mutex; null: nobody listens any more
};

Resolver::Resolver(net::Loop& loop, Done done, Lookup lookup)
    : mailbox_(std::make_shared<Mailbox>()), lookup_(std::move(lookup)) {
  mailbox_->done = std::move(done);
  mailbox_->loop = &loop;
}

Resolver::~Resolver() {
  const std::lock_guard lock(mailbox_->mutex);
  mailbox_->loop = nullptr;
  mailbox_->done = nullptr;
}

bool Resolver::start(std::vector<std::string> names) {
  if (std::exchange(mailbox_->busy, true)) return false;
  std::thread([mailbox = mailbox_, lookup = lookup_, names = std::move(names)] {
    spec::Resolved resolved;
    for (const std::string& name : names) {
      const auto parts = net::split_host_port(name);
      if (!parts) continue;
      const auto addresses = lookup(parts->host, parts->port);
      if (!addresses) continue;
      for (const net::Address& address : *addresses) resolved[name].push_back(address.text());
    }
    const std::lock_guard lock(mailbox->mutex);
    if (mailbox->loop == nullptr) return;
    mailbox->loop->post([mailbox, resolved = std::move(resolved)]() mutable {
      mailbox->busy = false;
      // A copy: what is told may end the resolver.
      if (const Done done = mailbox->done) done(std::move(resolved));
    });
  }).detach();
  return true;
}

}  // namespace signalbox::app
