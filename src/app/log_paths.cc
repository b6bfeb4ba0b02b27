// SPDX-License-Identifier: Apache-2.0
// Compares the paths of the logs.
#include "app/log_paths.h"

#include <filesystem>

namespace signalbox::app {
namespace {

namespace fs = std::filesystem;

bool same_file(const std::string& a, const std::string& b) {
  if (a.empty() || b.empty()) return false;
  if (a == "-" || b == "-") return a == b;
  std::error_code fault;
  if (fs::is_character_file(a, fault)) return false;
  if (fs::equivalent(a, b, fault)) return true;
  return fs::weakly_canonical(fs::absolute(a, fault), fault) ==
         fs::weakly_canonical(fs::absolute(b, fault), fault);
}

Error shared(const char* one, const char* other, const std::string& path) {
  return invalid("Gateway.logs." + std::string(one) + " and Gateway.logs." + other +
                 " are the same file, '" + path + "': give each log a file of its own.");
}

}  // namespace

Result<void> check_logs(const spec::Logs& logs) {
  if (same_file(logs.events, logs.access)) return shared("events", "access", logs.events);
  if (same_file(logs.events, logs.decisions)) return shared("events", "decisions", logs.events);
  if (logs.access != "-" && same_file(logs.access, logs.decisions)) {
    return shared("access", "decisions", logs.access);
  }
  return {};
}

}  // namespace signalbox::app
