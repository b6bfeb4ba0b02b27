// SPDX-License-Identifier: Apache-2.0
// Resolves and compares the paths of the logs.
#include "app/log_paths.h"

#include <filesystem>

#include "io/telemetry/log_file.h"

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

spec::Logs resolved_logs(const config::Loaded& loaded) {
  spec::Logs logs = loaded.config.gateway.logs;
  for (std::string* path : {&logs.access, &logs.decisions, &logs.events}) {
    if (path->empty() || *path == "-") continue;
    *path = fs::absolute(config::resolve_path(loaded.folder, *path)).string();
  }
  return logs;
}

Result<void> check_logs(const spec::Logs& logs) {
  if (same_file(logs.events, logs.access)) return shared("events", "access", logs.events);
  if (same_file(logs.events, logs.decisions)) return shared("events", "decisions", logs.events);
  if (logs.access != "-" && same_file(logs.access, logs.decisions)) {
    return shared("access", "decisions", logs.access);
  }
  return {};
}

void check_logs(const config::Loaded& loaded, const spec::Logs& overridden,
                spec::Report& report) {
  const spec::Gateway& gateway = loaded.config.gateway;
  const auto check = [&](const char* name, const std::string& path, const std::string& instead) {
    if (path.empty() || !instead.empty()) return;
    const auto fit = telemetry::LogFile::check(path);
    if (fit) return;
    report.add("Gateway/" + gateway.name + ".spec.logs." + name, fit.error().message);
  };
  const spec::Logs logs = resolved_logs(loaded);
  check("access", logs.access, overridden.access);
  check("events", logs.events, overridden.events);
  check("decisions", logs.decisions, overridden.decisions);
}

}  // namespace signalbox::app
