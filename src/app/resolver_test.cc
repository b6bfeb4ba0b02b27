// SPDX-License-Identifier: Apache-2.0
// Goal: a slow DNS server neither delays the end of the program nor reaches what has ended. Method:
// a look-up that waits until the test lets it go.
#include "app/resolver.h"

#include <gtest/gtest.h>

#include <future>

namespace signalbox::app {
namespace {

// A DNS server that answers when it is told to.
struct SlowDns {
  std::promise<void> asked;
  std::promise<void> answer;
  std::shared_future<void> may_answer = answer.get_future().share();

  // What it keeps ends with the last copy of the look-up, which is the thread's.
  Resolver::Lookup lookup(std::shared_ptr<void> kept = nullptr) {
    return [this, may = may_answer, kept](const std::string&, std::uint16_t port) {
      asked.set_value();
      may.wait();
      return Result<std::vector<net::Address>>(
          std::vector{*net::Address::parse("10.0.0.7:" + std::to_string(port))});
    };
  }
};

TEST(Resolver, tells_the_loop_what_it_found) {
  auto loop = *net::Loop::create();
  SlowDns dns;
  spec::Resolved found;
  Resolver resolver(*loop, [&](spec::Resolved resolved) {
    found = std::move(resolved);
    loop->stop();
  }, dns.lookup());
  EXPECT_TRUE(resolver.start({"engine.test:8000"}));
  EXPECT_FALSE(resolver.start({"engine.test:8000"})) << "one look-up at a time";
  dns.answer.set_value();
  loop->run();
  EXPECT_EQ(found["engine.test:8000"], std::vector<std::string>{"10.0.0.7:8000"});
}

TEST(Resolver, a_look_up_that_outlives_resolver_and_loop_tells_nobody) {
  SlowDns dns;
  std::promise<void> over;
  bool told = false;
  {
    auto loop = *net::Loop::create();
    std::shared_ptr<void> last(nullptr, [&over](void*) { over.set_value(); });
    Resolver resolver(*loop, [&](const spec::Resolved&) { told = true; },
                      dns.lookup(std::move(last)));
    ASSERT_TRUE(resolver.start({"engine.test:8000"}));
    dns.asked.get_future().wait();
  }  // at once, although nothing has been answered
  dns.answer.set_value();
  over.get_future().wait();
  EXPECT_FALSE(told);
}

TEST(Resolver, what_was_found_before_it_ended_is_not_told_afterwards) {
  auto loop = *net::Loop::create();
  SlowDns dns;
  std::promise<void> over;
  bool told = false;
  std::shared_ptr<void> last(nullptr, [&over](void*) { over.set_value(); });
  auto resolver = std::make_unique<Resolver>(
      *loop, [&](const spec::Resolved&) { told = true; }, dns.lookup(std::move(last)));
  ASSERT_TRUE(resolver->start({"engine.test:8000"}));
  dns.asked.get_future().wait();
  dns.answer.set_value();
  resolver.reset();
  over.get_future().wait();
  loop->post([&] { loop->stop(); });
  loop->run();
  EXPECT_FALSE(told);
}

}  // namespace
}  // namespace signalbox::app
