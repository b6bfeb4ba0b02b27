// SPDX-License-Identifier: Apache-2.0
// Goal: real clients on real sockets see what a real engine would show them.
// Method: the engines run on a loop in a thread of their own; the tests speak raw HTTP.
#include "emulator/emulator.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <cstdlib>
#include <thread>

#include "emulator/text.h"

namespace signalbox::emulator {
namespace {

// A blocking client connection; it waits ten seconds for what must come.
class Client {
 public:
  explicit Client(const net::Address& address, int receive_buffer = 0) {
    fd_ = ::socket(address.family(), SOCK_STREAM, 0);
    if (receive_buffer > 0) {
      ::setsockopt(fd_, SOL_SOCKET, SO_RCVBUF, &receive_buffer, sizeof receive_buffer);
    }
    timeval limit{10, 0};
    ::setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    connected_ = ::connect(fd_, address.raw(), address.length()) == 0;
  }
  ~Client() { close(); }
  void close() {
    if (fd_ >= 0) ::close(fd_);
    fd_ = -1;
  }
  bool connected() const { return connected_; }
  void send(std::string_view bytes) {
    ASSERT_EQ(::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(bytes.size()));
  }
  void post(std::string_view path, std::string_view body, std::string_view fields = "") {
    send("POST " + std::string(path) + " HTTP/1.1\r\nHost: x\r\n" + std::string(fields) +
         "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + std::string(body));
  }
  void get(std::string_view path) {
    send("GET " + std::string(path) + " HTTP/1.1\r\nHost: x\r\n\r\n");
  }
  // Reads until `mark` has come, or the end. What lies behind it stays for the next call.
  std::string until(std::string_view mark) {
    while (buffer_.find(mark) == buffer_.npos)
      if (!more()) break;
    const std::size_t at = buffer_.find(mark);
    const std::size_t end = at == buffer_.npos ? buffer_.size() : at + mark.size();
    std::string out = buffer_.substr(0, end);
    buffer_.erase(0, end);
    return out;
  }
  std::string to_end() {
    while (more()) continue;
    return std::exchange(buffer_, {});
  }
  // One answer with Content-Length: head and body.
  std::string answer() {
    std::string head = until("\r\n\r\n");
    std::size_t at = head.find("ontent-");
    while (at != head.npos && head.compare(at, 15, "ontent-length: ") != 0 &&
           head.compare(at, 15, "ontent-Length: ") != 0)
      at = head.find("ontent-", at + 1);
    if (at == head.npos) return head;
    const auto size = static_cast<std::size_t>(std::stoul(head.substr(at + 15)));
    while (buffer_.size() < size && more()) continue;
    head += buffer_.substr(0, size);
    buffer_.erase(0, size);
    return head;
  }

 private:
  bool more() {
    char bytes[65536];
    const ssize_t n = ::recv(fd_, bytes, sizeof bytes, 0);
    if (n <= 0) return false;
    buffer_.append(bytes, static_cast<std::size_t>(n));
    return true;
  }
  int fd_ = -1;
  bool connected_ = false;
  std::string buffer_;
};

class EmulatorTest : public testing::Test {
 protected:
  void start(EmulatorOptions options) {
    options.listen = "127.0.0.1:0";
    if (options.fixed_itl_ms == 0) options.speed = 100;
    loop_ = std::move(*net::Loop::create());
    auto made = Emulator::create(*loop_, options);
    ASSERT_TRUE(made) << made.error().message;
    emulator_ = std::move(*made);
    thread_ = std::thread([this] { loop_->run(); });
  }
  void TearDown() override {
    if (!thread_.joinable()) return;
    loop_->stop();
    thread_.join();
    emulator_.reset();
  }
  const net::Address& address(std::size_t i = 0) { return emulator_->engine(i).address(); }
  std::string ask(std::string_view path, std::string_view body) {
    Client client(address());
    client.post(path, body);
    return client.answer();
  }
  std::string stats() {
    Client client(address());
    client.get("/emulator/stats");
    return client.answer();
  }
  // Waits until the engine says so; the reading of each answer is the waiting.
  bool stats_say(const std::string& text) {
    for (int i = 0; i < 20000; ++i)
      if (stats().find(text) != std::string::npos) return true;
    return false;
  }

