// SPDX-License-Identifier: Apache-2.0
// `signalbox serve`: wires the rooms, starts the threads, and stops in good order. The main thread
// runs the control loop (configuration, discovery, admin, signals); each I/O thread runs a Worker.
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cstdio>
#include <thread>

#include "app/admin_api.h"
#include "app/commands.h"
#include "app/controller.h"
#include "app/decision_log.h"
#include "app/event_log.h"
#include "app/file_watch.h"
#include "app/log_paths.h"
#include "app/tls_contexts.h"
#include "core/flow/config_of.h"
#include "core/flow/flow.h"
#include "io/gateway/admin_server.h"
#include "io/gateway/worker.h"
#include "io/telemetry/log.h"
#include "io/telemetry/process_metrics.h"

namespace signalbox::app {
namespace {

using telemetry::log_error;
using telemetry::log_info;

// For the answers that a drain cut short; clients that do not read lose them.
constexpr Duration kLastWords = std::chrono::seconds(1);

// Signals as events of the control loop.
class Signals final : public net::Watcher {
 public:
  Signals(net::Loop& loop, std::function<void(int)> handler)
      : loop_(loop), handler_(std::move(handler)) {
    const sigset_t set = block();
    fd_ = net::Fd(signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC));
    (void)loop_.watch(fd_.get(), *this);
  }
  ~Signals() { loop_.unwatch(fd_.get(), *this); }

  // What comes before there is a loop waits for it, and ends nobody.
  static sigset_t block() {
    sigset_t set;
    sigemptyset(&set);
    for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGUSR1}) sigaddset(&set, number);
    pthread_sigmask(SIG_BLOCK, &set, nullptr);
    return set;
  }

  void on_ready(std::uint32_t) override {
    signalfd_siginfo info{};
    while (read(fd_.get(), &info, sizeof info) == sizeof info) {
      handler_(static_cast<int>(info.ssi_signo));
    }
  }

 private:
  net::Loop& loop_;
  std::function<void(int)> handler_;
  net::Fd fd_;
};

std::uint64_t draw_seed() {
  std::uint64_t seed = 0;
  const int fd = ::open("/dev/urandom", O_RDONLY | O_CLOEXEC);
  if (fd >= 0) {
    [[maybe_unused]] const auto got = ::read(fd, &seed, sizeof seed);
    ::close(fd);
  }
  return seed | 1;
}

// As many open files as we may have; half of them for clients.
std::int64_t raise_file_limit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return 0;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
  getrlimit(RLIMIT_NOFILE, &limit);
  // Each client may need a connection to an engine; the rest is for looks, logs and listeners.
  const auto all = static_cast<std::int64_t>(limit.rlim_cur);
  return (all - std::min<std::int64_t>(64, all / 3)) / 2;
}

Result<net::Address> to_address(const spec::Address& address) {
  const std::string host = address.host == "localhost" ? "127.0.0.1" : address.host;
  const bool v6 = host.find(':') != std::string::npos;
  return net::Address::parse((v6 ? "[" + host + "]" : host) + ":" + std::to_string(address.port));
}

Result<void> check_options(const ServeOptions& options) {
  for (const std::string& url : options.urls) TRY_CHECK(spec::parse_url(url));
  if (!options.listen.empty()) TRY_CHECK(spec::parse_address(options.listen));
  if (!options.admin.empty()) TRY_CHECK(spec::parse_address(options.admin));
  if (options.config.empty() == options.urls.empty()) {
    return invalid("Name engines (signalbox serve http://127.0.0.1:8000) or a configuration "
                   "(-c FILE), which has its engines in Pools; one of the two.");
  }
  return {};
}

// Nobody unknown is served beyond this machine unless somebody said so.
Result<void> check_exposure(const config::Loaded& loaded) {
  const spec::Gateway& gateway = loaded.config.gateway;
  if (spec::serves_strangers(loaded.config)) {
    return invalid("Listening on " + spec::to_string(gateway.listen) +
                   " would serve everybody who can reach it: declare Tenants with keys, listen "
                   "on 127.0.0.1, or say --insecure.");
  }
  if (!spec::is_loopback(gateway.admin.listen) && !loaded.secrets.admin) {
    return invalid("The admin listener beyond this machine needs Gateway.admin.token.");
  }
  return {};
}

gateway::AdminAccess admin_access(const config::Loaded& loaded) {
  gateway::AdminAccess access;
  access.hosts = loaded.config.gateway.admin.hosts;
  if (loaded.secrets.admin) {
    access.needs_token = true;
    access.token = *loaded.secrets.admin;
  }
  return access;
}

