// SPDX-License-Identifier: Apache-2.0
// Builds OpenSSL contexts with our floor: TLS 1.2, no compression, no renegotiation.
#include "io/net/tls.h"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509err.h>

#include "io/net/tls_digest.h"

namespace signalbox::net {
namespace {

std::string last_error() {
  char text[256] = "unknown error";
  if (const unsigned long code = ERR_get_error(); code != 0) {
    ERR_error_string_n(code, text, sizeof text);
  }
  ERR_clear_error();
  return text;
}

Result<std::shared_ptr<TlsContext>> make(const SSL_METHOD* method) {
  SSL_CTX* raw = SSL_CTX_new(method);
  if (raw == nullptr) return internal("OpenSSL cannot make a context: " + last_error());
  auto context = std::make_shared<TlsContext>(raw);
  SSL_CTX_set_min_proto_version(raw, TLS1_2_VERSION);
  SSL_CTX_set_options(raw, SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION |
                               SSL_OP_IGNORE_UNEXPECTED_EOF);
  SSL_CTX_set_mode(raw, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                            SSL_MODE_RELEASE_BUFFERS);
  // Else OpenSSL would ask at the terminal, and wait.
  SSL_CTX_set_default_passwd_cb(raw, [](char*, int, int, void*) { return 0; });
  return context;
}

}  // namespace

TlsContext::~TlsContext() { SSL_CTX_free(context_); }

Result<std::shared_ptr<TlsContext>> TlsContext::server(const std::string& certificate,
                                                       const std::string& key,
                                                       const std::string& client_ca,
                                                       File* at_fault) {
  ERR_clear_error();
  const auto blame = [&](File file, const std::string& why) {
    if (at_fault != nullptr) *at_fault = file;
    return invalid(why);
  };
  TRY_ASSIGN(auto context, make(TLS_server_method()));
  SSL_CTX* raw = context->raw();
  if (SSL_CTX_use_certificate_chain_file(raw, certificate.c_str()) != 1) {
    return blame(File::Certificate,
                 "The certificate '" + certificate + "' cannot be used: " + last_error() + ".");
  }
  if (SSL_CTX_use_PrivateKey_file(raw, key.c_str(), SSL_FILETYPE_PEM) != 1) {
    if (ERR_GET_REASON(ERR_peek_error()) == X509_R_KEY_VALUES_MISMATCH) {
      ERR_clear_error();
      return blame(File::Key, "The key '" + key + "' does not belong to '" + certificate + "'.");
    }
    return blame(File::Key, "The key '" + key + "' cannot be used: " + last_error() + ".");
  }
  if (SSL_CTX_check_private_key(raw) != 1) {
    return blame(File::Key, "The key '" + key + "' does not belong to '" + certificate + "'.");
  }
  if (!client_ca.empty()) {
    if (SSL_CTX_load_verify_locations(raw, client_ca.c_str(), nullptr) != 1) {
      return blame(File::ClientCa,
                   "The client CA '" + client_ca + "' cannot be used: " + last_error() + ".");
    }
    SSL_CTX_set_verify(raw, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
    // Without it OpenSSL fails every handshake that resumes a session. Sessions of other contexts
    // stay strangers: each context has ticket keys and a cache of its own.
    static constexpr unsigned char kSessions[] = "signalbox";
    SSL_CTX_set_session_id_context(raw, kSessions, sizeof kSessions - 1);
  }
  context->made_of_ = digest_of(raw) + (client_ca.empty() ? "" : " strict");
  return context;
}

Result<std::shared_ptr<TlsContext>> TlsContext::client(const std::string& ca) {
  ERR_clear_error();
  TRY_ASSIGN(auto context, make(TLS_client_method()));
  SSL_CTX* raw = context->raw();
  // Before it is used: what changes meanwhile makes the next one differ.
  const std::string folders = ca.empty() ? digest_of_system_trust() : "";
  const bool trusted = ca.empty() ? SSL_CTX_set_default_verify_paths(raw) == 1
                                  : SSL_CTX_load_verify_locations(raw, ca.c_str(), nullptr) == 1;
  if (!trusted) return invalid("The CA '" + ca + "' cannot be used: " + last_error() + ".");
  SSL_CTX_set_verify(raw, SSL_VERIFY_PEER, nullptr);
  context->made_of_ = digest_of(raw) + folders;
  return context;
}

}  // namespace signalbox::net
