// SPDX-License-Identifier: Apache-2.0
// The monitor under load: eight I/O threads hand in 50,000 events a second, one batch a turn, with
// all decisions on. Counters: cores spent in hand_in() and by the threads in all, microseconds that
// a reader waits for the lock, microseconds of a hand-in. Times of the machine as it is: on a busy
// one they include waiting for a processor.
#include <benchmark/benchmark.h>
#include <sys/resource.h>

#include <deque>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/check.h"
#include "base/histogram.h"
#include "io/host/core_host.h"
#include "io/net/clock.h"
#include "io/net/loop.h"
#include "io/net/timer.h"

namespace signalbox::host {
namespace {

using namespace std::chrono_literals;

constexpr int kThreads = 8;
constexpr double kEventsPerSecond = 50'000;
constexpr double kEventsPerRequest = 3;  // arrival, first token, end
constexpr Duration kTurn = 1ms;
constexpr Duration kRun = 2s;

double thread_cpu_seconds() {
  rusage usage{};
  getrusage(RUSAGE_THREAD, &usage);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) * 1e-6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

flow::Setup fleet_of(int endpoints) {
  auto fleet = std::make_shared<model::Fleet>();
  fleet->models.push_back({model::ModelId(1), "Llama-3.1-70B", "Llama-3.1-70B", 0, 0, 0, {}});
  model::Pool pool;
  pool.id = model::PoolId(1);
  pool.name = "p";
  pool.model = model::ModelId(1);
  pool.accelerator = "H100-SXM-80GB";
  pool.tensor_parallel = 4;
  pool.precision = "fp8";
  pool.usd_per_hour = 10;
  pool.concurrency_max = 256;
  fleet->pools.push_back(pool);
  for (std::uint32_t i = 1; i <= static_cast<std::uint32_t>(endpoints); ++i) {
    fleet->endpoints.push_back(
        {model::EndpointId(i), pool.id, "10.0.0.1:" + std::to_string(8000 + i), -1, false});
  }
  fleet->routes.push_back({model::RouteId(1), "m", {{model::ModelId(1), 1}}, {}, {}, {}});
  return {flow::Config{}, fleet};
}

// One I/O thread: its requests get their first token after 5 ms and end after 20.
class Worker {
 public:
  Worker(CoreHost& host, std::uint64_t number)
      : host_(host), number_(number), timer_([this] { turn(); }) {
    Result<std::unique_ptr<net::Loop>> loop = net::Loop::create();
    CHECK(loop.has_value());
    loop_ = std::move(*loop);
    owner_ = host.add_owner(*loop_, [this](const model::Action& action) { carry(action); });
  }

  void run() {
    loop_->post([this] {
      started_ = net::now();
      loop_->arm_after(timer_, kTurn);
    });
    const double before = thread_cpu_seconds();
    loop_->run();
    cpu_seconds_ = thread_cpu_seconds() - before;
  }
  void stop() { loop_->post([this] { loop_->stop(); }); }

  double inside_seconds() const { return inside_seconds_; }
  double cpu_seconds() const { return cpu_seconds_; }
  std::uint64_t events() const { return events_; }
  const Histogram& hand_ins() const { return hand_ins_; }

 private:
  struct Sent {
    model::RequestId request;
    model::AttemptId attempt;
    Instant at{};
  };

  void carry(const model::Action& action) {
    const auto* dispatch = std::get_if<model::Dispatch>(&action);
    if (dispatch == nullptr) return;
    prefilling_.push_back({dispatch->request, dispatch->attempt, net::now()});
  }

  void turn() {
    const Instant now = net::now();
    const double due = to_seconds(now - started_) * kEventsPerSecond / kEventsPerRequest / kThreads;
    while (static_cast<double>(requests_) < due) arrive();
    while (!prefilling_.empty() && now - prefilling_.front().at > 5ms) {
      batch_.push_back(model::FirstToken{prefilling_.front().request,
                                         prefilling_.front().attempt});
      decoding_.push_back(prefilling_.front());
      prefilling_.pop_front();
    }
    while (!decoding_.empty() && now - decoding_.front().at > 20ms) {
      end(decoding_.front());
      decoding_.pop_front();
    }
    events_ += batch_.size();
    if (!batch_.empty()) {
      const double before = thread_cpu_seconds();
      const Instant entered = net::now();
      host_.hand_in(owner_, batch_);
      hand_ins_.record(to_seconds(net::now() - entered));
      inside_seconds_ += thread_cpu_seconds() - before;
    }
    loop_->arm_after(timer_, kTurn);
  }