// A reload opens no log, and is not refused for one.
enum class For : std::uint8_t { Start, Reload };

Result<LoadedWithTls> load_or_default(const ServeOptions& options, For purpose) {
  LoadedWithTls whole;
  config::Loaded& loaded = whole.loaded;
  if (options.config.empty()) {
    std::vector<spec::Url> urls;
    for (const std::string& text : options.urls) urls.push_back(*spec::parse_url(text));
    TRY_ASSIGN(whole.tls, tls_towards(urls));
  } else {
    config::Options how;
    spec::Logs overridden;
    overridden.access = options.access_log;
    overridden.events = options.event_log;
    if (purpose == For::Start) {
      how.inspect = [&overridden](const config::Loaded& read, spec::Report& report) {
        check_logs(read, overridden, report);
      };
    }
    TRY_ASSIGN(whole, load_with_tls(options.config, how));
    // An editor that is not done yet leaves an empty file: that is no wish to serve nothing.
    if (loaded.config.pools.empty()) {
      return invalid("'" + options.config + "' declares no Pool, so there is nothing to serve.");
    }
  }
  spec::Gateway& gateway = loaded.config.gateway;
  gateway.logs = resolved_logs(loaded);
  if (!options.listen.empty()) {
    TRY_ASSIGN(gateway.listen, spec::parse_address(options.listen));
  }
  if (!options.admin.empty()) {
    TRY_ASSIGN(gateway.admin.listen, spec::parse_address(options.admin));
  }
  if (options.threads > 0) gateway.threads = options.threads;
  if (!options.access_log.empty()) gateway.logs.access = options.access_log;
  if (!options.event_log.empty()) gateway.logs.events = options.event_log;
  if (options.insecure) gateway.insecure = true;
  TRY_CHECK(check_exposure(loaded));
  TRY_CHECK(check_logs(gateway.logs));
  return whole;
}

class Server {
 public:
  Server(const ServeOptions& options, LoadedWithTls whole)
      : options_(options), initial_(std::move(whole.loaded)), tls_(std::move(whole.tls)),
        metrics_(registry_) {}

  Result<int> run();

 private:
  Result<void> start_workers();
  Result<void> start_admin();
  void use_configuration();
  void allow_connections(std::int64_t wanted);
  void on_signal(int number);
  void drain();
  void close_listeners();
  void end_drain();
  void check_drained();
  std::size_t in_flight() const;
  void reload();
  void reopen_logs();
  void stop_workers();
  void count_lost_records(telemetry::TextWriter& writer) const;

  ServeOptions options_;
  config::Loaded initial_;
  TlsContexts tls_;  // of initial_
  telemetry::Registry registry_;
  gateway::Metrics metrics_;
  std::uint64_t seed_ = 0;
  std::int64_t file_limit_ = 0;
  std::unique_ptr<net::Loop> loop_;
  std::unique_ptr<EventLog> event_log_;
  std::unique_ptr<telemetry::LogFile> access_log_;
  std::unique_ptr<host::CoreHost> host_;
  std::unique_ptr<gateway::Shared> shared_;
  std::vector<std::unique_ptr<gateway::Worker>> workers_;
  std::vector<std::thread> threads_;
  std::unique_ptr<Controller> controller_;
  std::unique_ptr<DecisionLog> decision_log_;
  std::unique_ptr<AdminApi> api_;
  std::unique_ptr<gateway::AdminServer> admin_;
  std::unique_ptr<FileWatch> files_;
  std::unique_ptr<net::Timer> drain_timer_;
  // Each stage of a stop begins when the one before it has lasted its time.
  enum class Stop : std::uint8_t { No, Notice, Drain, LastWords };
  Stop stop_ = Stop::No;
  Instant stage_until_{};
  int exit_code_ = 0;
};

Result<void> Server::start_workers() {
  const spec::Gateway& gateway = initial_.config.gateway;
  TRY_ASSIGN(net::Address address, to_address(gateway.listen));
  const int count = gateway.threads > 0
                        ? gateway.threads
                        : static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  // Threads share the port, and so could a stranger: somebody who holds it already is found here.
  TRY_CHECK(net::listen_on(address));
  for (int i = 0; i < count; ++i) {
    TRY_ASSIGN(auto worker, gateway::Worker::create(*shared_, address, tls_.clients));
    if (i == 0) address = worker->listening();  // port 0 became a real one: share it
    workers_.push_back(std::move(worker));
  }
  return {};
}

