// SPDX-License-Identifier: Apache-2.0
// The truth model in real time: what its outputs become on the wire, and how requests end.
#include "emulator/engine.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "io/net/clock.h"

namespace signalbox::emulator {
namespace {

// The names of a sequence: whose it is, and which of its choices.
constexpr int kChoiceBits = 12;
constexpr int kSlotBits = 20;

truth::SequenceId sequence_id(std::uint32_t serial, std::uint32_t slot, std::size_t choice) {
  return (std::uint64_t{serial} << (kSlotBits + kChoiceBits)) |
         (std::uint64_t{slot} << kChoiceBits) | choice;
}

std::size_t slot_of(truth::SequenceId id) {
  return static_cast<std::size_t>((id >> kChoiceBits) & ((1u << kSlotBits) - 1));
}

std::size_t choice_index(truth::SequenceId id) {
  return static_cast<std::size_t>(id & ((1u << kChoiceBits) - 1));
}

double wall_seconds(Duration d) { return to_seconds(d); }

}  // namespace

Engine::Engine(net::Loop& loop, Emulator& emulator, const EmulatorOptions& options, int index,
               const truth::EngineSpec& spec, std::int64_t context_tokens)
    : loop_(loop),
      emulator_(emulator),
      options_(options),
      index_(index),
      model_name_(options.served_model.empty() ? options.model : options.served_model),
      context_tokens_(context_tokens),
      truth_(spec, Rng(options.seed + static_cast<std::uint64_t>(index), "truth")),
      ids_(static_cast<std::uint64_t>(net::unix_nanos()) + static_cast<std::uint64_t>(index),
           "ids"),
      origin_(net::now()),
      started_unix_ns_(net::unix_nanos()),
      timer_([this] { pump(); }),
      reaper_([this] { dead_.clear(); }),
      heal_([this] { heal(); }),
      gather_([this] { begin_gathered(); }),
      metrics_(static_cast<std::size_t>(spec.ranks)),
      step_tokens_(static_cast<std::size_t>(spec.ranks)) {}

Engine::~Engine() = default;

Result<void> Engine::listen(const net::Address& address) {
  TRY_ASSIGN(net::Fd listener, net::listen_on(address));
  acceptor_ = std::make_unique<net::Acceptor>(
      loop_, std::move(listener), [this](net::Fd connection, const net::Address&) {
        auto stream = net::Stream::accepted(std::move(connection), nullptr);
        if (stream) adopt(std::move(*stream), false);
      });
  // Other threads may ask for the address: once known it stays, and is not written again.
  if (address_.length() == 0) address_ = acceptor_->address();
  return acceptor_->start();
}

void Engine::adopt(net::Stream stream, bool admin_only) {
  ++stats_.connections;
  auto connection = std::make_unique<Connection>(loop_, *this, std::move(stream), admin_only);
  if (!connection->start()) return;
  Connection* key = connection.get();
  connections_.emplace(key, std::move(connection));
}

void Engine::gone(Connection& connection) {
  Exchange* ex = connection.exchange();
  connection.serve(nullptr);
  if (ex != nullptr) {
    ex->connection = nullptr;
    ex->events.attach(nullptr);
    // llama.cpp does not notice that the client of a plain answer has left.
    const bool unnoticed = options_.dialect == Dialect::LlamaCpp && !ex->request.stream;
    if (!unnoticed || ex->complete) {
      abort_all(*ex);
      end(*ex, "aborted");
    }
  }
  const auto it = connections_.find(&connection);
  if (it == connections_.end()) return;
  dead_.push_back(std::move(it->second));
  connections_.erase(it);
  loop_.arm_after(reaper_, Duration::zero());
}

void Engine::abort_all(Exchange& ex) {
  for (const Choice& choice : ex.choices) {
    if (choice.done) continue;
    const auto gathered = std::erase_if(
        gathered_, [&](const Gathered& g) { return g.spec.id == choice.sequence; });
    if (gathered == 0) truth_.abort(choice.sequence, advanced_to_);
  }
}

Instant Engine::engine_time() const {
  const auto wall = static_cast<double>((net::now() - origin_).count());
  return Instant(Duration(static_cast<std::int64_t>(wall * options_.speed)));
}

Instant Engine::wall_of(Instant engine_time) const {
  const auto ns = static_cast<double>(engine_time.time_since_epoch().count());
  return origin_ + Duration(static_cast<std::int64_t>(ns / options_.speed) + 1);
}

// Runs the truth up to the present, one event after the other, and sends what came of it: one write
// per connection, however many steps were due.
void Engine::pump() {
  if (pumping_) return;
  pumping_ = true;
  for (bool again = true; again;) {
    const Instant now = engine_time();
    while (truth_.next_event() <= now) {
      outputs_.clear();
      truth_.advance(truth_.next_event(), outputs_);
      for (std::size_t rank = 0; rank < metrics_.size(); ++rank) {
        const double tokens = truth_.counters(static_cast<int>(rank)).step_tokens.sum;
        const double before = std::exchange(step_tokens_[rank], tokens);
        if (tokens > before) metrics_[rank].iteration_tokens.observe(tokens - before);
      }
      for (const truth::Output& output : outputs_) on_output(output);
    }
    advanced_to_ = now;
    flush_dirty();  // may submit what was pipelined behind an answer
    again = truth_.next_event() <= now;
  }
  pumping_ = false;
  arm();
}

void Engine::arm() {
  const Instant next = truth_.next_event();
  if (next == kNever)
    timer_.disarm();
  else
    loop_.arm(timer_, wall_of(next));
}

void Engine::submit(std::unique_ptr<Exchange> exchange, const std::vector<std::string>& prompts) {
  if (!pumping_) pump();
  Slot slot = static_cast<Slot>(slots_.size());
  if (free_slots_.empty()) {
    CHECK(slot < (1u << kSlotBits));
    slots_.emplace_back();
  } else {
    slot = free_slots_.back();
    free_slots_.pop_back();
  }
  Active& active = slots_[slot];
  ++active.serial;
  active.exchange = std::move(exchange);
  Exchange& ex = *active.exchange;
  ex.slot = slot;
  const auto stride = static_cast<std::size_t>(truth_.block_tokens()) / 16;
  const std::uint64_t salt =
      ex.request.cache_salt.empty() ? 0 : text_identity(ex.request.cache_salt);
  for (std::size_t i = 0; i < ex.choices.size(); ++i) {
    Choice& choice = ex.choices[i];
    const int copy = static_cast<int>(i % static_cast<std::size_t>(ex.request.n));
    const std::string& prompt = prompts[i / static_cast<std::size_t>(ex.request.n)];
    TextState state;
    state.append(prompt);
    choice.prompt_tokens = std::max<std::int64_t>(1, token_count(prompt));
    choice.answer = generate(state, rule(ex.request, choice.prompt_tokens, copy));
    choice.sequence = sequence_id(active.serial, slot, i);
    truth::SequenceSpec spec{choice.sequence, choice.prompt_tokens, choice.answer.tokens, {}};
    const auto& chain = state.chain();
    for (std::size_t k = stride; k <= chain.size(); k += stride)
      spec.block_hashes.push_back(chain[k - 1] ^ salt);
    const bool at_rest = !gathered_.empty() || truth_.next_event() == kNever;
    if (options_.gather_ms > 0 && at_rest) gathered_.push_back({std::move(spec), ex.rank});
    else admit(std::move(spec), ex.rank);
  }
  ex.open_choices = ex.choices.size();
  if (!gathered_.empty() && !gather_.armed())
    loop_.arm_after(gather_, from_seconds(options_.gather_ms * 1e-3));
  if (!pumping_) pump();
}

void Engine::admit(truth::SequenceSpec spec, int rank) {
  Choice* choice = choice_of(spec.id);
  choice->rank = truth_.submit(std::move(spec), advanced_to_, rank).rank;
}

// All at one instant: they share a pass.
void Engine::begin_gathered() {
  pump();
  for (Gathered& g : std::exchange(gathered_, {})) admit(std::move(g.spec), g.rank);
  pump();
}

// Null when its exchange is over.
Choice* Engine::choice_of(truth::SequenceId id) {
  Active& active = slots_[slot_of(id)];
  if (!active.exchange || active.serial != id >> (kSlotBits + kChoiceBits)) return nullptr;
  return &active.exchange->choices[choice_index(id)];
}

void Engine::on_output(const truth::Output& output) {
  if (choice_of(output.id) == nullptr) return;
  Exchange& ex = *slots_[slot_of(output.id)].exchange;
  const std::size_t index = choice_index(output.id);
  if (output.kind == truth::Output::Kind::Token) return on_token(ex, index, output);
  Choice& choice = ex.choices[index];
  choice.admitted = wall_of(output.at);
  choice.cached = output.cached_tokens;
  // llama.cpp: the head says that there is a slot, not that there is a token.
  if (options_.dialect == Dialect::LlamaCpp && ex.request.stream) send_head(ex);
}

void Engine::send_head(Exchange& ex) {
  if (ex.head_sent || ex.connection == nullptr) return;
  ex.head_sent = true;
  ex.connection->begin_stream();
  dirty(ex);
}

void Engine::on_token(Exchange& ex, std::size_t index, const truth::Output& output) {
  Choice& choice = ex.choices[index];
  const Instant at = wall_of(output.at);
  RequestMetrics& metrics = metrics_[static_cast<std::size_t>(choice.rank)];
  if (output.first)
    metrics.ttft.observe(wall_seconds(at - ex.arrived));
  else
    metrics.itl.observe(wall_seconds(at - choice.last));
  if (output.first) choice.first = at;
  choice.last = at;
  choice.produced = output.token;
  if (ex.request.stream) {
    if (!ex.opened) stream_open(ex);
    ex.opened = true;
    stream_token(ex, index);
    dirty(ex);
  }
  if (output.last) {
    choice.done = true;
    --ex.open_choices;
    observe(ex, choice);
  }
  if (ex.open_choices == 0) return complete(ex);
  if (ex.events.state() != EventStream::State::Flowing) fail(ex);
}

// The last choice is done.
void Engine::complete(Exchange& ex) {
  ex.complete = true;
  if (ex.request.stream) {
    stream_close(ex);
    if (ex.events.state() == EventStream::State::Flowing ||
        ex.events.state() == EventStream::State::Stalled)
      ex.events.finish();
    if (ex.events.state() != EventStream::State::Flowing) return fail(ex);
    if (Connection* c = ex.connection; c != nullptr) {
      dirty(ex);
      // llama.cpp closes behind a stream although it has announced otherwise.
      if (options_.dialect == Dialect::LlamaCpp) c->close_after();
      c->end_request();
    }
    return end(ex, "finished");
  }
  Connection* c = ex.connection;
  if (c == nullptr) return end(ex, "aborted");
  const std::string_view type = options_.dialect == Dialect::Vllm
                                    ? "application/json"
                                    : "application/json; charset=utf-8";
  dirty(ex);
  const std::string body = plain_answer(ex);
  c->reply(200, type, body);
  if (!ex.fault.cut_plain) return end(ex, "finished");
  c->out().resize(c->out().size() - body.size() / 2);
  end(ex, "faulted");
  c->close(Connection::Close::Orderly);
}

// A fault has struck the stream.
void Engine::fail(Exchange& ex) {
  if (ex.events.state() == EventStream::State::Stalled) return stall(ex);
  Connection* c = ex.connection;
  const bool cut = ex.events.state() == EventStream::State::Cut;
  const bool reset = ex.fault.reset;
  if (!cut) stream_error(ex);
  abort_all(ex);
  end(ex, "faulted");
  if (c == nullptr) return;
  c->serve(nullptr);
  if (!cut) {
    if (options_.dialect == Dialect::LlamaCpp) c->close_after();
    return c->end_request();
  }
  c->close(reset ? Connection::Close::Reset : Connection::Close::Orderly);
}

// Silence begins; it ends by itself after stall_ms, or when the fault is cleared.
void Engine::stall(Exchange& ex) {
  auto& timer = stalls_[&ex];
  if (timer) return;
  timer = std::make_unique<net::Timer>([this, &ex] {
    resume(ex);
    pump();
  });
  if (ex.events.stall_ms() > 0)
    loop_.arm_after(*timer, std::chrono::milliseconds(ex.events.stall_ms()));
}

void Engine::resume(Exchange& ex) {
  ex.events.resume();
  dirty(ex);
  if (!ex.complete) return;
  Connection* c = ex.connection;
  if (c != nullptr && options_.dialect == Dialect::LlamaCpp) c->close_after();
  if (c != nullptr) c->end_request();
  end(ex, "finished");
}

void Engine::observe(const Exchange& ex, const Choice& c) {
  RequestMetrics& m = metrics_[static_cast<std::size_t>(c.rank)];
  const auto computed = static_cast<double>(c.prompt_tokens - c.cached);
  const double prefill = wall_seconds(c.first - c.admitted);
  const double decode = wall_seconds(c.last - c.first);
  const auto produced = static_cast<double>(c.produced);
  m.prompt_tokens.observe(static_cast<double>(c.prompt_tokens));
  m.generation_tokens.observe(produced);
  m.max_generation_tokens.observe(produced);
  m.params_n.observe(ex.request.n);
  m.params_max_tokens.observe(static_cast<double>(
      ex.request.max_tokens.value_or(ex.context_tokens - c.prompt_tokens)));
  m.tpot.observe(c.produced > 1 ? decode / (produced - 1) : 0);
  m.e2e.observe(wall_seconds(c.last - ex.arrived));
  m.queue.observe(wall_seconds(c.admitted - ex.arrived));
  m.inference.observe(wall_seconds(c.last - c.admitted));
  m.prefill.observe(prefill);
  m.decode.observe(decode);
  m.preemptions.observe(0);
  m.prefill_computed.observe(computed);
  ++(c.answer.finish == Finish::Stop ? m.finished_stop : m.finished_length);
  m.longest = std::max(m.longest, c.prompt_tokens + c.produced);
  m.prompt_seconds += prefill;
  m.predicted_seconds += decode;
  m.predicted_tokens += c.produced;
  m.computed_prompt_tokens += c.prompt_tokens - c.cached;
  m.cached_prompt_tokens += c.cached;
}

// The exchange is over and destroyed; its outcome stays.
void Engine::end(Exchange& ex, std::string_view outcome) {
  ++(outcome == "finished" ? stats_.finished
                           : outcome == "aborted" ? stats_.aborted : stats_.faulted);
  stats_.events += ex.events.events();
  stats_.prompt_tokens += ex.prompt_tokens();
  stats_.cached_tokens += ex.cached_tokens();
  stats_.generated_tokens += ex.produced_tokens();
  if (options_.records_max > 0) {
    const Choice& c = ex.choices.front();
    const auto since = [&](Instant t) { return t == kNever ? -1 : milliseconds(t - ex.arrived); };
    records_.push_back({ex.id, ex.client_request_id, std::string(outcome), ex.request.stream,
                        ex.prompt_tokens(), ex.cached_tokens(), ex.produced_tokens(),
                        since(c.admitted), since(c.first), milliseconds(net::now() - ex.arrived)});
    if (records_.size() > static_cast<std::size_t>(options_.records_max)) records_.pop_front();
  }
  if (ex.connection != nullptr && ex.connection->exchange() == &ex) ex.connection->serve(nullptr);
  stalls_.erase(&ex);
  const Slot slot = ex.slot;
  slots_[slot].exchange.reset();
  free_slots_.push_back(slot);
}

void Engine::dirty(Exchange& ex) {
  if (ex.connection == nullptr || ex.connection->awaits_flush) return;
  ex.connection->awaits_flush = true;
  dirty_.push_back(ex.connection);
}

void Engine::flush_dirty() {
  for (std::size_t i = 0; i < dirty_.size(); ++i) {
    Connection* c = dirty_[i];
    c->awaits_flush = false;
    if (!c->closed()) c->flush();
  }
  dirty_.clear();
}

void Engine::apply(const FaultCommand& command, Connection* keep) {
  if (command.clear) heal();
  fault_ = command.fault;
  if (command.refuse) refuse_connections(*command.refuse, keep);
  if (command.slow) truth_.slow(*command.slow);
  if (command.stall_ms > 0) {
    const auto ms = static_cast<double>(command.stall_ms) * options_.speed;
    truth_.stall_until(engine_time() + from_seconds(ms * 1e-3));
  }
  if (command.drop_cache) truth_.drop_cache();
  if (command.crash) lose_all(keep);
  if (command.crash && command.for_ms > 0) refuse_connections(true, keep);
  if (command.for_ms > 0) loop_.arm_after(heal_, std::chrono::milliseconds(command.for_ms));
  arm();
}

void Engine::heal() {
  heal_.disarm();
  fault_ = Fault{};
  truth_.slow(1);
  refuse_connections(false, nullptr);
  std::vector<Exchange*> stalled;
  for (const auto& [exchange, timer] : stalls_) stalled.push_back(exchange);
  for (Exchange* exchange : stalled) resume(*exchange);
  pump();
}

void Engine::refuse_connections(bool refuse, Connection* keep) {
  if (!refuse) {
    // The address is ours alone, so it can be taken again.
    if (!acceptor_ && address_.length() > 0) [[maybe_unused]] const auto again = listen(address_);
    return;
  }
  acceptor_.reset();
  std::vector<Connection*> idle;
  for (const auto& [key, connection] : connections_)
    if (connection->idle() && key != keep) idle.push_back(key);
  for (Connection* c : idle) c->close(Connection::Close::Orderly);
}

// The process dies and is back at once with nothing in it.
void Engine::lose_all(Connection* keep) {
  std::vector<Exchange*> all;
  for (Active& active : slots_)
    if (active.exchange) all.push_back(active.exchange.get());
  std::vector<Connection*> open;
  for (const auto& [key, connection] : connections_)
    if (key != keep) open.push_back(key);
  for (Exchange* ex : all) end(*ex, "lost");
  for (Connection* c : open) c->close(Connection::Close::Reset);
  std::vector<truth::SequenceId> lost;
  truth_.restart(lost);
  gathered_.clear();
  metrics_.assign(metrics_.size(), {});
  step_tokens_.assign(step_tokens_.size(), 0);
  started_unix_ns_ = net::unix_nanos();
}

const std::string& Engine::date() {
  const std::int64_t second = net::unix_nanos() / 1'000'000'000;
  if (second != date_second_) {
    date_ = http_date(second);
    date_second_ = second;
  }
  return date_;
}

}  // namespace signalbox::emulator
