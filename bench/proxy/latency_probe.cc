// SPDX-License-Identifier: Apache-2.0
// Asks at a fixed rate, whatever the answers do (open loop), and prints one JSON line: how many
// were sent and answered with 200, and quantiles of the time from the moment a request was due to
// the end of its answer, in microseconds. For answers with Content-Length.
//
// usage: latency_probe PORT RATE SECONDS BODY_FILE     (a request body a line, sent in turn)
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "io/net/clock.h"

namespace {

using signalbox::Duration;
using signalbox::Instant;

constexpr std::size_t kConnections = 64;                    // requests under way at once
constexpr Duration kGrace = std::chrono::seconds(5);        // for the last answers

struct Connection {
  int fd = -1;
  bool busy = false;
  Instant due{};
  std::string in;
};

class Probe {
 public:
  Probe(int port, const std::string& body_file);
  void run(double rate, double seconds);
  void report() const;

 private:
  void dial(Connection& c);
  void ask(Connection& c, Instant due);
  void read(Connection& c);
  Connection* free_connection();

  int port_;
  int poll_;
  std::vector<std::string> requests_;
  std::vector<std::unique_ptr<Connection>> connections_;
  std::size_t turn_ = 0;                // connections are used in turn
  std::size_t sent_ = 0;
  std::size_t errors_ = 0;
  std::vector<double> microseconds_;
};

Probe::Probe(int port, const std::string& body_file)
    : port_(port), poll_(epoll_create1(EPOLL_CLOEXEC)) {
  std::ifstream file(body_file);
  for (std::string line; std::getline(file, line);) {
    requests_.push_back("POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1:" +
                        std::to_string(port) + "\r\nContent-Type: application/json\r\n" +
                        "Content-Length: " + std::to_string(line.size()) + "\r\n\r\n" + line);
  }
  for (std::size_t i = 0; i < kConnections; ++i) {
    connections_.push_back(std::make_unique<Connection>());
    dial(*connections_.back());
  }
}

void Probe::dial(Connection& c) {
  c.fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port_));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (connect(c.fd, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
    std::perror("latency_probe: connect");
    std::exit(1);
  }
  const int on = 1;
  setsockopt(c.fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  epoll_event event{EPOLLIN, {.ptr = &c}};
  epoll_ctl(poll_, EPOLL_CTL_ADD, c.fd, &event);
  c.busy = false;
  c.in.clear();
}

Connection* Probe::free_connection() {
  for (std::size_t i = 0; i < connections_.size(); ++i) {
    Connection& c = *connections_[turn_++ % connections_.size()];
    if (!c.busy) return &c;
  }
  return nullptr;
}

void Probe::ask(Connection& c, Instant due) {
  c.busy = true;
  c.due = due;
  const std::string& request = requests_[sent_++ % requests_.size()];
  // Requests are small next to a socket's buffer: one write takes them whole.
  const ssize_t wrote = send(c.fd, request.data(), request.size(), MSG_NOSIGNAL);
  if (wrote == static_cast<ssize_t>(request.size())) return;
  ++errors_;
  close(c.fd);
  dial(c);
}

std::size_t answer_size(std::string_view in) {
  const std::size_t end = in.find("\r\n\r\n");
  if (end == std::string_view::npos) return 0;
  for (const std::string_view name : {"\r\ncontent-length: ", "\r\nContent-Length: "}) {
    const std::size_t at = in.substr(0, end).find(name);
    if (at == std::string_view::npos) continue;
    std::size_t size = 0;
    std::from_chars(in.data() + at + name.size(), in.data() + end, size);
    return end + 4 + size;
  }
  return 0;
}

void Probe::read(Connection& c) {
  std::array<char, 65536> room{};
  const ssize_t got = recv(c.fd, room.data(), room.size(), MSG_DONTWAIT);
  if (got < 0) return;
  if (got == 0) {
    if (c.busy) ++errors_;
    close(c.fd);
    return dial(c);
  }
  c.in.append(room.data(), static_cast<std::size_t>(got));
  const std::size_t size = answer_size(c.in);
  if (size == 0 || c.in.size() < size) return;
  const Duration took = signalbox::net::now() - c.due;
  if (c.in.starts_with("HTTP/1.1 200 ")) {
    microseconds_.push_back(signalbox::to_seconds(took) * 1e6);
  } else {
    ++errors_;
  }
  c.in.clear();
  c.busy = false;
}

void Probe::run(double rate, double seconds) {
  const auto total = static_cast<std::size_t>(rate * seconds);
  const Instant start = signalbox::net::now() + std::chrono::milliseconds(1);
  const Instant end = start + signalbox::from_seconds(seconds) + kGrace;
  std::array<epoll_event, 64> events{};
  while (microseconds_.size() + errors_ < total) {
    Instant now = signalbox::net::now();
    if (now > end) return;
    Instant due = start;
    while (sent_ < total) {
      due = start + signalbox::from_seconds(static_cast<double>(sent_) / rate);
      if (due > now) break;
      Connection* c = free_connection();
      if (c == nullptr) break;
      ask(*c, due);
      now = signalbox::net::now();
    }
    const Duration wait =
        sent_ < total ? std::max(due - now, Duration(20'000)) : Duration(100'000'000);
    const timespec limit{wait.count() / 1'000'000'000, wait.count() % 1'000'000'000};
    const int count = epoll_pwait2(poll_, events.data(), events.size(), &limit, nullptr);
    for (int i = 0; i < count; ++i) {
      read(*static_cast<Connection*>(events[static_cast<std::size_t>(i)].data.ptr));
    }
  }
}

void Probe::report() const {
  std::vector<double> sorted = microseconds_;
  std::sort(sorted.begin(), sorted.end());
  const auto quantile = [&](double q) {
    if (sorted.empty()) return 0.0;
    return sorted[static_cast<std::size_t>(q * static_cast<double>(sorted.size() - 1))];
  };
  std::printf("{\"sent\":%zu,\"ok\":%zu,\"errors\":%zu,\"p50\":%.1f,\"p90\":%.1f,\"p99\":%.1f,"
              "\"max\":%.1f}\n",
              sent_, sorted.size(), errors_, quantile(0.5), quantile(0.9), quantile(0.99),
              quantile(1));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) {
    std::fprintf(stderr, "usage: latency_probe PORT RATE SECONDS BODY_FILE\n");
    return 2;
  }
  prctl(PR_SET_TIMERSLACK, 1);
  Probe probe(std::stoi(argv[1]), argv[4]);
  probe.run(std::stod(argv[2]), std::stod(argv[3]));
  probe.report();
}
