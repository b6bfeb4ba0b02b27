// SPDX-License-Identifier: Apache-2.0
// From options to engines on sockets, and the process around them.
#include "emulator/emulator.h"

#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <csignal>
#include <cstdio>

#include "io/net/address.h"
#include "sim/engine/catalogue.h"

namespace signalbox::emulator {
namespace {

Result<void> check(const EmulatorOptions& o) {
  if (o.count < 1 || o.count > 10000) return invalid("--count must be from 1 to 10000.");
  if (!(o.speed > 0)) return invalid("--speed must be above 0.");
  if (o.block_tokens < 16 || o.block_tokens % 16 != 0)
    return invalid("The block size must be a multiple of 16 tokens.");
  if (o.answer_tokens_mean < 1) return invalid("The mean answer must have at least one token.");
  if (o.slots < 0 || o.context_tokens < 0 || o.kv_tokens < 0)
    return invalid("--slots, --context and --kv must not be negative.");
  if (o.ranks < 1 || o.ranks > 64) return invalid("--ranks must be from 1 to 64.");
  if (o.ranks > 1 && o.dialect != Dialect::Vllm)
    return invalid("--ranks needs --dialect vllm: llama.cpp has no data-parallel ranks.");
  return {};
}

// Six numbers, as in 60,0.14,1e-5,20,0.13,3.3e-5.
Result<truth::StepTable> read_steps(std::string_view text) {
  std::array<double, 6> ms{};
  const char* at = text.data();
  const char* const end = at + text.size();
  for (std::size_t i = 0; i < ms.size(); ++i) {
    const auto [rest, error] = std::from_chars(at, end, ms[i]);
    const bool last = i + 1 == ms.size();
    const bool ends_well = last ? rest == end : rest != end && *rest == ',';
    if (error != std::errc() || !ends_well || !(ms[i] >= 0) || ms[i] > 1e6)
      return invalid("--steps takes six times in milliseconds with commas between them, as in "
                     "60,0.14,1e-5,20,0.13,3.3e-5.");
    at = rest + (last ? 0 : 1);
  }
  return truth::StepTable::formula(ms[0], ms[1], ms[2], ms[3], ms[4], ms[5]);
}

// Fills in what the options leave to the profile and the dialect.
Result<truth::EngineSpec> make_spec(EmulatorOptions& o) {
  TRY_CHECK(check(o));
  TRY_ASSIGN(const truth::Profile* profile, truth::find_profile(o.model, o.profile));
  truth::EngineSpec spec = truth::EngineSpec::from(*profile);
  const bool llama = o.dialect == Dialect::LlamaCpp;
  if (o.slots == 0) o.slots = llama ? 4 : 256;
  const bool own_context = o.context_tokens > 0;
  if (!own_context) o.context_tokens = llama ? 8192 : profile->context_tokens;
  if (o.kv_tokens == 0) o.kv_tokens = llama ? o.context_tokens * o.slots : profile->kv_tokens;
  o.kv_tokens -= o.kv_tokens % o.block_tokens;
  if (!own_context) o.context_tokens = std::min(o.context_tokens, o.kv_tokens);
  if (o.context_tokens > o.kv_tokens || o.kv_tokens == 0)
    return invalid("A context of " + std::to_string(o.context_tokens) +
                   " tokens does not fit into a KV cache of " + std::to_string(o.kv_tokens) +
                   ": choose a smaller --context or another --profile.");
  spec.kv_tokens = o.kv_tokens;
  spec.block_tokens = o.block_tokens;
  spec.sequences_max = o.slots;
  spec.step_tokens_max = llama ? std::min<std::int64_t>(o.step_tokens_max, 2048)
                               : o.step_tokens_max;
  spec.ranks = o.ranks;
  if (!o.steps.empty()) {
    TRY_ASSIGN(spec.table, read_steps(o.steps));
  }
  spec.distortion = o.distortion;
  spec.noise = o.noise;
  spec.fixed_ttft_ms = o.fixed_ttft_ms;
  spec.fixed_itl_ms = o.fixed_itl_ms;
  return spec;
}

Result<net::Address> next_port(const net::Address& base, int offset) {
  if (base.port() == 0) return base;
  const int port = base.port() + offset;
  if (port > 65535)
    return invalid("Not enough ports behind " + base.text() + " for so many engines.");
  const bool v6 = base.family() == AF_INET6;
  return net::Address::parse((v6 ? "[" + base.ip() + "]" : base.ip()) + ":" +
                             std::to_string(port));
}

// Stops the loop at SIGINT or SIGTERM, which it blocks for the thread while it lives.
class SignalWatcher final : public net::Watcher {
 public:
  explicit SignalWatcher(net::Loop& loop) : loop_(loop) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &set, &before_);
    fd_ = net::Fd(::signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC));
  }
  ~SignalWatcher() {
    if (fd_) loop_.unwatch(fd_.get(), *this);
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  Result<void> start() { return loop_.watch(fd_.get(), *this); }
  void on_ready(std::uint32_t) override {
    signalfd_siginfo info;
    while (::read(fd_.get(), &info, sizeof info) > 0) loop_.stop();
  }

 private:
  net::Loop& loop_;
  net::Fd fd_;
  sigset_t before_;
};

}  // namespace

Result<std::unique_ptr<Emulator>> Emulator::create(net::Loop& loop,
                                                   const EmulatorOptions& options) {
  EmulatorOptions o = options;
  TRY_ASSIGN(const truth::EngineSpec spec, make_spec(o));
  TRY_ASSIGN(const net::Address base, net::Address::parse(o.listen));
  std::unique_ptr<Emulator> emulator(new Emulator());
  for (int i = 0; i < o.count; ++i) {
    TRY_ASSIGN(const net::Address address, next_port(base, i));
    auto engine = std::make_unique<Engine>(loop, *emulator, o, i, spec, o.context_tokens);
    TRY_CHECK(engine->listen(address));
    emulator->engines_.push_back(std::move(engine));
  }
  if (!o.admin.empty()) {
    TRY_ASSIGN(const net::Address address, net::Address::parse(o.admin));
    TRY_ASSIGN(net::Fd listener, net::listen_on(address));
    emulator->admin_ = std::make_unique<net::Acceptor>(
        loop, std::move(listener), [e = emulator.get()](net::Fd connection, const net::Address&) {
          auto stream = net::Stream::accepted(std::move(connection), nullptr);
          if (stream) e->engines_.front()->adopt(std::move(*stream), true);
        });
    TRY_CHECK(emulator->admin_->start());
  }
  return emulator;
}

Emulator::~Emulator() = default;

Result<int> run(const EmulatorOptions& options) {
  std::signal(SIGPIPE, SIG_IGN);
  TRY_ASSIGN(const auto loop, net::Loop::create());
  SignalWatcher signals(*loop);
  TRY_CHECK(signals.start());
  TRY_ASSIGN(const auto emulator, Emulator::create(*loop, options));
  for (std::size_t i = 0; i < emulator->size(); ++i)
    std::printf("engine %zu listens on http://%s\n", i,
                emulator->engine(i).address().text().c_str());
  std::fflush(stdout);
  loop->run();
  return 0;
}

}  // namespace signalbox::emulator
