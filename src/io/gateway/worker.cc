// SPDX-License-Identifier: Apache-2.0
// Accept, turn, hand in, carry out, bury.
#include "io/gateway/worker.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "io/http/chars.h"
#include "io/net/clock.h"
#include "io/telemetry/log.h"

namespace signalbox::gateway {
namespace {

constexpr Duration kProgressInterval = std::chrono::milliseconds(50);
constexpr Duration kComplaintInterval = std::chrono::seconds(10);
constexpr Duration kSweepInterval = std::chrono::seconds(1);

std::string_view api_label(model::Api api) {
  switch (api) {
    case model::Api::ChatCompletions: return "chat_completions";
    case model::Api::Completions: return "completions";
    case model::Api::Embeddings: return "embeddings";
    case model::Api::Messages: return "messages";
    case model::Api::CountTokens: return "count_tokens";
    case model::Api::Responses: return "responses";
  }
  return "other";
}

// Which end it was, for the access log.
std::string_view outcome_label(const AccessRecord& record) {
  return !record.core_knew && record.status >= 400 ? "refused" : model::label(record.outcome);
}

}  // namespace

// The metrics of one (model, api, outcome), looked up once.
struct Worker::Series {
  telemetry::Counter& requests;
  telemetry::Histogram& ttft;
  telemetry::Histogram& duration;
  telemetry::Histogram& queue;
  telemetry::Counter& prompt;
  telemetry::Counter& cached;
  telemetry::Counter& completion;
};

Result<std::unique_ptr<Worker>> Worker::create(Shared& shared, const net::Address& address,
                                               std::shared_ptr<net::TlsContext> tls) {
  TRY_ASSIGN(auto loop, net::Loop::create());
  TRY_ASSIGN(net::Fd listener, net::listen_on(address, net::Sharing::Shared));
  std::unique_ptr<Worker> worker(
      new Worker(shared, std::move(loop), std::move(listener), std::move(tls)));
  return worker;
}

Worker::Worker(Shared& shared, std::unique_ptr<net::Loop> loop, net::Fd listener,
               std::shared_ptr<net::TlsContext> tls)
    : shared_(shared), loop_(std::move(loop)),
      acceptor_(std::make_unique<net::Acceptor>(
          *loop_, std::move(listener),
          [this](net::Fd connection, const net::Address& peer) {
            take(std::move(connection), peer);
          },
          [this](int error) { log_shortage("a client", std::strerror(error)); })),
      tls_(std::move(tls)), pool_(*loop_),
      progress_timer_([this] { digest_progress(); }), sweep_timer_([this] {
        pool_.sweep();
        loop_->arm_after(sweep_timer_, kSweepInterval);
      }) {
  index_ = shared_.host.add_owner(*loop_, [this](const model::Action& action) { carry(action); });
}

Worker::~Worker() {
  exchanges_.clear();
  sessions_.clear();
}

void Worker::run() {
  loop_->set_turn_end([this] { end_turn(); });
  if (!acceptor_->start()) return;
  loop_->arm_after(progress_timer_, kProgressInterval);
  loop_->arm_after(sweep_timer_, kSweepInterval);
  loop_->run();
}

net::Address Worker::listening() const { return acceptor_->address(); }

void Worker::publish(std::shared_ptr<const Published> published) {
  const auto take = [this](std::shared_ptr<const Published> next) {
    published_ = std::move(next);
    pool_.publish(published_);
    const spec::Limits& limits = published_->config.gateway.limits;
    pool_.set_limits({static_cast<std::size_t>(limits.upstream_idle),
                      published_->timeouts.upstream_keep_alive_idle});
    series_.clear();
  };
  // The first one comes before the thread runs.
  if (!published_) return take(std::move(published));
  loop_->post([take, next = std::move(published)]() mutable { take(std::move(next)); });
}

void Worker::set_tls(std::shared_ptr<net::TlsContext> tls) {
  loop_->post([this, next = std::move(tls)]() mutable { tls_ = std::move(next); });
}

void Worker::drain() {
  loop_->post([this] {
    draining_ = true;
    acceptor_.reset();
    std::vector<Session*> all;
    for (auto& [session, owned] : sessions_) all.push_back(session);
    for (Session* session : all) session->stop_after_this();
  });
}

void Worker::stop() { loop_->stop(); }

void Worker::take(net::Fd connection, const net::Address& peer) {
  const std::int64_t limit = shared_.connections_max.load(std::memory_order_relaxed);
  if (limit > 0 && shared_.connections.load(std::memory_order_relaxed) >= limit) {
    shared_.metrics.connections_refused.add();
    log_crowd(limit);
    return;
  }
  auto stream = net::Stream::accepted(std::move(connection), tls_);
  if (!stream) return;
  auto session = std::make_unique<Session>(*this, std::move(*stream), peer);
  Session& reference = *session;
  sessions_.emplace(&reference, std::move(session));
  shared_.connections.fetch_add(1, std::memory_order_relaxed);
  shared_.metrics.connections.add(1);
  reference.begin();
}

model::RequestId Worker::register_exchange(Exchange& exchange) {
  // 16 bits of worker, 48 of sequence: unique in the process without a shared counter.
  const model::RequestId id((std::uint64_t{index_} + 1) << 48 | ++next_request_);
  exchanges_.emplace(id, &exchange);
  return id;
}

std::string Worker::request_name(model::RequestId id) {
  if (!id) id = model::RequestId((std::uint64_t{index_} + 1) << 48 | ++next_request_);
  return shared_.names.name(id);
}

bool Worker::gives_name(std::string_view name) const { return shared_.names.is_ours(name); }

void Worker::remember_name(const std::string& name, model::RequestId id) {
  shared_.names.remember(name, id);
}

void Worker::carry(const model::Action& action) {
  const model::RequestId request =
      std::visit([](const auto& specific) { return specific.request; }, action);
  const auto found = exchanges_.find(request);
  if (found == exchanges_.end()) return shared_.metrics.stale_actions.add();
  Exchange& exchange = *found->second;
  if (const auto* dispatch = std::get_if<model::Dispatch>(&action)) exchange.dispatch(*dispatch);
  else if (const auto* abort = std::get_if<model::Abort>(&action)) exchange.abort(*abort);
  else exchange.conclude(std::get<model::Conclude>(action));
}

void Worker::end_turn() {
  // Carrying out actions may give rise to further events (an engine refuses at once).
  while (!batch_.empty()) {
    std::vector<model::Event> batch;
    batch.swap(batch_);
    shared_.host.hand_in(index_, batch);
    if (batch_.empty()) batch_.swap(batch);  // keeps the capacity
  }
  // A session whose client left lives until the core has concluded its request: the word may be on
  // its way from another thread.
  std::erase_if(buried_, [&](Session* session) {
    const auto found = sessions_.find(session);
    if (found == sessions_.end()) return true;
    if (session->awaited()) return false;
    sessions_.erase(found);
    shared_.connections.fetch_sub(1, std::memory_order_relaxed);
    shared_.metrics.connections.add(-1);
    return true;
  });
  pool_.end_turn();
  if (!read_later_.empty()) {
    std::vector<Session*> sessions;
    sessions.swap(read_later_);
    loop_->post([this, sessions = std::move(sessions)] {
      for (Session* session : sessions) {
        if (sessions_.contains(session)) session->read_again();
      }
    });
  }
  if (sent_ > 0) shared_.metrics.bytes_out.add(std::exchange(sent_, 0));
}

void Worker::digest_progress() {
  model::Progress progress;
  for (auto& [id, exchange] : exchanges_) {
    if (auto entry = exchange->progress()) progress.entries.push_back(*entry);
  }
  if (!progress.entries.empty()) {
    std::sort(progress.entries.begin(), progress.entries.end(),
              [](const auto& a, const auto& b) { return a.request < b.request; });
    emit(std::move(progress));
  }
  loop_->arm_after(progress_timer_, kProgressInterval);
}

Worker::Series& Worker::series(const AccessRecord& record) {
  series_key_.assign(record.model);
  series_key_ += static_cast<char>(record.api);
  series_key_ += static_cast<char>(record.outcome);
  const auto found = series_.find(series_key_);
  if (found != series_.end()) return *found->second;
  Metrics& m = shared_.metrics;
  const std::string_view model = record.model;
  auto made = std::make_unique<Series>(Series{
      m.requests.with({model, api_label(record.api), model::label(record.outcome)}),
      m.ttft.with({model}), m.duration.with({model}), m.queue.with({model}),
      m.tokens.with({model, "prompt"}), m.tokens.with({model, "cached"}),
      m.tokens.with({model, "completion"})});
  return *series_.emplace(series_key_, std::move(made)).first->second;
}

void Worker::account(const AccessRecord& record) {
  const Instant now = loop_->now();
  Metrics& metrics = shared_.metrics;
  metrics.bytes_in.add(record.bytes_in);
  if (record.core_knew) {
    Series& s = series(record);
    s.requests.add();
    s.duration.observe(to_seconds(now - record.begun));
    s.queue.observe(to_seconds(record.queued));
    if (record.first_token >= Duration::zero()) {
      s.ttft.observe(to_seconds(record.first_token));
    }
    const auto add = [](telemetry::Counter& counter, std::int64_t tokens) {
      if (tokens > 0) counter.add(static_cast<std::uint64_t>(tokens));
    };
    // Counting a prompt is no work on it.
    const bool prefills = record.api != model::Api::CountTokens;
    if (prefills) add(s.prompt, record.usage.prompt_tokens);
    add(s.cached, record.usage.cached_tokens);
    add(s.completion, record.usage.completion_tokens);
  } else {
    telemetry::Counters& ends = record.status >= 400 ? metrics.refused : metrics.local;
    ends.with({std::to_string(record.status)}).add();
  }
  telemetry::LogFile* log = shared_.access_log.load(std::memory_order_acquire);
  if (log == nullptr) return;
  telemetry::AccessRecord line;
  line.unix_nanos = net::unix_nanos();
  line.request_id = record.request_id;
  line.engine_request_id = record.engine_request_id;
  line.client = record.client;
  line.tenant = record.tenant;
  line.method = record.method;
  line.path = record.path;
  line.model = record.model;
  line.endpoint = record.endpoint;
  line.status = record.status;
  line.outcome = outcome_label(record);
  line.stream = record.stream;
  line.attempts = record.attempts;
  line.queue = record.queued;
  line.ttft = record.first_token;
  line.total = now - record.begun;
  line.usage = record.usage;
  line.bytes_in = static_cast<std::int64_t>(record.bytes_in);
  line.bytes_out = static_cast<std::int64_t>(record.bytes_out);
  log_line_.clear();
  access_format_.append(log_line_, line);
  log->append(log_line_);
}

void Worker::log_broken(const EndpointAccess& endpoint, std::string_view detail) {
  shared_.metrics.attempts.with({endpoint.label}).add();
  telemetry::log_debug("a connection to an engine broke",
                       {{"endpoint", endpoint.label}, {"detail", detail}});
}

// Whether something that could be said with every request may be said again.
bool Worker::due(std::optional<Instant>& told) const {
  if (told && loop_->now() - *told < kComplaintInterval) return false;
  told = loop_->now();
  return true;
}

void Worker::log_unfit(const EndpointAccess& endpoint, int status) {
  if (!due(unfit_told_)) return;
  const bool key = status == 401 || status == 403;
  const bool redirects = status >= 300 && status <= 399;
  telemetry::log_error(key ? "an engine refuses the key that it is shown: check Pool.api_key"
                       : redirects
                           ? "an engine redirects elsewhere, which is not followed: check "
                             "Pool.endpoints"
                           : "an engine does not know the model or the path that it is asked for: "
                             "check Pool.served_model",
                       {{"engine", endpoint.label},
                        {"model", endpoint.served_model},
                        {"status", status}});
}

void Worker::log_shortage(std::string_view what, std::string_view why) {
  if (!due(shortage_told_)) return;
  telemetry::log_error("a connection cannot be opened here, which is no fault of engines: raise "
                       "the limit of open files (ulimit -n, LimitNOFILE), or lower "
                       "Gateway.limits.connections",
                       {{"with", what}, {"why", why}});
}

bool Worker::hold_body(std::size_t bytes) {
  const auto more = static_cast<std::int64_t>(bytes);
  const std::int64_t held = shared_.body_bytes.fetch_add(more, std::memory_order_relaxed);
  if (held + more <= published_->bodies_max) {
    shared_.metrics.body_bytes.add(static_cast<double>(more));
    return true;
  }
  shared_.body_bytes.fetch_sub(more, std::memory_order_relaxed);
  if (due(bodies_told_)) {
    telemetry::log_warn("request bodies fill what Gateway.limits.bodies allows: new ones are "
                        "answered 503",
                        {{"held", held}, {"limit", published_->bodies_max}});
  }
  return false;
}

void Worker::release_body(std::size_t bytes) {
  const auto less = static_cast<std::int64_t>(bytes);
  shared_.body_bytes.fetch_sub(less, std::memory_order_relaxed);
  shared_.metrics.body_bytes.add(-static_cast<double>(less));
}

void Worker::log_crowd(std::int64_t limit) {
  if (!due(crowd_told_)) return;
  telemetry::log_warn("clients are turned away: as many connections are open as "
                      "Gateway.limits.connections allows (0: half of the open files allowed)",
                      {{"limit", limit}});
}

void Worker::log_no_stream(std::string_view endpoint, std::string_view content_type) {
  if (!due(no_stream_told_)) return;
  telemetry::log_warn("an engine was asked for a stream and gave neither text/event-stream nor a "
                      "whole JSON answer, which is none for the client",
                      {{"endpoint", endpoint},
                       {"content_type", content_type.empty() ? "(none)" : content_type}});
}

}  // namespace signalbox::gateway
