// SPDX-License-Identifier: Apache-2.0
// Checks a page's shape, then draws it.
#include "app/admin_page.h"

#include <nlohmann/json.hpp>

#include "app/table.h"

namespace signalbox::app {
namespace {

using Json = nlohmann::ordered_json;

// Pages of ours have six levels; what is drawn or printed is walked by recursion.
constexpr int kDepthMax = 64;

Error foreign(const std::string& what) {
  return Error{Code::BadUpstream, Source::Us, false,
               "What answers there is not the admin API of this version of Signalbox: " + what +
                   "."};
}

const Json& member(const Json& object, const char* key) {
  static const Json kNothing;
  if (!object.is_object()) return kNothing;
  const auto found = object.find(key);
  return found == object.end() ? kNothing : *found;
}

// The list of that name; an empty one where there is none.
const Json& list(const Json& object, const char* key) {
  static const Json kEmpty = Json::array();
  const Json& value = member(object, key);
  return value.is_array() ? value : kEmpty;
}

// For terminals: what is not ASCII may steer one.
std::string text(const Json& value) { return value.dump(2, ' ', true); }

std::string text_of(const Json& object, const char* key) {
  const Json& value = member(object, key);
  if (value.is_null() && (!object.is_object() || !object.contains(key))) return "";
  if (value.is_string()) return printable(value.get<std::string>());
  if (value.is_number_float()) return fixed(value.get<double>(), 3);
  return value.dump();
}

double number(const Json& object, const char* key, double otherwise = 0) {
  const Json& value = member(object, key);
  return value.is_number() ? value.get<double>() : otherwise;
}

bool flag(const Json& object, const char* key, bool otherwise) {
  const Json& value = member(object, key);
  return value.is_boolean() ? value.get<bool>() : otherwise;
}

Result<void> check_list(const Json& page, const char* key) {
  const Json& value = member(page, key);
  if (!value.is_array()) return foreign("`" + std::string(key) + "` is missing or no list");
  for (const Json& item : value) {
    if (!item.is_object()) return foreign("`" + std::string(key) + "` holds what is no object");
  }
  return {};
}

// Beforehand, for the library's own way of watching takes quadratic time.
bool too_deep(std::string_view body) {
  int depth = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < body.size(); ++i) {
    const char c = body[i];
    if (c == '"') in_string = !in_string;
    if (in_string) {
      if (c == '\\') ++i;
      continue;
    }
    if (c == '[' || c == '{') ++depth;
    if (c == ']' || c == '}') --depth;
    if (depth > kDepthMax) return true;
  }
  return false;
}

Result<Json> parse(std::string_view body) {
  if (too_deep(body)) return foreign("its JSON is nested too deeply");
  Json page = Json::parse(body, nullptr, false);
  if (page.is_discarded()) return foreign("it sends no JSON");
  if (!page.is_object()) return foreign("its JSON is no object");
  return page;
}

Result<Json> parse_fleet(std::string_view body) {
  TRY_ASSIGN(Json page, parse(body));
  TRY_CHECK(check_list(page, "models"));
  TRY_CHECK(check_list(page, "pools"));
  for (const Json& pool : page["pools"]) TRY_CHECK(check_list(pool, "endpoints"));
  return page;
}

Result<Json> parse_decisions(std::string_view body) {
  TRY_ASSIGN(Json page, parse(body));
  TRY_CHECK(check_list(page, "decisions"));
  return page;
}

Result<Json> parse_for(View view, std::string_view body) {
  const bool decisions = view == View::Decisions || view == View::Explained;
  return decisions ? parse_decisions(body) : parse_fleet(body);
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
  for (const Json& r : list(decision, "refused")) {
    const std::string example = text_of(r, "example");
    out += text_of(r, "count") + " endpoint(s) " + text_of(r, "reason") +
           (example.empty() ? "" : ", such as " + example) + "\n";
  }
  const std::string sentence = text_of(decision, "sentence");
  return sentence.empty() ? out : out + sentence + "\n";
}

std::string outcome_table(const Json& decision) {
  const Json& p = member(decision, "predicted");
  const Json& a = member(decision, "actual");
  Table outcome({"", "ttft s", "e2e s", "prompt", "cached", "output", "stretch"});
  outcome.row({"predicted", text_of(p, "ttft"), text_of(p, "e2e"),
               fixed(number(p, "prompt_tokens"), 0), fixed(number(p, "cached_tokens"), 0),
               fixed(number(p, "output_tokens"), 0), text_of(p, "stretch")});
  outcome.row({"actual", text_of(a, "ttft"), text_of(a, "e2e"), text_of(a, "prompt_tokens"),
               text_of(a, "cached_tokens"), text_of(a, "output_tokens"), ""});
  return outcome.text();
}

std::string explanation(const Json& decision) {
  std::string out = "decision " + text_of(decision, "decision") + "  attempt " +
                    text_of(decision, "attempt") + "  model " + text_of(decision, "model") +
                    "  ->  " + way_of(decision) + "\n";
  const Json& candidates = list(decision, "candidates");
  if (candidates.empty()) return out + refusals(decision);
  out += outcome_table(decision) + "\n";
  Table table({"", "endpoint", "score", "reach", "wait", "prefill", "passes", "kv", "decode",
               "stall", "arrivals", "steps", "shadow", "money", "n", "cached"});
  int index = 0;
  for (const Json& c : candidates) {
    const Json& t = member(c, "terms");
    const Json& inputs = member(c, "inputs");
    const bool chosen = number(decision, "chosen_index", -1) == index;
    const bool second = number(decision, "runner_up_index", -1) == index;
    const auto term = [&](const char* key) { return fixed(number(t, key), 4); };
    table.row({chosen ? "*" : second ? "2" : "", text_of(c, "endpoint"), term("total"),
               term("reach"), term("wait"), term("own_prefill"), term("passes"), term("kv_wait"),
               term("own_decode"), term("imposed_stall"), term("imposed_arrivals"),
               term("imposed_step"), term("shadow"), term("money"),
               fixed(number(inputs, "in_flight"), 0), fixed(number(inputs, "cached"), 0)});
    ++index;
  }
  return out + table.text() + refusals(decision);
}

std::string explanations(const Json& page) {
  std::string out;
  for (const Json& decision : list(page, "decisions")) out += explanation(decision) + "\n";
  return out;
}

std::string endpoints_table(const Json& fleet) {
  Table table({"POOL", "ENDPOINT", "KIND", "STATE", "OURS", "QUEUED", "HELD", "OTHERS", "LIMIT",
               "WAIT s", "STEP ms", "KV %", "CACHED", "SPEED", "SEEN s"});
  for (const Json& pool : list(fleet, "pools")) {
    for (const Json& e : list(pool, "endpoints")) {
      const double kv = number(e, "kv_usage", -1);
      std::string state = text_of(e, "standing");
      if (flag(e, "unreachable", false)) state += ",unreachable";
      if (!flag(e, "serves", true)) state += ",other model";
      table.row({text_of(pool, "name"), text_of(e, "address"), text_of(e, "kind"), state,
                 text_of(e, "ours"), text_of(e, "queued"), text_of(e, "held"),
                 text_of(e, "others"), text_of(e, "limit"), fixed(number(e, "wait_seconds"), 2),
                 fixed(number(e, "step_seconds") * 1e3, 1), kv < 0 ? "" : fixed(kv * 100, 0),
                 text_of(e, "cached_tokens"), fixed(number(e, "factor", 1), 2),
                 fixed(number(e, "since_observed_seconds", -1), 1)});
    }
  }
  return table.text();
}

std::string pools_table(const Json& fleet) {
  Table table({"POOL", "MODEL", "ENGINE", "ENDPOINTS", "DISPATCH", "PASS s", "IN FLIGHT",
               "TTFT ERROR %", "E2E ERROR %", "ANSWERS"});
  for (const Json& pool : list(fleet, "pools")) {
    const Json& endpoints = list(pool, "endpoints");
    double in_flight = 0;
    for (const Json& e : endpoints) in_flight += number(e, "ours");
    const Json& accuracy = member(pool, "accuracy");
    const auto error = [&](const char* key) {
      const Json& quantity = member(accuracy, key);
      if (number(quantity, "count") == 0) return std::string();
      return fixed(100 * number(quantity, "median_error"), 1);
    };
    const Json& dispatch = member(pool, "dispatch");
    const double pass = number(dispatch, "pass_seconds");
    table.row({text_of(pool, "name"), text_of(pool, "model"), text_of(pool, "engine"),
               std::to_string(endpoints.size()), text_of(dispatch, "mode"),
               pass > 0 ? fixed(pass, 2) : "", fixed(in_flight, 0), error("ttft"), error("e2e"),
               text_of(member(accuracy, "e2e"), "count")});
  }
  return table.text();
}

std::string models_table(const Json& fleet) {
  Table table({"MODEL", "CONTEXT"});
  for (const Json& m : list(fleet, "models")) {
    table.row({text_of(m, "name"), text_of(m, "context_tokens")});
  }
  return table.text();
}

std::string decisions_table(const Json& page) {
  Table table({"DECISION", "REQUEST", "MODEL", "ENDPOINT", "QUEUED ms", "TTFT s", "PREDICTED",
               "E2E s", "PREDICTED", "RESULT"});
  for (const Json& d : list(page, "decisions")) {
    const Json& a = member(d, "actual");
    const Json& p = member(d, "predicted");
    table.row({text_of(d, "decision"), text_of(d, "request"), text_of(d, "model"),
               way_of(d), fixed(number(d, "queued_ms"), 0), text_of(a, "ttft"),
               text_of(p, "ttft"), text_of(a, "e2e"), text_of(p, "e2e"), text_of(a, "result")});
  }
  return table.text();
}

Json endpoints_of(const Json& fleet) {
  Json out = Json::array();
  for (const Json& pool : list(fleet, "pools")) {
    for (Json endpoint : list(pool, "endpoints")) {
      endpoint["pool"] = member(pool, "name");
      out.push_back(std::move(endpoint));
    }
  }
  return out;
}

}  // namespace

