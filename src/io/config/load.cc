// SPDX-License-Identifier: Apache-2.0
// Reads files, parses them, then fetches what the configuration points to.
#include "io/config/load.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <set>

#include "core/spec/nearest.h"

namespace signalbox::config {
namespace {

namespace fs = std::filesystem;

// The bytes of a regular file of at most `most` bytes.
Result<std::string> read_file(const std::string& path, std::size_t most) {
  // A FIFO would make an open that may wait do so.
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(fd < 0 ? nullptr : fdopen(fd, "rb"),
                                                             &std::fclose);
  if (!file) return invalid("cannot be opened: " + std::string(std::strerror(errno)) + ".");
  struct stat status {};
  if (fstat(fileno(file.get()), &status) != 0 || !S_ISREG(status.st_mode)) {
    return invalid("is no regular file.");
  }
  std::string text;
  char buffer[16384];
  while (const std::size_t got = std::fread(buffer, 1, sizeof buffer, file.get())) {
    if (text.size() + got > most) {
      return invalid("is larger than " + std::to_string(most) + " bytes.");
    }
    text.append(buffer, got);
  }
  if (std::ferror(file.get()) != 0) return invalid("cannot be read to its end.");
  return text;
}

std::optional<std::string> process_environment(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  if (value == nullptr) return std::nullopt;
  return value;
}

std::string_view trim(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n";
  const std::size_t start = text.find_first_not_of(kSpace);
  if (start == std::string_view::npos) return {};
  return text.substr(start, text.find_last_not_of(kSpace) - start + 1);
}

// Keys travel in header fields: visible ASCII without spaces.
bool is_key_text(std::string_view text) {
  return !text.empty() && text.size() <= 4096 &&
         std::all_of(text.begin(), text.end(), [](char c) { return c > 0x20 && c < 0x7F; });
}

// Fetches secrets; every problem stands where the configuration points to the secret.
class SecretLoader {
 public:
  SecretLoader(const Options& options, spec::Report& report, Loaded& out)
      : options_(options), report_(report), out_(out) {}

  void run() {
    const spec::Gateway& gateway = out_.config.gateway;
    const std::string spec = "Gateway/" + gateway.name + ".spec";
    admin_token(gateway.admin.token, spec + ".admin.token");
    readable(gateway.tls.cert, spec + ".tls.cert");
    readable(gateway.tls.key, spec + ".tls.key");
    readable(gateway.tls.client_ca, spec + ".tls.client_ca");
    for (const spec::Tenant& tenant : out_.config.tenants) {
      for (std::size_t i = 0; i < tenant.keys.size(); ++i) {
        tenant_keys(tenant, i);
      }
    }
    for (const spec::Pool& pool : out_.config.pools) {
      readable(pool.tls.ca, "Pool/" + pool.name + ".spec.tls.ca");
      upstream_key(pool);
    }
  }

 private:
  using From = spec::SecretSource::From;

  // The text behind a source; nothing, with a problem, when there is none. To be wiped.
  std::optional<std::string> fetch(const spec::SecretSource& source, const std::string& path) {
    if (source.from == From::Env) {
      const auto& environment = options_.environment;
      auto value = environment ? environment(source.where) : process_environment(source.where);
      if (value && !trim(*value).empty()) return value;
      report_.add(path, "the environment variable " + spec::quote(source.where) +
                            (value ? " is empty" : " is not set") +
                            "; set it before the start, or use {file: PATH}.");
      return std::nullopt;
    }
    return file(source.where, path);
  }

  std::optional<std::string> file(const std::string& name, const std::string& path) {
    const std::string full = resolve_path(out_.folder, name);
    out_.files.push_back(full);
    auto text = read_file(full, options_.secret_bytes_max);
    if (text) return std::move(*text);
    report_.add(path, "the file " + spec::quote(full) + " " + text.error().message);
    return std::nullopt;
  }

  // PEM files are parsed by those who use them; here they have to be there.
  void readable(const std::string& name, const std::string& path) {
    if (name.empty()) return;
    if (auto text = file(name, path)) wipe(*text);
  }

  // A key as text or as `sha256:...`; nothing, with a problem, when it is neither.
  std::optional<Sha256> hash_of(std::string_view key, const std::string& path) {
    constexpr std::string_view kPrefix = "sha256:";
    if (key.starts_with(kPrefix)) {
      if (auto hash = parse_sha256(key.substr(kPrefix.size()))) return *hash;
      report_.add(path, "`sha256:` is followed by something other than 64 hexadecimal digits.");
      return std::nullopt;
    }
    if (is_key_text(key)) return sha256(key);
    report_.add(path, "holds no key: a key is one word of visible ASCII characters.");
    return std::nullopt;
  }

  void admin_token(const spec::KeySource& source, const std::string& path) {
    if (source.from == From::None) return;
    if (source.from == From::Hash) {
      out_.secrets.admin = hash_of("sha256:" + source.where, path);
      return;
    }
    auto text = fetch(source, path);
    if (!text) return;
    out_.secrets.admin = hash_of(trim(*text), path);
    wipe(*text);
  }

  void tenant_keys(const spec::Tenant& tenant, std::size_t i) {
    const spec::KeySource& source = tenant.keys[i];
    const std::string path = "Tenant/" + tenant.name + ".spec.keys[" + std::to_string(i) + "]";
    if (source.from == From::Hash) return tenant_key(tenant, "sha256:" + source.where, path);
    auto text = fetch(source, path);
    if (!text) return;
    // One key a line; empty lines and lines that start with `#` are none.
    std::size_t found = 0;
    for (std::string_view rest = *text; !rest.empty();) {
      const std::size_t end = std::min(rest.find('\n'), rest.size());
      const std::string_view line = trim(rest.substr(0, end));
      rest.remove_prefix(std::min(end + 1, rest.size()));
      if (line.empty() || line.front() == '#') continue;
      ++found;
      tenant_key(tenant, line, path);
    }
    if (found == 0) report_.add(path, "holds no key.");
    wipe(*text);
  }