  void arrive() {
    ++requests_;
    model::RequestArrived r;
    r.request = model::RequestId(requests_ * kThreads + number_ + 1);
    r.owner = owner_;
    r.route = model::RouteId(1);
    r.stream = true;
    r.body_bytes = 9000;
    // Eight cuts: half of them a system prompt that others share, the rest its own.
    for (std::uint64_t i = 1; i <= 8; ++i) {
      const std::uint64_t of = i <= 4 ? requests_ % 64 : r.request.value() << 8;
      r.prompt.chain.push_back({of * 16 + i, static_cast<std::int64_t>(i) * 1000});
    }
    r.prompt.bytes = 8000;
    batch_.push_back(std::move(r));
  }

  void end(const Sent& sent) {
    model::AttemptEnded e;
    e.request = sent.request;
    e.attempt = sent.attempt;
    e.status = 200;
    e.delivered = true;
    e.tokens = 50;
    e.usage = {2000, 1000, 50};
    batch_.push_back(e);
  }

  CoreHost& host_;
  std::uint64_t number_;
  std::unique_ptr<net::Loop> loop_;
  net::Timer timer_;
  std::uint16_t owner_ = 0;
  Instant started_{};
  std::vector<model::Event> batch_;
  std::deque<Sent> prefilling_;
  std::deque<Sent> decoding_;
  std::uint64_t requests_ = 0;
  std::uint64_t events_ = 0;
  double inside_seconds_ = 0;
  double cpu_seconds_ = 0;
  Histogram hand_ins_;
};

void BM_Monitor(benchmark::State& state) {
  for (auto _ : state) {
    auto core = std::make_unique<flow::Flow>(flow::Config{}, 1);
    CoreHost host(std::move(core), nullptr);
    std::vector<std::unique_ptr<Worker>> workers;
    for (std::uint64_t i = 0; i < kThreads; ++i) {
      workers.push_back(std::make_unique<Worker>(host, i));
    }
    host.apply(fleet_of(static_cast<int>(state.range(0))));
    std::vector<std::thread> threads;
    for (auto& worker : workers) threads.emplace_back([&worker] { worker->run(); });

    Histogram waits;
    const Instant begin = net::now();
    while (net::now() - begin < kRun) {
      std::this_thread::sleep_for(1ms);
      const Instant asked = net::now();
      host.read([&](const flow::Flow&) { waits.record(to_seconds(net::now() - asked)); });
    }
    const double seconds = to_seconds(net::now() - begin);
    for (auto& worker : workers) worker->stop();
    for (std::thread& thread : threads) thread.join();

    Histogram hand_ins;
    double inside = 0, cpu = 0, events = 0;
    for (const auto& worker : workers) {
      inside += worker->inside_seconds();
      cpu += worker->cpu_seconds();
      events += static_cast<double>(worker->events());
      hand_ins.merge(worker->hand_ins());
    }
    state.counters["events/s"] = events / seconds;
    state.counters["cores_inside"] = inside / seconds;
    state.counters["cores_in_all"] = cpu / seconds;
    state.counters["inside_us/event"] = inside / events * 1e6;
    state.counters["wait_us_p50"] = waits.quantile(0.5) * 1e6;
    state.counters["wait_us_p99"] = waits.quantile(0.99) * 1e6;
    state.counters["hand_in_us_p50"] = hand_ins.quantile(0.5) * 1e6;
    state.counters["hand_in_us_p99"] = hand_ins.quantile(0.99) * 1e6;
  }
}
BENCHMARK(BM_Monitor)->Arg(8)->Arg(64)->Arg(1000)->Iterations(1)->Unit(benchmark::kSecond)
    ->UseRealTime();

}  // namespace
}  // namespace signalbox::host
