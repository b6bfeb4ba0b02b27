// SPDX-License-Identifier: Apache-2.0
// explain, get, top: what a running gateway knows, for people.
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "app/admin_client.h"
#include "app/commands.h"
#include "app/table.h"
#include "io/net/loop.h"

namespace signalbox::app {
namespace {

using Json = nlohmann::ordered_json;

Result<Json> ask(const AdminOptions& options, const std::string& path) {
  const char* token = std::getenv(options.token_env.c_str());
  TRY_ASSIGN(const std::string body, admin_get(options.admin, path, token ? token : ""));
  Json json = Json::parse(body, nullptr, false);
  if (json.is_discarded()) return internal("The gateway's answer is no JSON.");
  return json;
}

int fail(const Error& error) {
  std::fprintf(stderr, "signalbox: %s\n", printable(error.message).c_str());
  return 1;
}

std::string text_of(const Json& object, const char* key) {
  if (!object.contains(key)) return "";
  const Json& value = object[key];
  if (value.is_string()) return printable(value.get<std::string>());
  if (value.is_number_float()) return fixed(value.get<double>(), 3);
  return value.dump();
}

double number(const Json& object, const char* key, double otherwise = 0) {
  return object.contains(key) && object[key].is_number() ? object[key].get<double>() : otherwise;
}

// Where it went, or "waits", or "nowhere".
std::string way_of(const Json& decision) {
  const std::string kind = text_of(decision, "kind");
  if (kind == "wait" || kind == "held") return "waits";
  if (kind == "queue_full") return "nowhere: the queue is full";
  return kind == "none" ? "nowhere" : text_of(decision, "endpoint");
}

std::string refusals(const Json& decision) {
  std::string out;
  for (const Json& r : decision["refused"]) {
    out += text_of(r, "count") + " endpoint(s) " + text_of(r, "reason") + ", such as " +
           text_of(r, "example") + "\n";
  }
  if (decision.contains("sentence")) out += text_of(decision, "sentence") + "\n";
  return out;
}

std::string decision_table(const Json& decision) {
  std::string out = "decision " + text_of(decision, "decision") + "  attempt " +
                    text_of(decision, "attempt") + "  model " + text_of(decision, "model") +
                    "  ->  " + way_of(decision) + "\n";
  if (decision["candidates"].empty()) return out + refusals(decision);
  const Json& p = decision["predicted"];
  const Json& a = decision["actual"];
  Table outcome({"", "ttft s", "e2e s", "prompt", "cached", "output"});
  outcome.row({"predicted", text_of(p, "ttft"), text_of(p, "e2e"),
               fixed(number(p, "prompt_tokens"), 0), fixed(number(p, "cached_tokens"), 0),
               fixed(number(p, "output_tokens"), 0)});
  outcome.row({"actual", text_of(a, "ttft"), text_of(a, "e2e"), text_of(a, "prompt_tokens"),
               text_of(a, "cached_tokens"), text_of(a, "output_tokens")});
  out += outcome.text() + "\n";
  Table table({"", "endpoint", "score", "reach", "wait", "prefill", "passes", "kv", "decode",
               "stall", "arrivals", "steps", "shadow", "money", "n", "cached"});
  int index = 0;
  for (const Json& c : decision["candidates"]) {
    const Json& t = c["terms"];
    const bool chosen = number(decision, "chosen_index", -1) == index;
    const bool second = number(decision, "runner_up_index", -1) == index;
    const auto term = [&](const char* key) { return fixed(number(t, key), 4); };
    table.row({chosen ? "*" : second ? "2" : "", text_of(c, "endpoint"), term("total"),
               term("reach"), term("wait"), term("own_prefill"), term("passes"), term("kv_wait"),
               term("own_decode"), term("imposed_stall"), term("imposed_arrivals"),
               term("imposed_step"), term("shadow"), term("money"),
               fixed(number(c["inputs"], "in_flight"), 0),
               fixed(number(c["inputs"], "cached"), 0)});
    ++index;
  }
  return out + table.text() + refusals(decision);
}

std::string endpoints_table(const Json& fleet) {
  Table table({"POOL", "ENDPOINT", "KIND", "STATE", "OURS", "QUEUED", "OTHERS", "LIMIT", "WAIT s",
               "STEP ms", "KV %", "CACHED", "SPEED", "SEEN s"});
  for (const Json& pool : fleet["pools"]) {
    for (const Json& e : pool["endpoints"]) {
      const double kv = number(e, "kv_usage", -1);
      std::string state = text_of(e, "standing");
      if (e.value("unreachable", false)) state += ",unreachable";
      if (!e.value("serves", true)) state += ",other model";
      table.row({text_of(pool, "name"), text_of(e, "address"), text_of(e, "kind"), state,
                 text_of(e, "ours"), text_of(e, "queued"), text_of(e, "others"),
                 text_of(e, "limit"), fixed(number(e, "wait_seconds"), 2),
                 fixed(number(e, "step_seconds") * 1e3, 1), kv < 0 ? "" : fixed(kv * 100, 0),
                 text_of(e, "cached_tokens"), fixed(number(e, "factor", 1), 2),
                 fixed(number(e, "since_observed_seconds", -1), 1)});
    }
  }
  return table.text();
}

std::string pools_table(const Json& fleet) {
  Table table({"POOL", "MODEL", "ENGINE", "ENDPOINTS", "IN FLIGHT", "TTFT ERROR %", "E2E ERROR %",
               "ANSWERS"});
  for (const Json& pool : fleet["pools"]) {
    double in_flight = 0;
    for (const Json& e : pool["endpoints"]) in_flight += number(e, "ours");
    const Json& accuracy = pool["accuracy"];
    const auto error = [&](const char* key) {
      if (!accuracy.contains(key) || number(accuracy[key], "count") == 0) return std::string();
      return fixed(100 * number(accuracy[key], "median_error"), 1);
    };
    table.row({text_of(pool, "name"), text_of(pool, "model"), text_of(pool, "engine"),
               std::to_string(pool["endpoints"].size()), fixed(in_flight, 0), error("ttft"),
               error("e2e"),
               accuracy.contains("e2e") ? text_of(accuracy["e2e"], "count") : ""});
  }
  return table.text();
}

std::string models_table(const Json& fleet) {
  Table table({"MODEL", "CONTEXT"});
  for (const Json& m : fleet["models"]) {
    table.row({text_of(m, "name"), text_of(m, "context_tokens")});
  }
  return table.text();
}

std::string decisions_table(const Json& answer) {
  Table table({"DECISION", "REQUEST", "MODEL", "ENDPOINT", "QUEUED ms", "TTFT s", "PREDICTED",
               "E2E s", "PREDICTED", "RESULT"});
  for (const Json& d : answer["decisions"]) {
    const Json& a = d["actual"];
    const Json& p = d["predicted"];
    table.row({text_of(d, "decision"), text_of(d, "request"), text_of(d, "model"),
               way_of(d), fixed(number(d, "queued_ms"), 0), text_of(a, "ttft"),
               text_of(p, "ttft"), text_of(a, "e2e"), text_of(p, "e2e"), text_of(a, "result")});
  }
  return table.text();
}

Result<std::string> screen(const AdminOptions& options) {
  TRY_ASSIGN(const Json fleet, ask(options, "/v1/fleet"));
  TRY_ASSIGN(const Json decisions, ask(options, "/v1/decisions?limit=12"));
  const Json& t = fleet["totals"];
  std::string out = "signalbox  " + options.admin + "   arrived " + text_of(t, "arrived") +
                    "   in flight " + text_of(t, "in_flight") + "   waiting " +
                    text_of(t, "waiting") + "   retries " + text_of(t, "retries") + "\n\n";
  out += pools_table(fleet) + "\n" + endpoints_table(fleet) + "\n" + decisions_table(decisions);
  return out;
}

volatile std::sig_atomic_t stop_asked = 0;

}  // namespace

int explain(const AdminOptions& options, const std::string& request) {
  const auto answer = ask(options, "/v1/decisions/" + percent_encoded(request));
  if (!answer) return fail(answer.error());
  if (options.output == "json") {
    std::printf("%s\n", answer->dump(2).c_str());
    return 0;
  }
  for (const Json& decision : (*answer)["decisions"]) {
    std::printf("%s\n", decision_table(decision).c_str());
  }
  return 0;
}

int get(const AdminOptions& options, const std::string& what) {
  const auto answer = ask(options, what == "decisions" ? "/v1/decisions?limit=64" : "/v1/fleet");
  if (!answer) return fail(answer.error());
  if (options.output == "json") {
    Json part = *answer;
    if (what != "decisions" && what != "endpoints") part = (*answer)[what];
    if (what == "endpoints") {
      part = Json::array();
      for (const Json& pool : (*answer)["pools"]) {
        for (Json endpoint : pool["endpoints"]) {
          endpoint["pool"] = pool["name"];
          part.push_back(std::move(endpoint));
        }
      }
    }
    std::printf("%s\n", part.dump(2).c_str());
    return 0;
  }
  std::string text;
  if (what == "models") text = models_table(*answer);
  else if (what == "pools") text = pools_table(*answer);
  else if (what == "endpoints") text = endpoints_table(*answer);
  else text = decisions_table(*answer);
  std::fputs(text.c_str(), stdout);
  return 0;
}

int top(const AdminOptions& options, bool once) {
  if (once) {
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
    for (const char c : *text) {
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