Result<void> Server::start_admin() {
  const spec::Admin& settings = initial_.config.gateway.admin;
  TRY_ASSIGN(const net::Address address, to_address(settings.listen));
  api_ = std::make_unique<AdminApi>(*host_, *controller_, *shared_, registry_);
  TRY_ASSIGN(admin_, gateway::AdminServer::create(
                         *loop_, address, admin_access(initial_),
                         [this](const gateway::AdminRequest& request) {
                           return api_->handle(request);
                         }));
  return {};
}

// 0: as many as the open files suffice for.
void Server::allow_connections(std::int64_t wanted) {
  const std::int64_t most = wanted > 0 ? wanted : file_limit_;
  if (shared_->connections_max.exchange(most) == most || file_limit_ <= 0) return;
  if (most > file_limit_) {
    telemetry::log_warn("Gateway.limits.connections is more than the limit of open files suffices "
                        "for, as each client may need an engine's connection too; raise it "
                        "(ulimit -n, LimitNOFILE)",
                        {{"connections", most}, {"suffices_for", file_limit_}});
  }
}

void Server::use_configuration() {
  if (options_.urls.empty()) return controller_->use(std::move(initial_), std::move(tls_));
  std::vector<spec::Url> urls;
  for (const std::string& text : options_.urls) urls.push_back(*spec::parse_url(text));
  controller_->use_addresses(std::move(initial_), std::move(tls_), std::move(urls));
}

Result<int> Server::run() {
  seed_ = options_.seed != 0 ? options_.seed : draw_seed();
  TRY_ASSIGN(loop_, net::Loop::create());
  Signals signals(*loop_, [this](int number) { on_signal(number); });
  file_limit_ = raise_file_limit();
  const flow::Config core = flow::config_of(initial_.config.gateway);
  // The event log must exist before the host that feeds it.
  if (!initial_.config.gateway.logs.events.empty()) {
    TRY_ASSIGN(event_log_, EventLog::open(initial_.config.gateway.logs.events, seed_));
  }
  host_ = std::make_unique<host::CoreHost>(std::make_unique<flow::Flow>(core, seed_),
                                           event_log_.get());
  shared_ = std::make_unique<gateway::Shared>(*host_, metrics_,
                                              static_cast<std::uint32_t>(draw_seed()));
  telemetry::add_process_metrics(registry_);
  if (!initial_.config.gateway.logs.access.empty()) {
    TRY_ASSIGN(access_log_, telemetry::LogFile::open(initial_.config.gateway.logs.access));
    shared_->access_log = access_log_.get();
  }
  TRY_CHECK(start_workers());
  controller_ = std::make_unique<Controller>(
      *loop_, *host_,
      [this](std::shared_ptr<const gateway::Published> published) {
        const spec::Limits& limits = published->config.gateway.limits;
        registry_.set_label_values_max(static_cast<std::size_t>(limits.label_values));
        allow_connections(limits.connections);
        for (auto& worker : workers_) worker->publish(published);
      },
      seed_);
  TRY_CHECK(start_admin());
  registry_.collector([this](telemetry::TextWriter& writer) { count_lost_records(writer); });
  if (const std::string& path = initial_.config.gateway.logs.decisions; !path.empty()) {
    TRY_ASSIGN(auto file, telemetry::LogFile::open(path));
    decision_log_ = std::make_unique<DecisionLog>(*loop_, *host_, *controller_, *shared_,
                                                  std::move(file));
  }
  TRY_CHECK(check_logs(initial_.config.gateway.logs));  // now that links lead somewhere
  const bool watch = initial_.config.gateway.watch_files && !options_.config.empty();
  std::vector<std::string> watched = initial_.files;
  use_configuration();
  if (watch) {
    files_ = std::make_unique<FileWatch>(*loop_, [this] { reload(); });
    // A folder's own time tells of new files.
    watched.push_back(options_.config);
    files_->set_files(std::move(watched));
  }
  for (auto& worker : workers_) threads_.emplace_back([&worker] { worker->run(); });
  log_info("listening", {{"clients", workers_.front()->listening().text()},
                         {"admin", admin_->listening().text()},
                         {"threads", workers_.size()}});
  loop_->run();
  stop_workers();
  return exit_code_;
}

void Server::count_lost_records(telemetry::TextWriter& writer) const {
  writer.family("signalbox_log_lost_records_total", telemetry::MetricType::Counter,
                "Records missing in a log: the disk was full or too slow.");
  const auto count = [&](std::string_view log, std::uint64_t lost) {
    writer.sample({{"log", log}}, static_cast<double>(lost));
  };
  if (access_log_) count("access", access_log_->dropped());
  if (decision_log_) count("decisions", decision_log_->lost() + decision_log_->file().dropped());
  if (event_log_) count("events", event_log_->file().dropped());
}