  void tenant_key(const spec::Tenant& tenant, std::string_view key, const std::string& path) {
    const auto hash = hash_of(key, path);
    if (!hash) return;
    const auto [at, fresh] = out_.secrets.tenants.try_emplace(*hash, tenant.name);
    if (!fresh && at->second != tenant.name) {
      report_.add(path, "holds a key of Tenant " + spec::quote(at->second) +
                            " too; a key belongs to one tenant.");
    }
  }

  void upstream_key(const spec::Pool& pool) {
    if (pool.api_key.from == From::None) return;
    const std::string path = "Pool/" + pool.name + ".spec.api_key";
    auto text = fetch(pool.api_key, path);
    if (!text) return;
    if (const auto key = trim(*text); is_key_text(key)) {
      out_.secrets.upstream.insert_or_assign(pool.name, Secret(key));
    } else {
      report_.add(path, "holds no key: a key is one word of visible ASCII characters.");
    }
    wipe(*text);
  }

  const Options& options_;
  spec::Report& report_;
  Loaded& out_;
};

Result<Loaded> finish(const std::vector<spec::Document>& documents, Loaded loaded,
                      spec::Report& report, const Options& options) {
  loaded.config = spec::parse(documents, report);
  if (report.clean() && options.secrets) SecretLoader(options, report, loaded).run();
  if (report.clean() && options.secrets && options.inspect) options.inspect(loaded, report);
  if (!report.clean()) return report.error();
  return loaded;
}

bool is_yaml_name(const fs::path& path) {
  const std::string name = path.filename().string();
  const std::string extension = path.extension().string();
  return !name.starts_with('.') && (extension == ".yaml" || extension == ".yml");
}

// The files of a directory in the order of their names.
Result<std::vector<std::string>> list(const std::string& path, const Options& options) {
  std::error_code fault;
  std::vector<std::string> files;
  for (fs::directory_iterator at(path, fault), end; !fault && at != end; at.increment(fault)) {
    if (!is_yaml_name(at->path()) || at->is_directory(fault)) continue;
    files.push_back(at->path().string());
    if (files.size() > options.files_max) {
      return invalid(path + ": has more than " + std::to_string(options.files_max) + " files.");
    }
  }
  if (fault) return invalid(path + ": cannot be listed: " + fault.message() + ".");
  if (files.empty()) return invalid(path + ": has no *.yaml or *.yml file.");
  std::sort(files.begin(), files.end());
  return files;
}

std::set<Sha256> keys_of(const Secrets& secrets, const std::string& tenant) {
  std::set<Sha256> keys;
  for (const auto& [hash, owner] : secrets.tenants) {
    if (owner == tenant) keys.insert(hash);
  }
  return keys;
}

std::string_view upstream_of(const Secrets& secrets, const std::string& pool) {
  const auto found = secrets.upstream.find(pool);
  return found == secrets.upstream.end() ? std::string_view{} : found->second.reveal();
}

}  // namespace

std::vector<std::string> diff(const Loaded& before, const Loaded& after) {
  std::vector<std::string> out = spec::diff(before.config, after.config);
  if (before.secrets.admin != after.secrets.admin) {
    out.push_back("Gateway/" + after.config.gateway.name + ".spec.admin.token: another token");
  }
  // Resources that came or went have a line already.
  for (const spec::Tenant& tenant : after.config.tenants) {
    if (spec::find(before.config.tenants, tenant.name) == nullptr) continue;
    if (keys_of(before.secrets, tenant.name) != keys_of(after.secrets, tenant.name)) {
      out.push_back("Tenant/" + tenant.name + ".spec.keys: other keys");
    }
  }
  for (const spec::Pool& pool : after.config.pools) {
    if (spec::find(before.config.pools, pool.name) == nullptr) continue;
    if (upstream_of(before.secrets, pool.name) != upstream_of(after.secrets, pool.name)) {
      out.push_back("Pool/" + pool.name + ".spec.api_key: another key");
    }
  }
  return out;
}

std::string resolve_path(const std::string& folder, const std::string& path) {
  return (fs::path(folder) / path).lexically_normal().string();
}

Result<Loaded> load(const std::string& path, const Options& options) {
  std::error_code fault;
  Loaded loaded;
  loaded.files = {path};
  if (fs::is_directory(path, fault)) {
    loaded.folder = path;
    TRY_ASSIGN(loaded.files, list(path, options));
  } else {
    loaded.folder = fs::path(path).parent_path().string();
  }
  if (loaded.folder.empty()) loaded.folder = ".";
  spec::Report report;
  std::vector<spec::Document> documents;
  for (const std::string& file : loaded.files) {
    const auto text = read_file(file, options.yaml.bytes_max);
    if (!text) {
      report.add({file, 0, 0}, "", text.error().message);
      continue;
    }
    for (auto& document : read_yaml(file, *text, options.yaml, report)) {
      documents.push_back(std::move(document));
    }
  }
  return finish(documents, std::move(loaded), report, options);
}

Result<Loaded> load_text(const std::string& file, const std::string& text,
                         const std::string& folder, const Options& options) {
  spec::Report report;
  Loaded loaded;
  loaded.folder = folder;
  const auto documents = read_yaml(file, text, options.yaml, report);
  return finish(documents, std::move(loaded), report, options);
}

}  // namespace signalbox::config
