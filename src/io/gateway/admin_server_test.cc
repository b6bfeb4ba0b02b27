// SPDX-License-Identifier: Apache-2.0
// Goal: the admin listener answers whole requests however they come, and nobody who may not ask.
// Method: a real server on a loop of its own thread, a blocking client on the loopback interface.
#include "io/gateway/admin_server.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <thread>

#include "io/gateway/identify.h"

namespace signalbox::gateway {
namespace {

// Blocking, with a limit that only a failing test reaches.
class Client {
 public:
  // Deaf: the kernels on the way take little of what is not read.
  enum class Kind : std::uint8_t { Plain, Deaf };
  explicit Client(const net::Address& address, Kind kind = Kind::Plain)
      : fd_(::socket(address.family(), SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const timeval limit{20, 0};
    if (kind == Kind::Deaf) {
      const int buffer = 4096;
      const int segment = 536;  // a sender's buffer grows with it
      ::setsockopt(fd_.get(), SOL_SOCKET, SO_RCVBUF, &buffer, sizeof buffer);
      ::setsockopt(fd_.get(), IPPROTO_TCP, TCP_MAXSEG, &segment, sizeof segment);
    }
    ::setsockopt(fd_.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    EXPECT_EQ(::connect(fd_.get(), address.raw(), address.length()), 0);
  }
  void send(std::string_view text) {
    while (!text.empty()) {
      const auto put = ::send(fd_.get(), text.data(), text.size(), MSG_NOSIGNAL);
      if (put <= 0) return;
      text.remove_prefix(static_cast<std::size_t>(put));
    }
  }
  // Head and body of one answer; `head_only` answers have no body whatever they say.
  std::string answer(bool head_only = false) {
    while (rest_.find("\r\n\r\n") == std::string::npos && more()) {
    }
    const auto head = rest_.find("\r\n\r\n");
    if (head == std::string::npos) return {};
    std::size_t size = head + 4;
    const auto length = rest_.find("content-length: ");
    if (!head_only && length < head) size += std::stoul(rest_.substr(length + 16));
    while (rest_.size() < size && more()) {
    }
    std::string text = rest_.substr(0, size);
    rest_.erase(0, size);
    return text;
  }
  // Waits for the first byte of an answer, and leaves it there.
  bool answer_began() {
    char byte = 0;
    return ::recv(fd_.get(), &byte, 1, MSG_PEEK) == 1;
  }
  // Waits for a reset, whatever there is to read.
  bool reset() {
    pollfd entry{fd_.get(), 0, 0};
    return ::poll(&entry, 1, 20'000) == 1 && (entry.revents & POLLERR) != 0;
  }
  // Whether the server closed, with nothing before.
  bool closed() { return rest_.empty() && !more() && ended_; }

 private:
  bool more() {
    char buffer[65536];
    const auto got = ::recv(fd_.get(), buffer, sizeof buffer, 0);
    ended_ = got == 0 || (got < 0 && errno == ECONNRESET);
    if (got <= 0) return false;
    rest_.append(buffer, static_cast<std::size_t>(got));
    return true;
  }
  net::Fd fd_;
  std::string rest_;
  bool ended_ = false;
};

class AdminServerTest : public ::testing::Test {
 protected:
  void start(AdminAccess access = {}) {
    auto server =
        AdminServer::create(*loop_, *net::Address::parse("127.0.0.1:0"), std::move(access),
                            [](const AdminRequest& request) { return page(request); });
    ASSERT_TRUE(server.has_value());
    server_ = std::move(*server);
    address_ = server_->listening();
    thread_ = std::thread([this] { loop_->run(); });
  }
  void TearDown() override {
    loop_->stop();
    if (thread_.joinable()) thread_.join();
    server_.reset();
  }
  static AdminAnswer page(const AdminRequest& request) {
    if (request.path == "/big") return {200, "text/plain", std::string(8 << 20, 'b')};
    if (request.query == "long") return {200, "text/plain", std::string(1 << 20, 'l')};
    if (request.path == "/missing") return {404, "application/json", "{}"};
    std::string text(request.method == http::Method::Post ? "POST " : "GET ");
    text.append(request.path).append("?").append(request.query).append(" ").append(request.body);
    return {200, "text/plain", text};
  }
  std::string status(const std::string& request) {
    Client client(address_);
    client.send(request);
    const std::string answer = client.answer();
    return answer.size() > 12 ? answer.substr(9, 3) : answer;
  }

  std::unique_ptr<net::Loop> loop_ = *net::Loop::create();
  std::unique_ptr<AdminServer> server_;
  net::Address address_ = *net::Address::parse("127.0.0.1:1");
  std::thread thread_;
};

std::string get(const std::string& path, const std::string& more = "") {
  return "GET " + path + " HTTP/1.1\r\nhost: localhost\r\n" + more + "\r\n";
}

std::string body_of(const std::string& answer) {
  const auto end = answer.find("\r\n\r\n");
  return end == std::string::npos ? "" : answer.substr(end + 4);
}

TEST_F(AdminServerTest, answers_what_the_handler_says) {
  start();
  Client client(address_);
  client.send(get("/x?a=b"));
  const std::string answer = client.answer();
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 200 ")) << answer;
  EXPECT_NE(answer.find("cache-control: no-store\r\n"), std::string::npos);
  EXPECT_NE(answer.find("x-content-type-options: nosniff\r\n"), std::string::npos);
  EXPECT_EQ(body_of(answer), "GET /x?a=b ");
  client.send(get("/missing"));  // the connection is kept
  EXPECT_TRUE(client.answer().starts_with("HTTP/1.1 404 "));
}

TEST_F(AdminServerTest, answers_pipelined_requests_in_order) {
  start();
  Client client(address_);
  std::string all;
  for (int i = 0; i < 50; ++i) all += get("/" + std::to_string(i));
  client.send(all);
  for (int i = 0; i < 50; ++i) {
    EXPECT_EQ(body_of(client.answer()), "GET /" + std::to_string(i) + "? ");
  }
}

TEST_F(AdminServerTest, goes_on_with_what_came_meanwhile_after_an_answer_that_had_to_wait) {
  start();
  Client client(address_);
  client.send(get("/big") + get("/after"));
  EXPECT_EQ(body_of(client.answer()).size(), 8u << 20);
  EXPECT_EQ(body_of(client.answer()), "GET /after? ");
}

TEST_F(AdminServerTest, takes_a_request_that_comes_byte_by_byte) {
  start();
  Client client(address_);
  for (const char c : get("/slow")) client.send({&c, 1});
  EXPECT_EQ(body_of(client.answer()), "GET /slow? ");
}

TEST_F(AdminServerTest, takes_a_body_that_comes_long_after_its_head) {
  start();
  Client client(address_);
  const std::string body(300'000, 'x');
  client.send("POST /put HTTP/1.1\r\nhost: localhost\r\ncontent-length: 300000\r\n\r\n");
  for (std::size_t at = 0; at < body.size(); at += 3000) client.send(body.substr(at, 3000));
  EXPECT_EQ(body_of(client.answer()), "POST /put? " + body);
  client.send("POST /put HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n"
              "3\r\nabc\r\n0\r\n\r\n" +
              get("/next"));
  EXPECT_EQ(body_of(client.answer()), "POST /put? abc");
  EXPECT_EQ(body_of(client.answer()), "GET /next? ");
}

std::string chunks_of_a_byte(int count) {
  std::string text;
  for (int i = 0; i < count; ++i) text += "1\r\nx\r\n";
  return text;
}

std::string post_chunked(const std::string& path, const std::string& more = "") {
  return "POST " + path + " HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n" + more +
         "\r\n";
}

TEST_F(AdminServerTest, takes_a_body_in_chunks_of_a_byte_and_what_follows_it) {
  start();
  Client client(address_);
  client.send(post_chunked("/put") + chunks_of_a_byte(100'000) + "0\r\n\r\n" + get("/next"));
  EXPECT_EQ(body_of(client.answer()), "POST /put? " + std::string(100'000, 'x'));
  EXPECT_EQ(body_of(client.answer()), "GET /next? ");
}

TEST_F(AdminServerTest, a_body_that_is_mostly_framing_is_refused_long_before_its_limit) {
  start();
  Client client(address_);
  client.send(post_chunked("/put") + chunks_of_a_byte(400'000));  // and no end
  EXPECT_TRUE(client.answer_began());
}

TEST_F(AdminServerTest, who_may_not_ask_is_refused_before_the_body_has_come) {
  AdminAccess access;
  access.needs_token = true;
  access.token = hash_key("secret");
  start(access);
  EXPECT_EQ(status("POST /x HTTP/1.1\r\nhost: localhost\r\ncontent-length: 99999999\r\n\r\n"),
            "401");
  EXPECT_EQ(status("POST /livez HTTP/1.1\r\nhost: evil.example\r\ncontent-length: 99999999\r\n"
                   "\r\n"),
            "403");
  Client sender(address_);
  sender.send(post_chunked("/x") + chunks_of_a_byte(40'000));  // and no end
  EXPECT_TRUE(sender.answer_began());
}

TEST_F(AdminServerTest, a_refusal_of_a_small_body_keeps_the_connection) {
  AdminAccess access;
  access.needs_token = true;
  access.token = hash_key("secret");
  start(access);
  Client client(address_);
  client.send(post_chunked("/x") + "3\r\nabc\r\n0\r\n\r\n");
  EXPECT_TRUE(client.answer().starts_with("HTTP/1.1 401 "));
  client.send(post_chunked("/x", "x-api-key: secret\r\n") + "3\r\nabc\r\n0\r\n\r\n");
  EXPECT_EQ(body_of(client.answer()), "POST /x? abc");
}

TEST_F(AdminServerTest, a_head_request_has_the_length_and_no_body) {
  start();
  Client client(address_);
  client.send("HEAD /x HTTP/1.1\r\nhost: localhost\r\n\r\n" + get("/y"));
  EXPECT_NE(client.answer(true).find("content-length: 8\r\n"), std::string::npos);
  EXPECT_EQ(body_of(client.answer()), "GET /y? ");
}

TEST_F(AdminServerTest, closes_when_it_was_asked_to_and_with_http_1_0) {
  start();
  for (const std::string& request :
       {get("/", "connection: close\r\n"), std::string("GET / HTTP/1.0\r\n\r\n")}) {
    Client client(address_);
    client.send(request);
    const std::string answer = client.answer();
    EXPECT_TRUE(answer.starts_with("HTTP/1.1 200 ")) << answer;
    EXPECT_NE(answer.find("connection: close\r\n"), std::string::npos);
    EXPECT_TRUE(client.closed());
  }
}

TEST_F(AdminServerTest, refuses_what_is_no_http_and_closes) {
  start();
  for (const std::string& request :
       {std::string("hello\r\n\r\n"), std::string("GET / HTTP/1.1\r\n\r\n"),
        std::string("GET / HTTP/1.1\r\nhost: a\r\nhost: b\r\n\r\n"),
        std::string("POST / HTTP/1.1\r\nhost: localhost\r\ncontent-length: 3\r\n"
                    "transfer-encoding: chunked\r\n\r\nabc")}) {
    Client client(address_);
    client.send(request);
    EXPECT_TRUE(client.answer().starts_with("HTTP/1.1 400 ")) << request;
    EXPECT_TRUE(client.closed());
  }
  EXPECT_EQ(status("POST / HTTP/1.1\r\nhost: localhost\r\ncontent-length: 99999999\r\n\r\n"),
            "413");
}

TEST_F(AdminServerTest, survives_clients_that_leave_at_any_point) {
  start();
  const std::string request = get("/big");
  for (std::size_t size = 0; size <= request.size(); size += 5) {
    Client client(address_);
    client.send(request.substr(0, size));
  }
  EXPECT_EQ(status(get("/")), "200");
}

TEST_F(AdminServerTest, knows_its_own_names_only) {
  AdminAccess access;
  access.hosts = {"admin.example"};
  start(access);
  const auto with_host = [&](const std::string& host) {
    return status("GET / HTTP/1.1\r\nhost: " + host + "\r\n\r\n");
  };
  for (const char* const host : {"localhost", "localhost:9090", "127.0.0.1", "127.0.0.1:9090",
                                 "10.1.2.3:80", "[::1]", "[::1]:9090", "admin.example",
                                 "admin.example:9090"}) {
    EXPECT_EQ(with_host(host), "200") << host;
  }
  // Names that an attacker's page may have, pointing to us; some look like hexadecimal numbers.
  for (const char* const host : {"evil.example", "evil.example:9090", "localhost.evil.example",
                                 "admin.example.evil.example", "bad.de", "face.cafe:9090",
                                 "1.2.3.4.ad", "1.2.3"}) {
    EXPECT_EQ(with_host(host), "403") << host;
  }
}

TEST_F(AdminServerTest, refuses_pages_of_other_sites) {
  start();
  EXPECT_EQ(status(get("/", "sec-fetch-site: cross-site\r\n")), "403");
  EXPECT_EQ(status(get("/", "sec-fetch-site: same-site\r\n")), "403");
  EXPECT_EQ(status(get("/", "sec-fetch-site: same-origin\r\n")), "200");
  EXPECT_EQ(status(get("/", "sec-fetch-site: none\r\n")), "200");
}

TEST_F(AdminServerTest, asks_for_the_token_except_for_probes) {
  AdminAccess access;
  access.needs_token = true;
  access.token = hash_key("secret");
  start(access);
  EXPECT_EQ(status(get("/")), "401");
  EXPECT_EQ(status(get("/", "authorization: Bearer wrong\r\n")), "401");
  EXPECT_EQ(status(get("/", "authorization: Bearer secret\r\nx-api-key: other\r\n")), "401");
  EXPECT_EQ(status(get("/", "authorization: Bearer secret\r\n")), "200");
  EXPECT_EQ(status(get("/", "x-api-key: secret\r\n")), "200");
  EXPECT_EQ(status(get("/livez")), "200");
  EXPECT_EQ(status(get("/readyz")), "200");
  EXPECT_EQ(status(get("/livez/../metrics")), "400");  // no other way to write a path
  EXPECT_EQ(status(get("/livez/")), "401");
  EXPECT_EQ(status(get("/metrics")), "401");
}

TEST_F(AdminServerTest, serves_many_connections_and_frees_them) {
  start();
  for (int round = 0; round < 5; ++round) {
    std::vector<std::unique_ptr<Client>> clients;
    for (int i = 0; i < 100; ++i) clients.push_back(std::make_unique<Client>(address_));
    for (auto& client : clients) client->send(get("/"));
    for (auto& client : clients) EXPECT_EQ(body_of(client->answer()), "GET /? ");
  }
}

TEST_F(AdminServerTest, silent_connections_keep_nobody_out) {
  start();
  std::vector<std::unique_ptr<Client>> silent;
  for (int i = 0; i < 600; ++i) silent.push_back(std::make_unique<Client>(address_));
  EXPECT_EQ(status(get("/livez")), "200");
  EXPECT_TRUE(silent.front()->closed());  // it waited longest
}

TEST_F(AdminServerTest, who_was_answered_stays_while_silent_ones_can_go) {
  start();
  Client known(address_);
  known.send(get("/x"));
  EXPECT_FALSE(known.answer().empty());
  std::vector<std::unique_ptr<Client>> silent;
  for (int i = 0; i < 600; ++i) silent.push_back(std::make_unique<Client>(address_));
  EXPECT_EQ(status(get("/livez")), "200");
  known.send(get("/again"));
  EXPECT_EQ(body_of(known.answer()), "GET /again? ");
}

TEST_F(AdminServerTest, who_reads_no_answer_keeps_nobody_out) {
  start();
  std::vector<std::unique_ptr<Client>> deaf;
  for (int i = 0; i < 256; ++i) {
    deaf.push_back(std::make_unique<Client>(address_, Client::Kind::Deaf));
    deaf.back()->send(get("/livez?long"));
    ASSERT_TRUE(deaf.back()->answer_began());
  }
  EXPECT_EQ(status(get("/livez")), "200");
}

TEST_F(AdminServerTest, an_answer_that_was_asked_for_with_right_is_not_cut_for_probes) {
  start();
  Client slow(address_, Client::Kind::Deaf);
  slow.send(get("/big"));
  ASSERT_TRUE(slow.answer_began());
  std::vector<std::unique_ptr<Client>> deaf;
  for (int i = 0; i < 300; ++i) {
    deaf.push_back(std::make_unique<Client>(address_, Client::Kind::Deaf));
    deaf.back()->send(get("/livez?long"));
    ASSERT_TRUE(deaf.back()->answer_began());
  }
  EXPECT_EQ(body_of(slow.answer()).size(), 8u << 20);
}

TEST_F(AdminServerTest, an_answer_without_right_has_a_short_deadline) {
  start();
  Client deaf(address_, Client::Kind::Deaf);
  std::string more = get("/livez?long");
  for (int i = 0; i < 300; ++i) more += get("/livez");  // unread, they make the end a reset
  deaf.send(more);
  EXPECT_TRUE(deaf.reset());  // long before the client's own patience ends
}

TEST_F(AdminServerTest, half_a_head_has_a_short_deadline) {
  start();
  Client client(address_);
  client.send("GET / HTTP/1.1\r\nhost: loc");
  EXPECT_TRUE(client.closed());  // long before the client's own patience ends
}

TEST_F(AdminServerTest, host_names_have_no_case) {
  AdminAccess access;
  access.hosts = {"Ops.example"};
  start(access);
  for (const char* const host : {"LOCALHOST", "LocalHost:9090", "ops.EXAMPLE"}) {
    EXPECT_EQ(status("GET / HTTP/1.1\r\nhost: " + std::string(host) + "\r\n\r\n"), "200") << host;
  }
  EXPECT_EQ(status("GET / HTTP/1.1\r\nhost: evil.example\r\n\r\n"), "403");
}

}  // namespace
}  // namespace signalbox::gateway
