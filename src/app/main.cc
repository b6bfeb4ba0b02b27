// SPDX-License-Identifier: Apache-2.0
// Reads the command line and runs a command.
#include <CLI/CLI.hpp>
#include <csignal>
#include <cstdio>

#include "app/commands.h"
#include "app/engine_command.h"
#include "app/natural.h"
#include "app/sim_command.h"

namespace {

using namespace signalbox::app;  // the commands and nothing else are named here

void add_serve(CLI::App& app, ServeOptions& o) {
  CLI::App* c = app.add_subcommand("serve", "Serve models behind one address");
  c->footer("Example: signalbox serve http://127.0.0.1:8000 http://127.0.0.1:8001\n"
            "         signalbox serve -c /etc/signalbox");
  c->add_option("urls", o.urls, "Engines; everything else is found out");
  c->add_option("-c,--config", o.config, "Configuration file or directory");
  c->add_option("--listen", o.listen, "Address for clients, such as 127.0.0.1:8080");
  c->add_option("--admin", o.admin, "Address of the admin API, such as 127.0.0.1:9090");
  c->add_option("--threads", o.threads, "I/O threads; 0: as configured, else one per core")
      ->check(CLI::Range(0, 256));
  c->add_option("--access-log", o.access_log, "File for a JSON line per request; -: stdout");
  c->add_option("--event-log", o.event_log, "File for the binary event log (see replay)");
  c->add_option("--seed", o.seed, "Seed of the core's draws; 0: drawn")
      ->check(natural);
  c->add_flag("--insecure", o.insecure, "Listen beyond this machine without authentication");
  c->add_option("--log-level", o.log_level, "debug, info, warn or error")
      ->check(CLI::IsMember({"debug", "info", "warn", "error"}));
}

CLI::App* add_admin_command(CLI::App& app, const char* name, const char* what, const char* example,
                            AdminOptions& o) {
  CLI::App* c = app.add_subcommand(name, what);
  c->footer(std::string("Example: ") + example);
  c->add_option("--admin", o.admin, "Address of the admin API")->capture_default_str();
  c->add_option("--token-env", o.token_env, "Variable that holds the admin token")
      ->capture_default_str();
  return c;
}

// Says which word is no command. The parser would only say that one is missing.
bool names_no_command(const CLI::App& app, int argc, char** argv) {
  if (argc < 2 || argv[1][0] == '-') return false;
  std::string commands;
  for (const CLI::App* command : app.get_subcommands(nullptr)) {
    if (command->get_name() == argv[1]) return false;
    commands += " " + command->get_name();
  }
  std::fprintf(stderr, "signalbox: '%s' is no command. The commands are:%s. See --help.\n", argv[1],
               commands.c_str());
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  // A peer that leaves is told by the write's result; TLS writes have no flag to ask for that.
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);  // a log that may not grow any further is told as a failed write
  CLI::App app("Signalbox: an inference control plane");
  app.require_subcommand(1);
  app.set_version_flag("--version", "signalbox 0.1.0");

  ServeOptions serve_options;
  add_serve(app, serve_options);

  ValidateOptions validate_options;
  CLI::App* v = app.add_subcommand("validate", "Check a configuration");
  v->footer("Example: signalbox validate /etc/signalbox");
  v->add_option("config", validate_options.config, "File or directory")->required();
  v->add_flag("--without-secrets", validate_options.without_secrets,
              "Keys, certificates and folders of logs are elsewhere: do not look for them");

  ReplayOptions replay_options;
  CLI::App* r = app.add_subcommand("replay", "Decide an event log again and compare");
  r->footer("Example: signalbox replay events.log\n"
            "         signalbox replay events.log.2 events.log.1 events.log");
  r->add_option("logs", replay_options.logs,
                "Files of an event log of serve --event-log, oldest first")
      ->required();

  AdminOptions admin_options;
  std::string request;
  CLI::App* e = add_admin_command(app, "explain", "Explain where a request went, and why",
                                  "signalbox explain req-1f2e3d4c-0001000000000007",
                                  admin_options);
  e->add_option("request", request, "Value of the answer's x-request-id")->required();
  e->add_option("-o,--output", admin_options.output, "table or json")
      ->check(CLI::IsMember({"table", "json"}));

  std::string what;
  CLI::App* g = add_admin_command(app, "get", "List models, pools, endpoints or decisions",
                                  "signalbox get endpoints", admin_options);
  g->add_option("what", what, "models, pools, endpoints or decisions")
      ->required()
      ->check(CLI::IsMember({"models", "pools", "endpoints", "decisions"}));
  g->add_option("-o,--output", admin_options.output, "table or json")
      ->check(CLI::IsMember({"table", "json"}));

  bool once = false;
  CLI::App* t = add_admin_command(app, "top", "Watch pools, endpoints and decisions live",
                                  "signalbox top", admin_options);
  t->add_flag("--once", once, "Print one screen and exit");

  std::string page;
  CLI::App* d = app.add_subcommand("docs", "Print generated reference pages");
  d->footer("Example: signalbox docs settings > settings.md");
  d->add_option("page", page, "settings, schema or scenario")
      ->required()
      ->check(CLI::IsMember({"settings", "schema", "scenario"}));

  EngineCommand engine;
  engine.add(app);

  SimCommand sim;
  sim.add(app);

  if (names_no_command(app, argc, argv)) return 2;
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;  // --help is no mistake
  }
  if (app.got_subcommand("serve")) return serve(serve_options);
  if (app.got_subcommand("engine")) return engine.run();
  if (app.got_subcommand("sim")) return sim.run();
  if (v->parsed()) return validate(validate_options);
  if (r->parsed()) return replay(replay_options);
  if (e->parsed()) return explain(admin_options, request);
  if (g->parsed()) return get(admin_options, what);
  if (t->parsed()) return top(admin_options, once);
  return docs(page);
}
