// SPDX-License-Identifier: Apache-2.0
// SHA-256 over DER, which needs no separators, and over lists in the order of their texts.
#include "io/net/tls_digest.h"

#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string_view>
#include <vector>

namespace signalbox::net {
namespace {

std::string sha256(std::string_view text) {
  unsigned char hash[EVP_MAX_MD_SIZE];
  unsigned int size = 0;
  EVP_Digest(text.data(), text.size(), hash, &size, EVP_sha256(), nullptr);
  return {hash, hash + size};
}

std::string sorted(std::vector<std::string> texts) {
  std::sort(texts.begin(), texts.end());
  std::string all;
  for (const std::string& text : texts) all += text;
  return all;
}

// With its trust settings, if it has some.
std::string der(X509* certificate) {
  unsigned char* bytes = nullptr;
  const int size = i2d_X509_AUX(certificate, &bytes);
  std::string text(bytes, bytes + std::max(size, 0));
  OPENSSL_free(bytes);
  return text;
}

std::string own(SSL_CTX* context) {
  X509* const certificate = SSL_CTX_get0_certificate(context);
  if (certificate == nullptr) return {};
  std::string text = der(certificate);
  STACK_OF(X509)* chain = nullptr;
  SSL_CTX_get0_chain_certs(context, &chain);
  for (int i = 0; i < sk_X509_num(chain); ++i) text += der(sk_X509_value(chain, i));
  return text;
}

std::string trusted(SSL_CTX* context) {
  constexpr auto kFree = [](STACK_OF(X509)* list) { sk_X509_pop_free(list, &X509_free); };
  const std::unique_ptr<STACK_OF(X509), decltype(kFree)> list(
      X509_STORE_get1_all_certs(SSL_CTX_get_cert_store(context)));
  std::vector<std::string> texts;
  for (int i = 0; i < sk_X509_num(list.get()); ++i) {
    texts.push_back(der(sk_X509_value(list.get(), i)));
  }
  return sorted(std::move(texts));
}

std::string state_of_folder(const std::string& folder) {
  namespace fs = std::filesystem;
  std::error_code failed;
  const auto entry = [&](const fs::path& path) {
    const auto time = fs::last_write_time(path, failed).time_since_epoch().count();
    return path.string() + " " + std::to_string(failed ? 0 : time) + "\n";
  };
  std::vector<std::string> entries{entry(folder)};
  for (fs::directory_iterator at(folder, failed), end; !failed && at != end; at.increment(failed)) {
    entries.push_back(entry(at->path()));
    failed.clear();
  }
  return sorted(std::move(entries));
}

}  // namespace

std::string digest_of(ssl_ctx_st* context) {
  return sha256(sha256(own(context)) + sha256(trusted(context)));
}

std::string digest_of_system_trust() {
  const char* const chosen = std::getenv(X509_get_default_cert_dir_env());
  std::string_view folders = chosen != nullptr ? chosen : X509_get_default_cert_dir();
  std::string all;
  while (!folders.empty()) {
    const std::size_t end = std::min(folders.find(':'), folders.size());
    all += state_of_folder(std::string(folders.substr(0, end)));
    folders.remove_prefix(std::min(end + 1, folders.size()));
  }
  return sha256(all);
}

}  // namespace signalbox::net
