// SPDX-License-Identifier: Apache-2.0
// One emulated engine: the truth model driven by the real clock, the requests in it, and what it
// counts. Belongs to the loop's thread.
// Keeps: every sequence in the truth model, or about to come into it, belongs to one exchange; a
// client that leaves takes its sequences along.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "emulator/connection.h"
#include "emulator/exchange.h"
#include "emulator/metrics.h"
#include "emulator/options.h"
#include "io/net/acceptor.h"
#include "io/net/loop.h"
#include "io/net/timer.h"
#include "sim/engine/engine.h"

namespace signalbox::emulator {

class Emulator;

struct EngineStats {
  std::int64_t http_requests = 0;  // of every kind
  std::int64_t requests = 0;       // of generation, accepted: ended in one of three ways or active
  std::int64_t finished = 0;
  std::int64_t aborted = 0;        // the client left first
  std::int64_t faulted = 0;        // a fault ended it
  std::int64_t refused = 0;        // not accepted: answered 4xx by the engine's own rules
  std::int64_t spoilt = 0;         // not accepted: answered by a fault
  std::int64_t connections = 0;    // ever opened
  std::int64_t events = 0;         // of ended streams
  std::int64_t prompt_tokens = 0;  // of ended requests, whatever became of them
  std::int64_t cached_tokens = 0;
  std::int64_t generated_tokens = 0;
};

// What became of one generation request; kept for checkers.
struct Record {
  std::string id;
  std::string request_id;          // X-Request-Id as it came
  std::string outcome;             // finished, aborted, faulted, lost
  bool stream = false;
  std::int64_t prompt_tokens = 0;
  std::int64_t cached_tokens = 0;
  std::int64_t generated_tokens = 0;
  double queue_ms = 0;
  double ttft_ms = 0;
  double total_ms = 0;
};

class Engine {
 public:
  Engine(net::Loop& loop, Emulator& emulator, const EmulatorOptions& options, int index,
         const truth::EngineSpec& spec, std::int64_t context_tokens);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // Opens the listening socket; with port 0 the port is known afterwards.
  Result<void> listen(const net::Address& address);
  void adopt(net::Stream stream, bool admin_only);

  // routes.cc: answers a request, now or later.
  void handle(Connection& connection, const RequestInfo& info, std::string_view body);
  // The connection is closed; its request ends.
  void gone(Connection& connection);

  const EmulatorOptions& options() const { return options_; }
  const std::string& date();
  const net::Address& address() const { return address_; }
  int index() const { return index_; }
  // Connection `keep`, by which the command came, survives it.
  void apply(const FaultCommand& command, Connection* keep);
  const Fault& fault() const { return fault_; }

 private:
  using Slot = std::uint32_t;
  struct Active {
    std::unique_ptr<Exchange> exchange;
    std::uint32_t serial = 0;  // tells a late output of an earlier tenant of the slot
  };

  // engine.cc
  Instant wall_of(Instant engine_time) const;
  Instant engine_time() const;
  void pump();
  void arm();
  void admit(truth::SequenceSpec spec, int rank);
  void begin_gathered();
  Choice* choice_of(truth::SequenceId id);
  void on_output(const truth::Output& output);
  void on_token(Exchange& ex, std::size_t index, const truth::Output& output);
  void send_head(Exchange& ex);
  void complete(Exchange& ex);
  void fail(Exchange& ex);
  void stall(Exchange& ex);
  void observe(const Exchange& ex, const Choice& choice);
  void end(Exchange& ex, std::string_view outcome);
  void dirty(Exchange& ex);
  void flush_dirty();
  void resume(Exchange& ex);
  void heal();
  void refuse_connections(bool refuse, Connection* keep);
  void lose_all(Connection* keep);
  void abort_all(Exchange& ex);

  // routes.cc
  void serve_vllm(Connection& c, const RequestInfo& info, std::string_view body);
  void serve_llamacpp(Connection& c, const RequestInfo& info, std::string_view body);
  void serve_admin(Connection& c, const RequestInfo& info, std::string_view body);
  void serve_generation(Connection& c, const RequestInfo& info, Api api, std::string_view body);
  bool spoil(Connection& c, const Fault& fault, Api api, std::string_view body);
  void health(Connection& c);
  void embeddings(Connection& c, std::string_view body);
  void tokenize(Connection& c, std::string_view body);
  void refuse(Connection& c, Api api, const Refusal& refusal);
  std::optional<Refusal> check(const GenerateRequest& request, std::int64_t prompt_tokens) const;
  int wanted_rank(const RequestInfo& info) const;
  std::optional<Refusal> check_rank(const RequestInfo& info) const;
  std::unique_ptr<Exchange> make_exchange(const RequestInfo& info, GenerateRequest request);
  void submit(std::unique_ptr<Exchange> exchange, const std::vector<std::string>& prompts);
  AnswerRule rule(const GenerateRequest& request, std::int64_t prompt_tokens, int copy) const;
  std::string stats_json() const;
  std::string records_json(std::size_t limit) const;
  std::string models_json() const;
  std::string props_json() const;
  std::string slots_json() const;
  std::string metrics_text() const;
  std::string expect_json(std::optional<Api> api, std::string_view body, int& status) const;
  std::string new_id(Api api);

  net::Loop& loop_;
  Emulator& emulator_;
  EmulatorOptions options_;
  int index_;
  std::string model_name_;
  std::int64_t context_tokens_;
  truth::Engine truth_;
  Rng ids_;
  Instant origin_;               // of the wall, where the engine's time is zero
  Instant advanced_to_{};        // engine time up to which the truth has run
  std::int64_t started_unix_ns_;
  std::vector<truth::Output> outputs_;
  net::Timer timer_;
  bool pumping_ = false;

  net::Address address_;
  std::unique_ptr<net::Acceptor> acceptor_;  // null while connections are refused
  std::unordered_map<Connection*, std::unique_ptr<Connection>> connections_;
  std::vector<std::unique_ptr<Connection>> dead_;
  net::Timer reaper_;
  std::vector<Connection*> dirty_;

  std::vector<Active> slots_;
  std::vector<Slot> free_slots_;
  std::unordered_map<Exchange*, std::unique_ptr<net::Timer>> stalls_;

  Fault fault_;
  net::Timer heal_;
  struct Gathered {
    truth::SequenceSpec spec;
    int rank = truth::Engine::kAnyRank;
  };
  std::vector<Gathered> gathered_;  // came to an engine at rest, and begin together
  net::Timer gather_;
  std::vector<RequestMetrics> metrics_;  // by rank
  EngineStats stats_;
  std::deque<Record> records_;
  std::vector<double> step_tokens_;  // seen of the truth's counters, by rank
  std::string date_;
  std::int64_t date_second_ = -1;
};

}  // namespace signalbox::emulator
