// SPDX-License-Identifier: Apache-2.0
// The commands of the program: each takes plain options and returns an exit code.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace signalbox::app {

struct ServeOptions {
  std::string config;               // file or directory; empty: zero configuration
  std::vector<std::string> urls;    // engines, with zero configuration
  std::string listen;               // overrides the configuration; empty: does not
  std::string admin;
  int threads = 0;                  // 0: as configured
  std::string access_log;           // overrides; empty: does not
  std::string event_log;
  std::uint64_t seed = 0;           // 0: drawn
  bool insecure = false;
  std::string log_level = "info";
};
int serve(const ServeOptions& options);

struct ValidateOptions {
  std::string config;
  bool without_secrets = false;     // keys, certificates and folders of logs need not be there
};
int validate(const ValidateOptions& options);

struct ReplayOptions {
  std::vector<std::string> logs;    // files of one event log, oldest first
};
int replay(const ReplayOptions& options);

struct AdminOptions {
  std::string admin = "127.0.0.1:9090";
  std::string token_env = "SIGNALBOX_ADMIN_TOKEN";
  std::string output = "table";     // or json
};
int explain(const AdminOptions& options, const std::string& request);
int get(const AdminOptions& options, const std::string& what);
int top(const AdminOptions& options, bool once);

int docs(const std::string& page);

}  // namespace signalbox::app