  std::unique_ptr<net::Loop> loop_;
  std::unique_ptr<Emulator> emulator_;
  std::thread thread_;
};

EmulatorOptions vllm() {
  EmulatorOptions o;
  o.served_model = "tiny";
  o.context_tokens = 4096;
  return o;
}

EmulatorOptions llama() {
  EmulatorOptions o;
  o.dialect = Dialect::LlamaCpp;
  o.context_tokens = 2048;
  return o;
}

// A stream that goes on until somebody ends it.
EmulatorOptions endless(EmulatorOptions o) {
  o.fixed_ttft_ms = 1;
  o.fixed_itl_ms = 2;
  return o;
}

constexpr std::string_view kUser = R"("messages":[{"role":"user","content":"Hi"}])";
constexpr std::string_view kRendered = "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n";

std::string body(std::string_view rest) {
  return "{" + std::string(kUser) + std::string(rest) + "}";
}

// The text of a vLLM or llama.cpp chat stream, put together.
std::string streamed_text(std::string_view stream) {
  std::string text;
  constexpr std::string_view kMark = "\"content\":\"";
  for (std::size_t at = stream.find(kMark); at != stream.npos; at = stream.find(kMark, at)) {
    at += kMark.size();
    std::size_t end = at;
    while (stream[end] != '"') end += stream[end] == '\\' ? 2 : 1;
    text += stream.substr(at, end - at);
    at = end;
  }
  return text;
}

std::string json(std::string_view text) {
  std::string out;
  append_json(out, text);
  return out;
}

int count(std::string_view text, std::string_view part) {
  int n = 0;
  for (std::size_t at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++n;
  return n;
}

TEST_F(EmulatorTest, AVllmStreamHasTheExpectedTextAndItsProperEnd) {
  start(vllm());
  Client client(address());
  client.post("/v1/chat/completions",
              body(R"(,"stream":true,"max_tokens":40,"stream_options":{"include_usage":true})"));
  const std::string all = client.until("\r\n0\r\n\r\n");
  EXPECT_NE(all.find("content-type: text/event-stream; charset=utf-8\r\n"), all.npos);
  EXPECT_EQ(streamed_text(all), json(expected_answer(1, kRendered, 40).text));
  EXPECT_NE(all.find(R"("usage":{"prompt_tokens":13,"total_tokens":53,"completion_tokens":40)"),
            all.npos);
  EXPECT_EQ(count(all, "\"finish_reason\":\"length\""), 1);
  EXPECT_EQ(count(all, "data: [DONE]\n\n"), 1);
}

TEST_F(EmulatorTest, APlainAnswerAndAStreamSayTheSame) {
  start(vllm());
  const std::string plain = ask("/v1/chat/completions", body(R"(,"max_tokens":3000)"));
  const Answer expected = expected_answer(1, kRendered, 3000);
  ASSERT_EQ(expected.finish, Finish::Stop);
  EXPECT_NE(plain.find("\"content\":\"" + json(expected.text) + "\""), plain.npos);
  EXPECT_NE(plain.find("\"finish_reason\":\"stop\""), plain.npos);
  EXPECT_NE(plain.find("\"completion_tokens\":" + std::to_string(expected.tokens)), plain.npos);
  const std::string told = ask("/emulator/expect", body(R"(,"max_tokens":3000)"));
  EXPECT_NE(told.find("\"text\":\"" + json(expected.text) + "\""), told.npos);
}

TEST_F(EmulatorTest, ARepeatedPromptIsCached) {
  start(vllm());
  const std::string prompt(400, 'p');
  const std::string request = R"({"prompt":")" + prompt + R"(","max_tokens":2})";
  EXPECT_NE(ask("/v1/completions", request).find("\"cached_tokens\":0"), std::string::npos);
  EXPECT_NE(ask("/v1/completions", request).find("\"cached_tokens\":96"), std::string::npos);
  const std::string salted =
      R"({"prompt":")" + prompt + R"(","max_tokens":2,"cache_salt":"tenant"})";
  EXPECT_NE(ask("/v1/completions", salted).find("\"cached_tokens\":0"), std::string::npos);
}

// Whether vLLM's page says so of a rank.
bool tells(const std::string& page, std::string_view name, int rank, std::string_view value) {
  return page.find("\nvllm:" + std::string(name) + "{engine=\"" + std::to_string(rank) +
                   "\",model_name=\"tiny\"} " + std::string(value) + "\n") != page.npos;
}

TEST_F(EmulatorTest, EachRankHasACacheAndCountersOfItsOwn) {
  EmulatorOptions o = vllm();
  o.ranks = 3;
  start(o);
  const std::string request = R"({"prompt":")" + std::string(400, 'p') + R"(","max_tokens":2})";
  const auto on_rank = [&](const std::string& rank) {
    Client client(address());
    client.post("/v1/completions", request, "X-data-parallel-rank: " + rank + "\r\n");
    return client.answer();
  };
  EXPECT_NE(on_rank("2").find("\"cached_tokens\":0"), std::string::npos);
  EXPECT_NE(on_rank("1").find("\"cached_tokens\":0"), std::string::npos);
  EXPECT_NE(on_rank("2").find("\"cached_tokens\":96"), std::string::npos);
  EXPECT_NE(on_rank("3").find("is out of range [0, 3)"), std::string::npos);
  EXPECT_NE(on_rank("-2").find(" 400 "), std::string::npos);
  Client client(address());
  client.get("/metrics");
  const std::string page = client.answer();
  EXPECT_TRUE(tells(page, "prompt_tokens_total", 0, "0.0"));
  EXPECT_TRUE(tells(page, "prompt_tokens_total", 1, "100.0"));
  EXPECT_TRUE(tells(page, "prompt_tokens_total", 2, "200.0"));
  EXPECT_TRUE(tells(page, "time_to_first_token_seconds_count", 2, "2.0"));
  // Who has no wish, or none that can be read, goes where the engine's own balance puts it.
  EXPECT_NE(on_rank("any").find(" 200 "), std::string::npos);
  EXPECT_NE(ask("/v1/completions", request).find(" 200 "), std::string::npos);
}

TEST_F(EmulatorTest, ThoseWhoComeToAnEngineAtRestShareAPass) {
  EmulatorOptions o = vllm();
  o.gather_ms = 1000;
  start(o);
  const std::string_view request = R"({"prompt":"a","max_tokens":1})";
  Client one(address()), other(address()), leaves(address());
  one.post("/v1/completions", request);
  leaves.post("/v1/completions", request);
  EXPECT_TRUE(stats_say("\"active\":2,"));
  leaves.close();
  EXPECT_TRUE(stats_say("\"aborted\":1,"));
  other.post("/v1/completions", request);
  EXPECT_NE(one.answer().find(" 200 "), std::string::npos);
  EXPECT_NE(other.answer().find(" 200 "), std::string::npos);
  Client client(address());
  client.get("/metrics");
  EXPECT_TRUE(tells(client.answer(), "iteration_tokens_total_count", 0, "1.0"));
  EXPECT_TRUE(stats_say("\"running\":0,\"waiting\":0,"));
}

TEST_F(EmulatorTest, AnotherEngineContinuesAPartialAnswer) {
  EmulatorOptions o = vllm();
  o.count = 2;
  start(o);
  const Answer whole = expected_answer(1, kRendered, 30);
  const std::string partial = whole.text.substr(0, 7 * kTokenBytes);
  Client client(address(1));
  client.post("/v1/chat/completions",
              R"({"messages":[{"role":"user","content":"Hi"},{"role":"assistant","content":")" +
                  json(partial) +
                  R"("}],"continue_final_message":true,"add_generation_prompt":false,)"
                  R"("max_tokens":23})");
  const std::string rest = client.answer();
  EXPECT_NE(rest.find("\"content\":\"" + json(whole.text.substr(partial.size())) + "\""),
            rest.npos);
}

