// SPDX-License-Identifier: Apache-2.0
// Goal: sessions are resumed where client certificates are asked for too. Method: both ends in
// memory, OpenSSL against itself.
#include "io/net/tls.h"

#include <gtest/gtest.h>
#include <openssl/ssl.h>

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

}  // namespace
}  // namespace signalbox::net
