// SPDX-License-Identifier: Apache-2.0
// An engine that costs next to nothing: answers like vLLM on many ports of one thread, so that what
// bench/proxy measures is the gateway. It shares no code with the gateway but the clock.
//
// usage: mock_engine BASE_PORT COUNT METRICS_FILE
//   POST /v1/chat/completions    0.6 KB, or a stream of events when the body asks for one
//   GET  /v1/models, /metrics    what vLLM says; the metrics page is METRICS_FILE
//   GET  /control?gap_ms=G       pause between the events of streams that begin afterwards
//   GET  /requests               how many completions each port has answered, as a JSON list
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <deque>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "io/net/clock.h"

namespace {

using signalbox::Duration;
using signalbox::Instant;

constexpr int kEvents = 50;                     // of a stream, the finish included
constexpr std::size_t kFlagWindow = 4096;       // flags stand near the start or the end of a body

std::string event(std::string_view delta, std::string_view finish) {
  return "data: {\"id\":\"chatcmpl-7b1c2d3e4f5061728394a5b6c7d8e9f0\",\"object\":"
         "\"chat.completion.chunk\",\"created\":1700000000,\"model\":\"mock\",\"choices\":[{"
         "\"index\":0,\"delta\":" + std::string(delta) + ",\"logprobs\":null,\"finish_reason\":" +
         std::string(finish) + "}]}\n\n";
}

std::string chunk(std::string_view data) {
  std::array<char, 16> size{};
  const auto end = std::to_chars(size.data(), size.data() + size.size(), data.size(), 16).ptr;
  return std::string(size.data(), end) + "\r\n" + std::string(data) + "\r\n";
}

std::string plain(std::string_view type, std::string_view body,
                  std::string_view status = "200 OK") {
  return "HTTP/1.1 " + std::string(status) + "\r\ncontent-type: " + std::string(type) +
         "\r\ncontent-length: " + std::to_string(body.size()) + "\r\n\r\n" + std::string(body);
}

std::string completion() {
  std::string text;
  while (text.size() < 280) text += "some words of an answer. ";
  return "{\"id\":\"chatcmpl-7b1c2d3e4f5061728394a5b6c7d8e9f0\",\"object\":\"chat.completion\","
         "\"created\":1700000000,\"model\":\"mock\",\"choices\":[{\"index\":0,\"message\":{"
         "\"role\":\"assistant\",\"content\":\"" + text + "\"},\"logprobs\":null,"
         "\"finish_reason\":\"stop\"}],\"usage\":{\"prompt_tokens\":250,\"completion_tokens\":64,"
         "\"total_tokens\":314,\"prompt_tokens_details\":{\"cached_tokens\":0}}}";
}

// Everything that is ever sent, formatted once.
struct Texts {
  std::string answer = plain("application/json", completion());
  std::string models = plain(
      "application/json",
      "{\"object\":\"list\",\"data\":[{\"id\":\"mock\",\"object\":\"model\",\"created\":1700000000,"
      "\"owned_by\":\"vllm\",\"root\":\"mock\",\"parent\":null,\"max_model_len\":131072}]}");
  std::string ok = plain("application/json", "{}");
  std::string unknown = plain("application/json", "{\"detail\":\"Not Found\"}", "404 Not Found");
  std::string metrics;
  std::string stream_head =
      "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\n"
      "cache-control: no-cache\r\ntransfer-encoding: chunked\r\n\r\n";
  std::string token = chunk(event("{\"content\":\" token\"}", "null"));
  std::string finish = chunk(event("{}", "\"length\""));
  std::string usage = chunk(
      "data: {\"id\":\"chatcmpl-7b1c2d3e4f5061728394a5b6c7d8e9f0\",\"object\":"
      "\"chat.completion.chunk\",\"created\":1700000000,\"model\":\"mock\",\"choices\":[],"
      "\"usage\":{\"prompt_tokens\":250,\"completion_tokens\":50,\"total_tokens\":300}}\n\n");
  std::string done = chunk("data: [DONE]\n\n") + "0\r\n\r\n";
};

struct Engine;

// One connection; also stands for a listening socket.
struct Connection {
  int fd = -1;
  Engine* engine = nullptr;
  bool listening = false;
  bool gone = false;
  bool reports_usage = false;
  int events_left = 0;      // of the stream in progress; 0: none
  Duration gap{};
  Instant due{};            // of the next event of a paced stream
  bool waits = false;       // due_ names this connection
  std::string in;           // bytes of requests that are not answered yet
  std::string out;          // bytes that the socket did not take
};

struct Engine {
  Connection door;
  std::uint64_t completions = 0;
};

class Mock {
 public:
  Mock(int base, int count, std::string metrics);
  [[noreturn]] void run();