TEST_F(EmulatorTest, RequestsOnOneConnectionAreAnsweredInOrder) {
  start(vllm());
  Client client(address());
  client.get("/version");
  client.post("/v1/completions", R"({"prompt":"a","max_tokens":1})");
  client.get("/v1/models");
  EXPECT_NE(client.answer().find("0.32.0"), std::string::npos);
  EXPECT_NE(client.answer().find("text_completion"), std::string::npos);
  EXPECT_NE(client.answer().find("\"max_model_len\":4096"), std::string::npos);
}

TEST_F(EmulatorTest, ChunkedBodiesAndExpectContinueAreTaken) {
  start(vllm());
  Client client(address());
  client.send("POST /v1/completions HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n"
              "Expect: 100-continue\r\n\r\n");
  EXPECT_NE(client.until("\r\n\r\n").find("100 Continue"), std::string::npos);
  client.send("14\r\n{\"prompt\":\"a\",\"max_t\r\na\r\nokens\":1} \r\n0\r\n\r\n");
  EXPECT_NE(client.answer().find("200 OK"), std::string::npos);
}

TEST_F(EmulatorTest, VllmRefusesUnknownModelsLongPromptsAndWrongPaths) {
  start(vllm());
  EXPECT_NE(ask("/v1/chat/completions", body(R"(,"model":"nope")")).find(
                R"({"error":{"message":"The model `nope` does not exist. Valid aliases: tiny.",)"
                R"("type":"NotFoundError","param":"model","code":404}})"),
            std::string::npos);
  const std::string prompt(4 * 5000, 'x');
  EXPECT_NE(ask("/v1/completions", R"({"prompt":")" + prompt + "\"}").find("400 Bad Request"),
            std::string::npos);
  EXPECT_NE(ask("/nope", "{}").find("404 Not Found"), std::string::npos);
  Client client(address());
  client.get("/v1/chat/completions");
  EXPECT_NE(client.answer().find("allow: POST\r\n"), std::string::npos);
}

