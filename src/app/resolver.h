// SPDX-License-Identifier: Apache-2.0
// Looks up host names in a thread of its own, since DNS blocks for as long as it likes, and tells
// the loop what it found.
// Keeps: a look-up that outlives the resolver, or the loop, tells nobody; nothing waits for it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "core/spec/compile.h"
#include "io/net/address.h"
#include "io/net/loop.h"

namespace signalbox::app {

class Resolver {
 public:
  // Called on the resolver's own thread; blocks.
  using Lookup = std::function<Result<std::vector<net::Address>>(const std::string& host,
                                                                 std::uint16_t port)>;
  // Called on the loop. Names that could not be resolved are absent.
  using Done = std::function<void(spec::Resolved)>;

  // `loop` must outlive the resolver.
  Resolver(net::Loop& loop, Done done, Lookup lookup = net::resolve);
  ~Resolver();
  Resolver(const Resolver&) = delete;
  Resolver& operator=(const Resolver&) = delete;

  // Looks up each `host:port`. False: the one before is not done yet; nothing is begun.
  bool start(std::vector<std::string> names);

 private:
  struct Mailbox;
  std::shared_ptr<Mailbox> mailbox_;  // shared with the thread: whoever is last frees it
  Lookup lookup_;
};

}  // namespace signalbox::app
