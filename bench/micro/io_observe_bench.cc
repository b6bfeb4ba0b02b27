// SPDX-License-Identifier: Apache-2.0
// What watching costs: the time to find out 1,000 engines and to look at each once, and the CPU of
// the observer's thread while 100 engines with a 63 KB page are watched once a second. The engines
// are sockets on a thread of their own. Prints one line of JSON.
//
// usage: io_observe_bench [SECONDS]
#include <sys/resource.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "io/net/clock.h"
#include "io/net/loop.h"
#include "io/net/stream.h"
#include "io/observe/observer.h"

namespace signalbox::observe {
namespace {

std::string reply(const std::string& body) {
  return "HTTP/1.1 200 OK\r\nserver: uvicorn\r\ncontent-length: " + std::to_string(body.size()) +
         "\r\n\r\n" + body;
}

const std::string& models() {
  static const std::string text =
      reply(R"({"data":[{"id":"m","owned_by":"vllm","max_model_len":2048}]})");
  return text;
}

const std::string& page() {
  static const std::string text = [] {
    std::ifstream in(std::string(SIGNALBOX_SOURCE_DIR) +
                     "/testdata/recorded/vllm-0.32-metrics.txt");
    return reply({std::istreambuf_iterator<char>(in), {}});
  }();
  return text;
}

class Server final : public net::Watcher {
 public:
  explicit Server(net::Loop& loop) : loop_(loop) {
    listener_ = std::move(net::listen_on(*net::Address::parse("127.0.0.1:0"))).value();
    if (!loop_.watch(listener_.get(), *this)) std::abort();
  }
  net::Address address() const { return net::local_address(listener_.get()); }
  void on_ready(std::uint32_t) override {
    net::Address peer;
    while (net::Fd fd = net::accept_from(listener_.get(), peer)) {
      connections_.push_back(std::make_unique<Connection>(loop_, std::move(fd)));
    }
  }

 private:
  class Connection final : public net::Watcher {
   public:
    Connection(net::Loop& loop, net::Fd fd)
        : stream_(std::move(net::Stream::accepted(std::move(fd), nullptr)).value()) {
      if (!loop.watch(stream_.fd(), *this)) std::abort();
    }
    void on_ready(std::uint32_t) override {
      char bytes[1024];
      net::IoResult got = stream_.read(bytes, sizeof bytes);
      if (got.status == net::IoResult::Status::Ok) {
        std::string_view asked(bytes, got.bytes);
        rest_ = asked.starts_with("GET /v1/models") ? models() : page();
      }
      while (!rest_.empty()) {
        net::IoResult put = stream_.write(rest_);
        if (put.status != net::IoResult::Status::Ok) return;
        rest_.remove_prefix(put.bytes);
      }
    }

   private:
    net::Stream stream_;
    std::string_view rest_;
  };
  net::Loop& loop_;
  net::Fd listener_;
  std::vector<std::unique_ptr<Connection>> connections_;
};

double thread_cpu() {
  rusage use{};
  getrusage(RUSAGE_THREAD, &use);
  return static_cast<double>(use.ru_utime.tv_sec + use.ru_stime.tv_sec) +
         static_cast<double>(use.ru_utime.tv_usec + use.ru_stime.tv_usec) * 1e-6;
}

struct Run {
  double found_s = 0;   // until every engine was found out
  double looked_s = 0;  // until each was looked at once
  double cpu_s = 0;     // of this thread, in `watched_s` after that
  double watched_s = 0;
  std::uint64_t looks = 0;
};

Run run(int engines, int seconds) {
  auto servers_loop = std::move(net::Loop::create()).value();
  std::vector<std::unique_ptr<Server>> servers;
  std::vector<Target> targets;
  for (int i = 0; i < engines; ++i) {
    servers.push_back(std::make_unique<Server>(*servers_loop));
    Target target;
    target.address = servers.back()->address();
    target.name = target.address.text();
    target.members = {{model::EndpointId(static_cast<std::uint32_t>(i + 1)), -1}};
    targets.push_back(std::move(target));
  }
  std::thread thread([&] { servers_loop->run(); });
  auto loop = std::move(net::Loop::create()).value();
  Run out;
  int looked = 0;
  const Instant start = net::now();
  net::Timer end([&] { loop->stop(); });
  double cpu = 0;
  Sink sink;
  sink.settled = [&] { out.found_s = to_seconds(net::now() - start); };
  sink.event = [&](const model::Event&) {
    if (++looked != engines) return;
    out.looked_s = to_seconds(net::now() - start);
    cpu = thread_cpu();
    loop->arm(end, net::now() + std::chrono::seconds(seconds));
  };
  Observer observer(*loop, {}, Rng(1, "bench"), sink);
  observer.set_targets(targets);
  loop->run();
  out.cpu_s = thread_cpu() - cpu;
  out.watched_s = seconds;
  out.looks = observer.stats().looks;
  servers_loop->stop();
  thread.join();
  return out;
}

}  // namespace
}  // namespace signalbox::observe

int main(int argc, char** argv) {
  using signalbox::observe::run;
  rlimit files{};
  getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  setrlimit(RLIMIT_NOFILE, &files);
  int seconds = argc > 1 ? static_cast<int>(std::strtol(argv[1], nullptr, 10)) : 10;
  auto hundred = run(100, seconds);
  auto thousand = run(1000, 1);
  std::printf("{\"engines_100\":{\"cores\":%.4f,\"looks\":%llu},"
              "\"engines_1000\":{\"found_s\":%.3f,\"looked_s\":%.3f}}\n",
              hundred.cpu_s / hundred.watched_s, static_cast<unsigned long long>(hundred.looks),
              thousand.found_s, thousand.looked_s);
  return 0;
}