TEST_F(EmulatorTest, ALlamaStreamPairsItsFirstAndLastEventsAndCloses) {
  start(llama());
  Client client(address());
  client.post("/v1/chat/completions",
              body(R"(,"model":"any","stream":true,"max_tokens":3,)"
                   R"("stream_options":{"include_usage":true})"));
  const std::string all = client.to_end();  // the server closes, although it said keep-alive
  EXPECT_NE(all.find("Keep-Alive: timeout=5"), all.npos);
  EXPECT_EQ(streamed_text(all), json(expected_answer(1, kRendered, 3).text));
  EXPECT_EQ(count(all, "data: "), 7);
  EXPECT_EQ(count(all, "\r\ndata: "), 5);  // chunks: two of the events share theirs with another
  EXPECT_NE(all.find("\"timings\":{\"cache_n\":0,\"prompt_n\":13,"), all.npos);
  EXPECT_TRUE(all.ends_with("0\r\n\r\n"));
}

TEST_F(EmulatorTest, LlamaSendsTheHeadWithTheSlotAndQueuesWithoutAByte) {
  EmulatorOptions o = endless(llama());
  o.slots = 1;
  start(o);
  Client first(address());
  first.post("/v1/chat/completions", body(R"(,"stream":true,"ignore_eos":true)"));
  EXPECT_NE(first.until("\r\n\r\n").find("200 OK"), std::string::npos);
  Client second(address());
  second.post("/v1/chat/completions", body(R"(,"stream":true,"max_tokens":1)"));
  ASSERT_TRUE(stats_say("\"waiting\":1"));
  first.close();
  EXPECT_NE(second.until("\r\n\r\n").find("200 OK"), std::string::npos);
}

TEST_F(EmulatorTest, LlamaEchoesTheContinuedTextInAPlainAnswer) {
  start(llama());
  const std::string all =
      ask("/v1/chat/completions",
          R"({"messages":[{"role":"user","content":"Hi"},{"role":"assistant","content":"Red"}],)"
          R"("max_tokens":2})");
  EXPECT_NE(all.find("\"content\":\"Red"), all.npos);
}

TEST_F(EmulatorTest, AClientThatLeavesTakesItsSequenceAlong) {
  start(endless(vllm()));
  Client client(address());
  client.post("/v1/chat/completions", body(R"(,"stream":true,"ignore_eos":true)"));
  client.until("\"content\":\" ");
  client.close();
  EXPECT_TRUE(stats_say("\"aborted\":1"));
  EXPECT_TRUE(stats_say("\"running\":0,\"waiting\":0,"));
  EXPECT_TRUE(stats_say("\"kv_blocks_used\":0"));
}

TEST_F(EmulatorTest, AnthropicAndResponsesStreamsAreWellFormed) {
  start(vllm());
  Client client(address());
  client.post("/v1/messages", body(R"(,"stream":true,"max_tokens":3)"));
  const std::string messages = client.until("\r\n0\r\n\r\n");
  EXPECT_EQ(count(messages, "event: content_block_delta"), 3);
  EXPECT_LT(messages.find("message_start"), messages.find("content_block_start"));
  EXPECT_NE(messages.find("event: message_stop"), messages.npos);
  client.post("/v1/responses", R"({"input":"Hi","stream":true,"max_output_tokens":3})");
  const std::string responses = client.until("\r\n0\r\n\r\n");
  EXPECT_NE(responses.find("\"sequence_number\":10"), responses.npos);
  EXPECT_NE(responses.find("event: response.incomplete"), responses.npos);
}

