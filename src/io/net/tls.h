// SPDX-License-Identifier: Apache-2.0
// TLS 1.2 and 1.3 on either side, over a non-blocking socket.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/result.h"

struct ssl_ctx_st;
struct ssl_st;

namespace signalbox::net {

// Certificates and trust of one side. Shared by its connections, and lives as long as they do when
// a reload puts another in its place.
class TlsContext {
 public:
  enum class File : std::uint8_t { Certificate, Key, ClientCa };
  // PEM files; a key with a passphrase is none. `client_ca` empty: clients need no certificate.
  // `at_fault`, if given, is the file that an error is about.
  static Result<std::shared_ptr<TlsContext>> server(const std::string& certificate,
                                                    const std::string& key,
                                                    const std::string& client_ca,
                                                    File* at_fault = nullptr);
  // `ca` empty: the system's trust store. The peer's certificate and name are always checked.
  static Result<std::shared_ptr<TlsContext>> client(const std::string& ca);

  explicit TlsContext(ssl_ctx_st* context) : context_(context) {}
  TlsContext(const TlsContext&) = delete;
  TlsContext& operator=(const TlsContext&) = delete;
  ~TlsContext();

  ssl_ctx_st* raw() const { return context_; }
  // Both show and trust the same, so that one of the same side can stand for the other.
  bool same_as(const TlsContext& other) const { return made_of_ == other.made_of_; }

 private:
  ssl_ctx_st* context_;
  std::string made_of_;
};

}  // namespace signalbox::net