 private:
  void listen_at(Engine& engine, int port);
  void accept_all(Engine& engine);
  void read(Connection& c);
  void take_requests(Connection& c);
  void answer(Connection& c, std::string_view head, std::string_view body);
  void begin_stream(Connection& c, std::string_view body);
  // Sends the next event, or with no gap all of them, each with its own write as engines do.
  void advance(Connection& c);
  void send(Connection& c, std::string_view bytes);
  void flush(Connection& c);
  void close(Connection& c);
  void run_due();
  std::string counts() const;

  Texts texts_;
  int poll_ = -1;
  Duration gap_{};
  std::vector<std::unique_ptr<Engine>> engines_;
  // Streams wait in order of their next event: while one gap is in force, that is the order of
  // arrival.
  std::deque<Connection*> due_;
  std::vector<Connection*> graves_;   // freed at the end of a turn: an event may still name them
  std::vector<char> room_ = std::vector<char>(1 << 18);
};

Mock::Mock(int base, int count, std::string metrics) {
  texts_.metrics = plain("text/plain; version=0.0.4; charset=utf-8", metrics);
  poll_ = epoll_create1(EPOLL_CLOEXEC);
  for (int i = 0; i < count; ++i) {
    engines_.push_back(std::make_unique<Engine>());
    listen_at(*engines_.back(), base + i);
  }
}

void Mock::listen_at(Engine& engine, int port) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  const int on = 1;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 ||
      listen(fd, 1024) != 0) {
    std::fprintf(stderr, "mock_engine: port %d cannot be used; choose another BASE_PORT\n", port);
    std::exit(1);
  }
  engine.door.fd = fd;
  engine.door.engine = &engine;
  engine.door.listening = true;
  epoll_event event{EPOLLIN, {.ptr = &engine.door}};
  epoll_ctl(poll_, EPOLL_CTL_ADD, fd, &event);
}

void Mock::accept_all(Engine& engine) {
  for (;;) {
    const int fd = accept4(engine.door.fd, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd < 0) return;
    const int on = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    auto* c = new Connection;
    c->fd = fd;
    c->engine = &engine;
    epoll_event event{EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, {.ptr = c}};
    epoll_ctl(poll_, EPOLL_CTL_ADD, fd, &event);
  }
}

void Mock::close(Connection& c) {
  if (c.gone) return;
  c.gone = true;
  ::close(c.fd);
  graves_.push_back(&c);
}

void Mock::read(Connection& c) {
  while (!c.gone) {
    const ssize_t got = recv(c.fd, room_.data(), room_.size(), 0);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (got <= 0) return close(c);
    c.in.append(room_.data(), static_cast<std::size_t>(got));
    if (c.events_left == 0) take_requests(c);
    // A short read emptied the socket; the edge of the next bytes comes by itself.
    if (static_cast<std::size_t>(got) < room_.size()) return;
  }
}

std::size_t body_size(std::string_view head) {
  // Gateways spell the name in either case.
  for (const std::string_view name : {"\r\nContent-Length: ", "\r\ncontent-length: "}) {
    const std::size_t at = head.find(name);
    if (at == std::string_view::npos) continue;
    std::size_t size = 0;
    std::from_chars(head.data() + at + name.size(), head.data() + head.size(), size);
    return size;
  }
  return 0;
}

void Mock::take_requests(Connection& c) {
  std::size_t begin = 0;
  while (!c.gone && c.events_left == 0) {
    const std::string_view rest = std::string_view(c.in).substr(begin);
    const std::size_t end = rest.find("\r\n\r\n");
    if (end == std::string_view::npos) break;
    const std::string_view head = rest.substr(0, end + 2);
    const std::size_t size = body_size(head);
    if (rest.size() < end + 4 + size) break;
    answer(c, head, rest.substr(end + 4, size));
    begin += end + 4 + size;
  }
  c.in.erase(0, begin);
}

bool has_flag(std::string_view body, std::string_view flag) {
  if (body.size() <= 2 * kFlagWindow) return body.find(flag) != std::string_view::npos;
  return body.substr(0, kFlagWindow).find(flag) != std::string_view::npos ||
         body.substr(body.size() - kFlagWindow).find(flag) != std::string_view::npos;
}

