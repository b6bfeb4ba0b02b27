// SPDX-License-Identifier: Apache-2.0
// explain, get, top: what a running gateway knows, for people.
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <memory>

#include "app/admin_client.h"
#include "app/admin_page.h"
#include "app/commands.h"
#include "app/table.h"
#include "io/net/loop.h"

namespace signalbox::app {
namespace {

Result<std::string> ask(const AdminOptions& options, const std::string& path) {
  const char* token = std::getenv(options.token_env.c_str());
  return admin_get(options.admin, path, token ? token : "");
}

int fail(const Error& error) {
  std::fprintf(stderr, "signalbox: %s\n", printable(error.message).c_str());
  return 1;
}

View view_of(const std::string& what) {
  if (what == "models") return View::Models;
  if (what == "pools") return View::Pools;
  return what == "endpoints" ? View::Endpoints : View::Decisions;
}

int show(const AdminOptions& options, View view, const std::string& path) {
  const auto body = ask(options, path);
  if (!body) return fail(body.error());
  const bool json = options.output == "json";
  const auto text = json ? page_json(view, *body) : page_table(view, *body);
  if (!text) return fail(text.error());
  std::printf("%s%s", text->c_str(), json ? "\n" : "");
  return 0;
}

Result<std::string> screen(const AdminOptions& options) {
  TRY_ASSIGN(const std::string fleet, ask(options, "/v1/fleet"));
  TRY_ASSIGN(const std::string decisions, ask(options, "/v1/decisions?limit=12"));
  return page_screen(options.admin, fleet, decisions);
}

// As much of a screen as the terminal has room for: a longer line would push the others down.
std::string fitted(const std::string& text) {
  winsize size{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0 || size.ws_row == 0) {
    return text;
  }
  std::string page = clipped(text, size.ws_col, size.ws_row);
  // A line feed on the last line would scroll.
  if (std::count(page.begin(), page.end(), '\n') == size.ws_row) page.pop_back();
  return page;
}

volatile std::sig_atomic_t stop_asked = 0;

}  // namespace

int explain(const AdminOptions& options, const std::string& request) {
  return show(options, View::Explained, "/v1/decisions/" + percent_encoded(request));
}

int get(const AdminOptions& options, const std::string& what) {
  const bool decisions = what == "decisions";
  return show(options, view_of(what), decisions ? "/v1/decisions?limit=64" : "/v1/fleet");
}

int top(const AdminOptions& options, bool once) {
  if (once || ::isatty(STDOUT_FILENO) == 0) {
    const auto text = screen(options);
    if (!text) return fail(text.error());
    std::fputs(text->c_str(), stdout);
    return 0;
  }
  auto loop = net::Loop::create();
  if (!loop) return fail(loop.error());
  std::signal(SIGINT, [](int) { stop_asked = 1; });
  int code = 0;
  std::unique_ptr<net::Timer> timer;
  timer = std::make_unique<net::Timer>([&] {
    const auto text = screen(options);
    if (!text || stop_asked) {
      if (!text) code = fail(text.error());
      return (*loop)->stop();
    }
    // Home, the lines with the rest of each cleared, then everything below cleared.
    std::string painted = "\x1b[H";
    for (const char c : fitted(*text)) {
      if (c == '\n') painted += "\x1b[K";
      painted += c;
    }
    std::fputs((painted + "\x1b[J").c_str(), stdout);
    std::fflush(stdout);
    (*loop)->arm_after(*timer, std::chrono::milliseconds(500));
  });
  std::fputs("\x1b[2J", stdout);
  (*loop)->arm_after(*timer, Duration::zero());
  (*loop)->run();
  return code;
}

}  // namespace signalbox::app
