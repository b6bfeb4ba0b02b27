// SPDX-License-Identifier: Apache-2.0
// Goal: names are looked up until they are known, and the operator hears of those that are not,
// however slow the DNS is. Method: a real control loop with look-ups that wait for the test, and
// standard error captured.
#include "app/controller.h"

#include <gtest/gtest.h>

#include <memory>
#include <mutex>
#include <semaphore>
#include <string>
#include <vector>

#include "core/flow/config_of.h"

namespace signalbox::app {
namespace {

// A DNS server that knows nobody, and says so when it may.
struct DeadDns {
  std::mutex mutex;
  std::vector<std::string> asked;
  std::counting_semaphore<> answers{0};
  net::Loop* loop = nullptr;

  // `stop_at`: the loop is stopped when so many have been asked for.
  static Resolver::Lookup lookup(const std::shared_ptr<DeadDns>& dns, std::size_t stop_at) {
    return [dns, stop_at](const std::string& host, std::uint16_t) {
      {
        const std::lock_guard lock(dns->mutex);
        dns->asked.push_back(host);
        if (dns->asked.size() == stop_at) dns->loop->stop();
      }
      dns->answers.acquire();
      return Result<std::vector<net::Address>>(internal("no such name"));
    };
  }
};

config::Loaded configuration(const std::string& host, const std::string& interval) {
  return *config::load_text("test.yaml", R"(apiVersion: signalbox.dev/v1alpha1
kind: Gateway
metadata: {name: main}
spec: {observe: {resolve_interval: )" + interval + R"(}}
---
apiVersion: signalbox.dev/v1alpha1
kind: Model
metadata: {name: m}
spec: {}
---
apiVersion: signalbox.dev/v1alpha1
kind: Pool
metadata: {name: p}
spec: {model: m, endpoints: ["http://)" + host + R"(:8000"]}
)");
}

class ControllerTest : public ::testing::Test {
 protected:
  ControllerTest() { dns_->loop = loop_.get(); }
  ~ControllerTest() override { dns_->answers.release(100); }

  void make(std::size_t look_ups) {
    controller_ = std::make_unique<Controller>(
        *loop_, host_, [](auto) {}, 7, DeadDns::lookup(dns_, look_ups));
  }
  // What is logged until the loop is stopped; the DNS answers once, after so long.
  std::string logged(Duration answer_after) {
    net::Timer answer([this] { dns_->answers.release(); });
    net::Timer patience([this] { loop_->stop(); });  // only a failing test waits for it
    loop_->arm_after(answer, answer_after);
    loop_->arm_after(patience, std::chrono::seconds(30));
    testing::internal::CaptureStderr();
    loop_->run();
    return testing::internal::GetCapturedStderr();
  }
  static bool tells_of(const std::string& log, const std::string& name) {
    return log.find(name + ":8000 has no address") != std::string::npos;
  }

  std::unique_ptr<net::Loop> loop_ = *net::Loop::create();
  host::CoreHost host_{std::make_unique<flow::Flow>(flow::config_of({}), 7), nullptr};
  std::shared_ptr<DeadDns> dns_ = std::make_shared<DeadDns>();
  std::unique_ptr<Controller> controller_;
};

TEST_F(ControllerTest, tells_what_is_not_found_though_look_ups_outlast_their_interval) {
  make(2);
  config::Loaded loaded = configuration("nowhere.test", "1s");
  loaded.config.gateway.observe.resolve_interval = std::chrono::milliseconds(1);
  controller_->use(std::move(loaded));
  EXPECT_TRUE(tells_of(logged(std::chrono::milliseconds(50)), "nowhere.test"));
}

TEST_F(ControllerTest, other_names_are_looked_up_next_and_not_told_of_before) {
  make(2);
  controller_->use(configuration("old.test", "1h"));
  controller_->use(configuration("new.test", "1h"));
  EXPECT_FALSE(tells_of(logged(std::chrono::milliseconds(1)), "new.test"));
  EXPECT_EQ(dns_->asked, (std::vector<std::string>{"old.test", "new.test"}));
}

TEST_F(ControllerTest, names_that_come_back_while_they_are_looked_up_are_known_after_it) {
  make(2);
  controller_->use(configuration("old.test", "1h"));
  controller_->use(configuration("new.test", "1h"));
  config::Loaded loaded = configuration("old.test", "1h");
  loaded.config.gateway.observe.resolve_interval = std::chrono::milliseconds(100);
  controller_->use(std::move(loaded));
  EXPECT_TRUE(tells_of(logged(std::chrono::milliseconds(1)), "old.test"));
  EXPECT_EQ(dns_->asked, (std::vector<std::string>{"old.test", "old.test"}));
}

}  // namespace
}  // namespace signalbox::app
