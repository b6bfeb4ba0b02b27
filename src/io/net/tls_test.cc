// SPDX-License-Identifier: Apache-2.0
// Goal: sessions are resumed where client certificates are asked for too; contexts are the same
// when what they show and trust is, whatever the names of files. Method: both ends in memory,
// OpenSSL against itself; certificates in files of the test.
#include "io/net/tls.h"

#include <gtest/gtest.h>
#include <openssl/ssl.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

#include "io/net/certificate_for_test.inc"

namespace signalbox::net {
namespace {

struct Free {
  void operator()(SSL* ssl) const { SSL_free(ssl); }
  void operator()(SSL_SESSION* session) const { SSL_SESSION_free(session); }
};
using Ssl = std::unique_ptr<SSL, Free>;
using Session = std::unique_ptr<SSL_SESSION, Free>;

struct Ends {
  Ssl client;
  Ssl server;
};

Ends ends_of(const TlsContext& client, const TlsContext& server, int version) {
  Ends ends{Ssl(SSL_new(client.raw())), Ssl(SSL_new(server.raw()))};
  BIO* left = nullptr;
  BIO* right = nullptr;
  EXPECT_EQ(BIO_new_bio_pair(&left, 0, &right, 0), 1);
  SSL_set_bio(ends.client.get(), left, left);
  SSL_set_bio(ends.server.get(), right, right);
  SSL_set_connect_state(ends.client.get());
  SSL_set_accept_state(ends.server.get());
  SSL_set_min_proto_version(ends.client.get(), version);
  SSL_set_max_proto_version(ends.client.get(), version);
  return ends;
}

// Shakes hands and carries a byte to the client, behind the tickets of TLS 1.3. False: it failed.
bool talk(const Ends& ends) {
  char byte = 'x';
  bool sent = false;
  for (int turn = 0; turn < 20; ++turn) {
    if (SSL_read(ends.client.get(), &byte, 1) == 1) return true;
    if (!sent) sent = SSL_do_handshake(ends.server.get()) == 1 &&
                      SSL_write(ends.server.get(), &byte, 1) == 1;
  }
  return false;
}

class TlsContextTest : public ::testing::Test {
 protected:
  // Shows its certificate when asked, and trusts itself.
  std::shared_ptr<TlsContext> client() const {
    auto made = *TlsContext::client(own_.certificate);
    SSL_CTX_use_certificate_file(made->raw(), own_.certificate.c_str(), SSL_FILETYPE_PEM);
    SSL_CTX_use_PrivateKey_file(made->raw(), own_.key.c_str(), SSL_FILETYPE_PEM);
    return made;
  }

  const Certificate own_ = make_certificate("tls-own", "localhost", "127.0.0.1");
};

TEST_F(TlsContextTest, a_session_is_resumed_whether_clients_show_certificates_or_not) {
  for (const std::string& client_ca : {std::string(), own_.certificate}) {
    const auto server = *TlsContext::server(own_.certificate, own_.key, client_ca);
    for (const int version : {TLS1_2_VERSION, TLS1_3_VERSION}) {
      const auto context = client();
      const Ends first = ends_of(*context, *server, version);
      ASSERT_TRUE(talk(first)) << client_ca << " " << version;
      EXPECT_EQ(SSL_session_reused(first.server.get()), 0);
      const Session session(SSL_get1_session(first.client.get()));
      const Ends second = ends_of(*context, *server, version);
      ASSERT_EQ(SSL_set_session(second.client.get(), session.get()), 1);
      EXPECT_TRUE(talk(second)) << client_ca << " " << version;
      EXPECT_EQ(SSL_session_reused(second.server.get()), 1) << client_ca << " " << version;
    }
  }
}

std::string text_of(const std::string& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), {}};
}

// A file of its own with this text.
std::string written(const std::string& name, const std::string& text) {
  const std::string path = ::testing::TempDir() + name;
  std::ofstream(path, std::ios::trunc) << text;
  return path;
}

TEST_F(TlsContextTest, is_the_same_when_it_shows_the_same_and_asks_for_the_same) {
  const Certificate other = make_certificate("tls-other", "localhost", "127.0.0.1");
  const std::string copy = written("tls-copy.pem", text_of(own_.certificate));
  const std::string chain =
      written("tls-chain.pem", text_of(own_.certificate) + text_of(other.certificate));
  const auto server = [](const std::string& certificate, const std::string& key,
                         const std::string& client_ca) {
    return *TlsContext::server(certificate, key, client_ca);
  };
  const auto plain = server(own_.certificate, own_.key, "");
  EXPECT_TRUE(plain->same_as(*server(copy, own_.key, "")));
  EXPECT_FALSE(plain->same_as(*server(chain, own_.key, "")));
  EXPECT_FALSE(plain->same_as(*server(other.certificate, other.key, "")));
  const auto strict = server(own_.certificate, own_.key, own_.certificate);
  EXPECT_FALSE(plain->same_as(*strict));
  EXPECT_TRUE(strict->same_as(*server(own_.certificate, own_.key, copy)));
  EXPECT_FALSE(strict->same_as(*server(own_.certificate, own_.key, other.certificate)));
  EXPECT_FALSE(strict->same_as(*server(own_.certificate, own_.key, chain)));
}

TEST_F(TlsContextTest, is_the_same_when_it_trusts_the_same) {
  const Certificate other = make_certificate("tls-other", "localhost", "127.0.0.1");
  const std::string both = text_of(own_.certificate) + text_of(other.certificate);
  const std::string turned = text_of(other.certificate) + text_of(own_.certificate);
  const std::string ca = written("tls-ca.pem", both);
  const auto before = *TlsContext::client(ca);
  written("tls-ca.pem", turned);
  EXPECT_TRUE(before->same_as(**TlsContext::client(ca)));
  written("tls-ca.pem", text_of(own_.certificate));
  EXPECT_FALSE(before->same_as(**TlsContext::client(ca)));
  EXPECT_FALSE(before->same_as(**TlsContext::client("")));
}

TEST_F(TlsContextTest, notices_what_changes_in_the_systems_trust) {
  const std::string folder = ::testing::TempDir() + "tls-system-trust";
  std::filesystem::create_directory(folder);
  const std::string bundle = written("tls-bundle.pem", text_of(own_.certificate));
  ::setenv("SSL_CERT_DIR", ("/no/such/folder:" + folder).c_str(), 1);
  ::setenv("SSL_CERT_FILE", bundle.c_str(), 1);
  const auto first = *TlsContext::client("");
  EXPECT_TRUE(first->same_as(**TlsContext::client("")));
  EXPECT_FALSE(first->same_as(**TlsContext::client(bundle)));
  const std::string member = written("tls-system-trust/1.pem", text_of(own_.certificate));
  const auto second = *TlsContext::client("");
  EXPECT_FALSE(first->same_as(*second));
  std::filesystem::last_write_time(
      member, std::filesystem::last_write_time(member) + std::chrono::seconds(1));
  EXPECT_FALSE(second->same_as(**TlsContext::client("")));
  std::filesystem::remove_all(folder);
  const auto third = *TlsContext::client("");
  written("tls-bundle.pem", text_of(make_certificate("tls-other", "localhost", "::1").certificate));
  EXPECT_FALSE(third->same_as(**TlsContext::client("")));
  ::unsetenv("SSL_CERT_DIR");
  ::unsetenv("SSL_CERT_FILE");
}

}  // namespace
}  // namespace signalbox::net