TEST_F(EmulatorTest, EmbeddingsAreAFunctionOfTheText) {
  start(vllm());
  const auto vector = [&](std::string_view text) {
    const std::string all = ask("/v1/embeddings", R"({"input":")" + std::string(text) + "\"}");
    return all.substr(all.find("\"embedding\":["), 200);
  };
  EXPECT_EQ(vector("a"), vector("a"));
  EXPECT_NE(vector("a"), vector("b"));
}

TEST_F(EmulatorTest, AnIdleConnectionIsClosed) {
  EmulatorOptions o = vllm();
  o.idle_close_s = 0.01;
  start(o);
  Client client(address());
  client.get("/version");
  EXPECT_NE(client.to_end().find("0.32.0"), std::string::npos);
}

TEST_F(EmulatorTest, AClientThatReadsALongAnswerSlowlyIsNotIdle) {
  EmulatorOptions o = vllm();
  o.idle_close_s = 0.25;
  start(o);
  // The answer is more than all socket buffers hold: some eight bytes per token.
  const std::string request = R"({"prompt":")" + std::string(8 << 20, 'x') + "\"}";
  Client slow(address(), 65536);
  slow.post("/tokenize", request);
  EXPECT_NE(slow.until("\r\n\r\n").find("200 OK"), std::string::npos);
  // A connection that is idle from now on is closed: the time has passed for all.
  Client other(address());
  other.get("/version");
  EXPECT_NE(other.to_end().find("0.32.0"), std::string::npos);
  EXPECT_TRUE(slow.to_end().find("\"token_strs\":null}") != std::string::npos);
}

TEST_F(EmulatorTest, EveryAcceptedRequestIsCountedOnceWhenItEnds) {
  start(vllm());
  for (int i = 0; i < 5; ++i) ask("/v1/completions", R"({"prompt":"a","max_tokens":2})");
  ask("/v1/completions", R"({"prompt":""})");
  const std::string all = stats();
  EXPECT_NE(all.find("\"requests\":5,\"active\":0,\"finished\":5,\"aborted\":0,\"faulted\":0,"
                     "\"refused\":1,"),
            all.npos)
      << all;
  EXPECT_NE(all.find("\"ended_generated_tokens\":10,"), all.npos);
  Client client(address());
  client.get("/emulator/records?limit=2");
  const std::string records = client.answer();
  EXPECT_EQ(count(records, "\"outcome\":\"finished\""), 2);
}

class FaultTest : public EmulatorTest {
 protected:
  void fault(std::string_view command) {
    EXPECT_NE(ask("/emulator/fault", command).find("200 OK"), std::string::npos);
  }
  std::string stream() {
    Client client(address());
    client.post("/v1/chat/completions",
                body(R"(,"stream":true,"max_tokens":20,"ignore_eos":true)"),
                "Connection: close\r\n");
    return client.to_end();
  }
};

TEST_F(FaultTest, StatusWithRetryAfterHitsAsOftenAsAsked) {
  start(vllm());
  fault(R"({"status":503,"retry_after":1,"times":1})");
  const std::string first = ask("/v1/chat/completions", body(R"(,"max_tokens":1)"));
  EXPECT_NE(first.find("503 Service Unavailable"), first.npos);
  EXPECT_NE(first.find("retry-after: 1\r\n"), first.npos);
  const std::string second = ask("/v1/chat/completions", body(R"(,"max_tokens":1)"));
  EXPECT_NE(second.find("200 OK"), second.npos);
}

TEST_F(FaultTest, ACutStreamHasItsEventsAndNoEnd) {
  start(vllm());
  fault(R"({"cut_after_events":5})");
  const std::string all = stream();
  EXPECT_EQ(count(all, "data: "), 5);
  EXPECT_EQ(all.find("[DONE]"), all.npos);
  EXPECT_FALSE(all.ends_with("0\r\n\r\n"));
  EXPECT_TRUE(stats_say("\"kv_blocks_used\":0"));
}

TEST_F(FaultTest, APlainAnswerIsCutInItsMiddle) {
  start(vllm());
  fault(R"({"cut_plain":true})");
  Client client(address());
  client.post("/v1/chat/completions", body(R"(,"max_tokens":20)"));
  const std::string all = client.to_end();
  const std::size_t head = all.find("\r\n\r\n");
  ASSERT_NE(head, all.npos);
  const std::size_t at = all.find("content-length: ");
  const int promised = std::stoi(all.substr(at + 16));
  EXPECT_LT(static_cast<int>(all.size() - head - 4), promised);
  EXPECT_GT(all.size(), head + 4);
}

