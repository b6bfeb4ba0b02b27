// SPDX-License-Identifier: Apache-2.0
// Cost of telling about one request: the access line, a metric, a place in a log file, and a page.
#include <benchmark/benchmark.h>

#include <string>

#include "io/telemetry/access_log.h"
#include "io/telemetry/log_file.h"
#include "io/telemetry/registry.h"

namespace signalbox::telemetry {
namespace {

AccessRecord record() {
  AccessRecord r;
  r.unix_nanos = 1'795'974'123'045'999'999;
  r.request_id = "req-0123456789abcdef";
  r.client = "10.0.0.1:51234";
  r.tenant = "acme";
  r.method = "POST";
  r.path = "/v1/chat/completions";
  r.model = "Llama-3.1-70B-Instruct";
  r.route = "Llama-3.1-70B-Instruct";
  r.endpoint = "10.0.0.2:8000";
  r.status = 200;
  r.attempts = 1;
  r.queue = std::chrono::microseconds(12);
  r.ttft = std::chrono::microseconds(123'456);
  r.total = std::chrono::milliseconds(2500);
  r.usage = {1000, 640, 70};
  r.bytes_in = 1200;
  r.bytes_out = 600;
  return r;
}

void AccessLine(benchmark::State& state) {
  AccessFormat format;
  AccessRecord r = record();
  std::string out;
  for (auto _ : state) {
    out.clear();
    r.unix_nanos += 1'000'000;
    format.append(out, r);
    benchmark::DoNotOptimize(out.data());
  }
}
BENCHMARK(AccessLine);

void LogFileAppend(benchmark::State& state) {
  static auto file = std::move(LogFile::open("/dev/null")).value();
  std::string line(400, 'x');
  for (auto _ : state) file->append(line);
}
BENCHMARK(LogFileAppend)->Threads(1)->Threads(4);

void CounterAdd(benchmark::State& state) {
  static Counter counter;
  for (auto _ : state) counter.add();
}
BENCHMARK(CounterAdd)->Threads(1)->Threads(4);

void HistogramObserve(benchmark::State& state) {
  static Histogram histogram(latency_bounds());
  double v = 0;
  for (auto _ : state) {
    histogram.observe(v);
    v = v > 1 ? 0 : v + 0.001;
  }
}
BENCHMARK(HistogramObserve)->Threads(1)->Threads(4);

void FamilyWith(benchmark::State& state) {
  static Registry registry;
  static Counters& family =
      registry.counters({"signalbox_requests_total", "R.", {"model", "outcome"}});
  for (auto _ : state) family.with({"Llama-3.1-70B-Instruct", "completed"}).add();
}
BENCHMARK(FamilyWith);

void PageOf1000Series(benchmark::State& state) {
  Registry registry;
  auto& family = registry.counters({"signalbox_y_total", "Y.", {"endpoint", "model"}});
  for (int i = 0; i < 1000; ++i) family.with({"10.0.0.1:" + std::to_string(i), "m"}).add(12345);
  std::string out;
  for (auto _ : state) {
    out.clear();
    registry.write(out);
  }
  state.SetBytesProcessed(static_cast<std::int64_t>(state.iterations() * out.size()));
}
BENCHMARK(PageOf1000Series);

}  // namespace
}  // namespace signalbox::telemetry

BENCHMARK_MAIN();