void Server::on_signal(int number) {
  switch (number) {
    case SIGHUP: return reload();
    case SIGUSR1: return reopen_logs();
    default:
      // The second one means it, the third cannot wait.
      switch (stop_) {
        case Stop::No: return drain();
        case Stop::Notice: close_listeners(); [[fallthrough]];
        case Stop::Drain: return end_drain();
        case Stop::LastWords: return loop_->stop();
      }
  }
}

void Server::reload() {
  if (options_.config.empty()) return;
  auto next = load_or_default(options_, For::Reload);
  std::vector<std::string> later;
  if (next) {
    later = spec::keep_until_start(next->loaded.config.gateway,
                                   controller_->loaded().config.gateway);
    // What we listen on stays, so it is that which the new tenants and tokens must be fit for.
    if (const auto fit = check_exposure(next->loaded); !fit) next = fit.error();
  }
  if (!next) {
    return log_error("the configuration was not reloaded; the present one stays in force",
                     {{"why", next.error().message}});
  }
  for (const std::string& setting : later) {
    telemetry::log_warn("this setting is read at the start: the change waits for the next one",
                        {{"setting", setting}});
  }
  keep_same(controller_->tls(), next->tls);
  for (auto& worker : workers_) worker->set_tls(next->tls.clients);
  controller_->reload(std::move(next->loaded), std::move(next->tls));
  admin_->set_access(admin_access(controller_->loaded()));
  if (files_) {
    std::vector<std::string> watched = controller_->loaded().files;
    watched.push_back(options_.config);
    files_->set_files(std::move(watched));
  }
}

void Server::reopen_logs() {
  if (access_log_) access_log_->reopen();
  // Between two events: what follows in the new file continues what is in the old one.
  if (event_log_) host_->read([&](const flow::Flow&) { event_log_->reopen(); });
  if (decision_log_) decision_log_->file().reopen();
}

// readyz fails first; then no new connection is accepted; streams finish, until the deadline; who
// is there then is told so.
void Server::drain() {
  log_info("draining");
  shared_->draining = true;
  drain_timer_ = std::make_unique<net::Timer>([this] { check_drained(); });
  stop_ = Stop::Notice;
  stage_until_ = loop_->now() + controller_->loaded().config.gateway.timeouts.drain_notice;
  check_drained();
}

void Server::close_listeners() {
  for (auto& worker : workers_) worker->drain();
  stop_ = Stop::Drain;
  stage_until_ = loop_->now() + controller_->loaded().config.gateway.timeouts.drain;
}

std::size_t Server::in_flight() const {
  std::size_t requests = 0;
  host_->read([&](const flow::Flow& flow) { requests = flow.in_flight(); });
  return requests;
}

void Server::end_drain() {
  telemetry::log_warn("the time to drain is over; what is in flight ends with an error",
                      {{"in_flight", in_flight()}});
  std::vector<model::Event> batch{model::DrainOver{}};
  host_->hand_in_foreign(batch);
  stop_ = Stop::LastWords;
  stage_until_ = loop_->now() + kLastWords;
}

void Server::check_drained() {
  const bool due = loop_->now() >= stage_until_;
  if (stop_ == Stop::Notice && due) close_listeners();
  else if (stop_ == Stop::Drain && due) end_drain();
  else if (stop_ == Stop::LastWords && due) return loop_->stop();
  if (stop_ != Stop::Notice && in_flight() == 0 && shared_->connections == 0) return loop_->stop();
  loop_->arm_after(*drain_timer_, std::chrono::milliseconds(50));
}

void Server::stop_workers() {
  for (auto& worker : workers_) worker->stop();
  for (std::thread& thread : threads_) thread.join();
  if (decision_log_) decision_log_->finish();
  decision_log_.reset();
  admin_.reset();
  controller_.reset();
  workers_.clear();
}

}  // namespace

int serve(const ServeOptions& options) {
  Signals::block();
  const auto fail = [](const Error& error) {
    std::fprintf(stderr, "signalbox serve: %s\n", error.message.c_str());
    return 1;
  };
  if (const auto fit = check_options(options); !fit) {
    fail(fit.error());
    return 2;
  }
  if (options.log_level == "debug") telemetry::set_log_level(telemetry::Level::Debug);
  if (options.log_level == "warn") telemetry::set_log_level(telemetry::Level::Warn);
  if (options.log_level == "error") telemetry::set_log_level(telemetry::Level::Error);
  auto loaded = load_or_default(options, For::Start);
  if (!loaded) return fail(loaded.error());
  Server server(options, std::move(*loaded));
  const auto code = server.run();
  return code ? *code : fail(code.error());
}

}  // namespace signalbox::app