Result<std::string> page_table(View view, std::string_view body) {
  TRY_ASSIGN(const Json page, parse_for(view, body));
  switch (view) {
    case View::Models: return models_table(page);
    case View::Pools: return pools_table(page);
    case View::Endpoints: return endpoints_table(page);
    case View::Decisions: return decisions_table(page);
    case View::Explained: return explanations(page);
  }
  return internal("There is no such view.");
}

Result<std::string> page_json(View view, std::string_view body) {
  TRY_ASSIGN(const Json page, parse_for(view, body));
  switch (view) {
    case View::Models: return text(member(page, "models"));
    case View::Pools: return text(member(page, "pools"));
    case View::Endpoints: return text(endpoints_of(page));
    case View::Decisions:
    case View::Explained: return text(page);
  }
  return internal("There is no such view.");
}

Result<std::string> page_screen(const std::string& address, std::string_view fleet,
                                std::string_view decisions) {
  TRY_ASSIGN(const Json f, parse_fleet(fleet));
  TRY_ASSIGN(const Json d, parse_decisions(decisions));
  const Json& t = member(f, "totals");
  std::string out = "signalbox  " + address + "   arrived " + text_of(t, "arrived") +
                    "   in flight " + text_of(t, "in_flight") + "   waiting " +
                    text_of(t, "waiting") + "   retries " + text_of(t, "retries") + "\n\n";
  return out + pools_table(f) + "\n" + endpoints_table(f) + "\n" + decisions_table(d);
}

}  // namespace signalbox::app