TEST_F(FaultTest, AnErrorEventComesBeforeACleanEnd) {
  start(vllm());
  fault(R"({"error_event_after":3})");
  const std::string all = stream();
  EXPECT_NE(all.find("data: {\"error\": {\"message\": \"EngineCore encountered an issue."),
            all.npos);
  EXPECT_LT(all.find("EngineCore"), all.find("data: [DONE]"));
  EXPECT_TRUE(all.ends_with("0\r\n\r\n"));
}

TEST_F(FaultTest, AStallEndsByItselfAndLosesNothing) {
  start(vllm());
  fault(R"({"stall_after_events":2,"stall_ms":20})");
  const std::string all = stream();
  EXPECT_EQ(streamed_text(all).size(),
            json(expected_answer(1, kRendered, 20).text).size());
  EXPECT_TRUE(all.ends_with("0\r\n\r\n"));
}

TEST_F(FaultTest, AStallWithoutEndIsHealedByClearing) {
  start(vllm());
  fault(R"({"stall_after_events":2})");
  Client client(address());
  client.post("/v1/chat/completions", body(R"(,"stream":true,"max_tokens":9,"ignore_eos":true)"));
  client.until("\"content\":\" ");
  ASSERT_TRUE(stats_say("\"running\":0"));
  fault(R"({"clear":true})");
  EXPECT_NE(client.until("\r\n0\r\n\r\n").find("[DONE]"), std::string::npos);
}

TEST_F(FaultTest, RefusedConnectionsAreTakenAgainAfterClearing) {
  EmulatorOptions o = vllm();
  o.count = 2;
  start(o);
  Client admin(address(1));
  admin.post("/emulator/fault?engine=0", R"({"refuse":true})");
  admin.answer();
  EXPECT_FALSE(Client(address(0)).connected());
  admin.post("/emulator/fault?engine=0", R"({"clear":true})");
  admin.answer();
  EXPECT_TRUE(Client(address(0)).connected());
}

TEST_F(FaultTest, ACrashResetsEveryConnectionAndForgetsEverything) {
  start(endless(vllm()));
  Client client(address());
  client.post("/v1/chat/completions", body(R"(,"stream":true,"ignore_eos":true)"));
  client.until("\"content\":\" ");
  fault(R"({"crash":true})");
  const std::string rest = client.to_end();
  EXPECT_EQ(rest.find("[DONE]"), rest.npos);
  const std::string after = stats();
  EXPECT_NE(after.find("\"incarnation\":2"), after.npos);
  EXPECT_NE(after.find("\"tokens\":0"), after.npos);
  EXPECT_NE(after.find("\"active\":0"), after.npos);
}

TEST_F(FaultTest, GarbageIsNoHttp) {
  start(vllm());
  fault(R"({"garbage":true})");
  EXPECT_EQ(stream().find("HTTP/1.1"), std::string::npos);
  fault(R"({"garbage_json":true})");
  EXPECT_NE(stream().find("data: {\"id\":\"x\",\"choices\":[{\"index\":0,\n\n"), std::string::npos);
}

TEST(EmulatorOptionsTest, WhatCannotWorkIsAnErrorThatSaysHowToMendIt) {
  const auto loop = std::move(*net::Loop::create());
  EmulatorOptions o;
  o.listen = "127.0.0.1:0";
  o.model = "nope";
  EXPECT_FALSE(Emulator::create(*loop, o));
  o = EmulatorOptions{};
  o.listen = "127.0.0.1:0";
  o.kv_tokens = 1000;
  o.context_tokens = 4096;
  const auto made = Emulator::create(*loop, o);
  ASSERT_FALSE(made);
  EXPECT_NE(made.error().message.find("--context"), std::string::npos);
  for (const std::string wrong : {"1,2,3,4,5", "1,2,3,4,5,6,7", "1,2,3,4,5,", "1,2,x,4,5,6",
                                  "1,2,-3,4,5,6", "1 2 3 4 5 6", "1,2,3,4,5,nan"}) {
    o = EmulatorOptions{};
    o.listen = "127.0.0.1:0";
    o.steps = wrong;
    EXPECT_FALSE(Emulator::create(*loop, o)) << wrong;
  }
  o.steps = "60,0.14,1e-5,20,0.13,3.3e-5";
  EXPECT_TRUE(Emulator::create(*loop, o));
  o.dialect = Dialect::LlamaCpp;
  o.ranks = 2;
  EXPECT_FALSE(Emulator::create(*loop, o));
}

}  // namespace
}  // namespace signalbox::emulator
