// SPDX-License-Identifier: Apache-2.0
// validate, replay, docs: commands that read, say, and exit.
#include <cstdio>
#include <utility>

#include "app/commands.h"
#include "app/event_log.h"
#include "app/log_paths.h"
#include "app/tls_contexts.h"
#include "core/spec/schema.h"
#include "sim/scenario_form.h"

namespace signalbox::app {

int validate(const ValidateOptions& options) {
  config::Options how;
  how.secrets = !options.without_secrets;
  how.inspect = [](const config::Loaded& loaded, spec::Report& report) {
    check_logs(loaded, {}, report);
  };
  const auto whole = load_with_tls(options.config, how);
  if (!whole) {
    std::fprintf(stderr, "%s\n", whole.error().message.c_str());
    return 1;
  }
  const spec::Config& c = whole->loaded.config;
  if (const auto fit = check_logs(resolved_logs(whole->loaded)); !fit) {
    std::fprintf(stderr, "%s\n", fit.error().message.c_str());
    return 1;
  }
  if (c.pools.empty()) {
    std::fprintf(stderr, "'%s' declares no Pool, so there is nothing to serve.\n",
                 options.config.c_str());
    return 1;
  }
  for (const std::string& doubt : spec::doubts(c)) {
    std::fprintf(stderr, "note: %s\n", doubt.c_str());
  }
  std::printf("%s is valid: %zu models, %zu pools, %zu tenants, %zu objectives, %zu routes\n",
              options.config.c_str(), c.models.size(), c.pools.size(), c.tenants.size(),
              c.objectives.size(), c.routes.size());
  return 0;
}

int replay(const ReplayOptions& options) {
  const auto contents = read_log_files(options.logs);
  if (!contents) {
    std::fprintf(stderr, "signalbox replay: %s\n", contents.error().message.c_str());
    return 1;
  }
  const auto report = replay_logs(pieces_of(options.logs, *contents));
  if (!report) {
    std::fprintf(stderr, "signalbox replay: %s\n", report.error().message.c_str());
    return 1;
  }
  if (!report->identical) {
    std::printf("different: record %llu: %s\n",
                static_cast<unsigned long long>(report->first_difference),
                report->difference.c_str());
    return 1;
  }
  std::printf("identical: %llu events, %llu configurations\n",
              static_cast<unsigned long long>(report->events),
              static_cast<unsigned long long>(report->setups));
  return 0;
}

int docs(const std::string& page) {
  if (page == "settings") std::fputs(spec::settings_markdown().c_str(), stdout);
  else if (page == "schema") std::fputs(spec::json_schema().c_str(), stdout);
  else if (page == "scenario") std::fputs(sim::scenario_markdown().c_str(), stdout);
  else return 2;
  return 0;
}

}  // namespace signalbox::app
