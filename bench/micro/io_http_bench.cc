// SPDX-License-Identifier: Apache-2.0
// Cost of reading and writing HTTP: heads of a usual size, chunked bodies, event streams.
#include <benchmark/benchmark.h>

#include <string>

#include "io/http/body_decoder.h"
#include "io/http/head_parser.h"
#include "io/http/sse_scanner.h"
#include "io/http/writer.h"

namespace {

using namespace signalbox::http;

const std::string kRequest =
    "POST /v1/chat/completions HTTP/1.1\r\n"
    "Host: signalbox.example:8080\r\n"
    "Authorization: Bearer sk-0123456789abcdef0123456789abcdef\r\n"
    "User-Agent: OpenAI/Python 1.99.9\r\n"
    "Accept: application/json\r\n"
    "Content-Type: application/json\r\n"
    "Accept-Encoding: gzip, deflate\r\n"
    "Connection: keep-alive\r\n"
    "Content-Length: 1234\r\n"
    "\r\n";

const std::string kResponse =
    "HTTP/1.1 200 OK\r\n"
    "date: Thu, 01 Jan 2026 00:00:00 GMT\r\n"
    "server: uvicorn\r\n"
    "content-type: text/event-stream; charset=utf-8\r\n"
    "x-request-id: 0123456789abcdef\r\n"
    "transfer-encoding: chunked\r\n"
    "\r\n";

void BM_RequestHead(benchmark::State& state) {
  RequestParser parser{Limits{}};
  for (auto _ : state) {
    parser.reset();
    benchmark::DoNotOptimize(parser.parse(kRequest));
    benchmark::DoNotOptimize(parser.head().fields.find(FieldName::Authorization));
  }
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(kRequest.size()));
  state.counters["bytes"] = static_cast<double>(kRequest.size());
}
BENCHMARK(BM_RequestHead);

// The head arrives byte by byte: the cost a byte must not grow with the head.
void BM_RequestHeadBySingleBytes(benchmark::State& state) {
  RequestParser parser{Limits{}};
  for (auto _ : state) {
    parser.reset();
    for (std::size_t i = 1; i <= kRequest.size(); ++i) {
      benchmark::DoNotOptimize(parser.parse(std::string_view(kRequest.data(), i)));
    }
  }
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(kRequest.size()));
}
BENCHMARK(BM_RequestHeadBySingleBytes);

void BM_ResponseHead(benchmark::State& state) {
  ResponseParser parser{Limits{}};
  for (auto _ : state) {
    parser.reset(AnswerTo::Other);
    benchmark::DoNotOptimize(parser.parse(kResponse));
  }
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(kResponse.size()));
}
BENCHMARK(BM_ResponseHead);

std::string event_of(std::size_t size) {
  return "data: {\"id\":\"x\",\"text\":\"" + std::string(size - 26, 't') + "\"}\n\n";
}

void BM_ChunkedBody(benchmark::State& state) {
  std::string body;
  for (int i = 0; i < 64; ++i) append_chunk(body, event_of(200));
  body += kLastChunk;
  for (auto _ : state) {
    BodyDecoder decoder({Framing::Kind::Chunked, 0}, Limits{}, Side::Response,
                        BodyDecoder::kNoCap);
    std::string_view input = body;
    while (!decoder.done()) {
      const BodyStep step = decoder.next(input);
      benchmark::DoNotOptimize(step.data);
      input.remove_prefix(step.consumed);
    }
  }
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(body.size()));
  state.SetItemsProcessed(state.iterations() * 64);
}
BENCHMARK(BM_ChunkedBody);

void BM_SseEvents(benchmark::State& state) {
  const std::string event = event_of(static_cast<std::size_t>(state.range(0)));
  std::string input;
  for (int i = 0; i < 64; ++i) input += event;
  for (auto _ : state) {
    SseScanner scanner(256 * 1024);
    scanner.feed(input);
    while (const auto found = scanner.next()) benchmark::DoNotOptimize(found->data);
    benchmark::DoNotOptimize(scanner.direct());
  }
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(input.size()));
  state.SetItemsProcessed(state.iterations() * 64);
}
BENCHMARK(BM_SseEvents)->Arg(60)->Arg(200)->Arg(2000);

// As an engine sends them: one event a read.
void BM_SseOneEventAFeed(benchmark::State& state) {
  const std::string event = event_of(200);
  SseScanner scanner(256 * 1024);
  for (auto _ : state) {
    scanner.feed(event);
    while (const auto found = scanner.next()) benchmark::DoNotOptimize(found->data);
  }
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(event.size()));
}
BENCHMARK(BM_SseOneEventAFeed);

// Worst case for holding: every event is cut in two.
void BM_SseEventsCutInTwo(benchmark::State& state) {
  const std::string event = event_of(200);
  const std::string_view first = std::string_view(event).substr(0, 100);
  const std::string_view second = std::string_view(event).substr(100);
  SseScanner scanner(256 * 1024);
  for (auto _ : state) {
    scanner.feed(first);
    benchmark::DoNotOptimize(scanner.next());
    scanner.feed(second);
    while (const auto found = scanner.next()) benchmark::DoNotOptimize(found->data);
  }
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(event.size()));
}
BENCHMARK(BM_SseEventsCutInTwo);

void BM_WriteResponseHead(benchmark::State& state) {
  std::string out;
  for (auto _ : state) {
    out.clear();
    append_status_line(out, 200);
    append_field(out, "content-type", "text/event-stream; charset=utf-8");
    append_field(out, "x-request-id", "0123456789abcdef");
    append_field(out, "cache-control", "no-store");
    append_field(out, "transfer-encoding", "chunked");
    append_field(out, "x-signalbox-endpoint", "10.0.0.1:8000");
    append_end_of_head(out);
    benchmark::DoNotOptimize(out.data());
  }
}
BENCHMARK(BM_WriteResponseHead);

}  // namespace

BENCHMARK_MAIN();