void Mock::answer(Connection& c, std::string_view head, std::string_view body) {
  if (head.starts_with("POST /v1/chat/completions ")) {
    ++c.engine->completions;
    if (has_flag(body, "\"stream\":true")) return begin_stream(c, body);
    return send(c, texts_.answer);
  }
  if (head.starts_with("GET /metrics ")) return send(c, texts_.metrics);
  if (head.starts_with("GET /v1/models ")) return send(c, texts_.models);
  if (head.starts_with("GET /requests ")) return send(c, plain("application/json", counts()));
  constexpr std::string_view kControl = "GET /control?gap_ms=";
  if (head.starts_with(kControl)) {
    int milliseconds = 0;
    std::from_chars(head.data() + kControl.size(), head.data() + head.size(), milliseconds);
    gap_ = std::chrono::milliseconds(milliseconds);
    return send(c, texts_.ok);
  }
  send(c, texts_.unknown);
}

void Mock::begin_stream(Connection& c, std::string_view body) {
  c.reports_usage = has_flag(body, "\"include_usage\":true");
  c.events_left = kEvents;
  c.gap = gap_;
  c.due = signalbox::net::now();
  send(c, texts_.stream_head);
  advance(c);
}

void Mock::advance(Connection& c) {
  while (!c.gone && c.events_left > 0) {
    send(c, --c.events_left > 0 ? texts_.token : texts_.finish);
    if (c.events_left > 0 && c.gap > Duration::zero()) {
      c.due += c.gap;
      c.waits = true;
      due_.push_back(&c);
      return;
    }
  }
  if (c.gone) return;
  if (c.reports_usage) send(c, texts_.usage);
  send(c, texts_.done);
}

void Mock::send(Connection& c, std::string_view bytes) {
  if (c.gone) return;
  if (c.out.empty()) {
    const ssize_t sent = ::send(c.fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno != EAGAIN) return close(c);
    if (sent > 0) bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
  c.out.append(bytes);
}

void Mock::flush(Connection& c) {
  if (c.out.empty()) return;
  const std::string rest = std::exchange(c.out, {});
  send(c, rest);
}

void Mock::run_due() {
  while (!due_.empty()) {
    Connection& c = *due_.front();
    if (!c.gone && c.due > signalbox::net::now()) return;
    due_.pop_front();
    c.waits = false;
    advance(c);
    if (c.events_left == 0) take_requests(c);
  }
}

std::string Mock::counts() const {
  std::string list = "[";
  for (const auto& engine : engines_) {
    if (list.size() > 1) list += ',';
    list += std::to_string(engine->completions);
  }
  return list + "]";
}

void Mock::run() {
  std::array<epoll_event, 256> events{};
  for (;;) {
    timespec wait{};
    const timespec* limit = nullptr;
    if (!due_.empty()) {
      const auto left = std::max(Duration::zero(), due_.front()->due - signalbox::net::now());
      wait = {left.count() / 1'000'000'000, left.count() % 1'000'000'000};
      limit = &wait;
    }
    const int count = epoll_pwait2(poll_, events.data(), events.size(), limit, nullptr);
    for (int i = 0; i < count; ++i) {
      Connection& c = *static_cast<Connection*>(events[static_cast<std::size_t>(i)].data.ptr);
      if (c.listening) {
        accept_all(*c.engine);
        continue;
      }
      const std::uint32_t what = events[static_cast<std::size_t>(i)].events;
      if ((what & EPOLLOUT) != 0 && !c.gone) flush(c);
      if ((what & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0 && !c.gone) read(c);
    }
    run_due();
    std::vector<Connection*> kept;
    for (Connection* c : graves_) {
      if (c->waits) kept.push_back(c);
      else delete c;
    }
    graves_ = std::move(kept);
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fprintf(stderr, "usage: mock_engine BASE_PORT COUNT METRICS_FILE\n");
    return 2;
  }
  std::signal(SIGPIPE, SIG_IGN);
  prctl(PR_SET_TIMERSLACK, 1);
  rlimit files{};
  getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  setrlimit(RLIMIT_NOFILE, &files);
  const std::ifstream file(argv[3]);
  std::ostringstream metrics;
  metrics << file.rdbuf();
  Mock mock(std::stoi(argv[1]), std::stoi(argv[2]), metrics.str());
  mock.run();
}
