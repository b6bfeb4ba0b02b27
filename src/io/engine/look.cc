// SPDX-License-Identifier: Apache-2.0
// The paths of each engine in order of what they tell, and how their answers are judged.
#include "io/engine/look.h"

#include <array>
#include <chrono>
#include <optional>

#include "io/engine/json_state.h"
#include "io/engine/page_state.h"

namespace signalbox::engine {
namespace {

using model::EngineKind;
using namespace std::chrono_literals;

constexpr std::array<std::string_view, 1> kMetrics = {"/metrics"};
constexpr std::array<std::string_view, 3> kSglangLoad = {"/metrics", "/v1/loads?include=core",
                                                         "/get_load"};
constexpr std::array<std::string_view, 2> kLlamaCppLoad = {"/metrics", "/slots"};
// /prometheus/metrics is there only when the server returns performance metrics.
constexpr std::array<std::string_view, 2> kTrtLlmLoad = {"/prometheus/metrics", "/metrics"};

// Paths that are not served at all: unknown, method unknown, or switched off (llama.cpp says 501).
bool absent(int status) { return status == 404 || status == 405 || status == 501; }

char first_visible(std::string_view body) {
  for (char c : body) {
    if (c != ' ' && c != '\n' && c != '\r' && c != '\t') return c;
  }
  return '\0';
}

std::optional<model::EngineState> read_json(EngineKind kind, std::string_view path,
                                            std::string_view body, int rank) {
  if (kind == EngineKind::Sglang) return read_loads(body, rank);
  if (kind == EngineKind::LlamaCpp && path == "/slots") return read_slots(body);
  return std::nullopt;
}

}  // namespace

const Manners& manners(EngineKind kind) {
  static const Manners kVllm{"/health", kMetrics, 0ms, 0ms};
  static const Manners kSglang{"/health", kSglangLoad, 0ms, 0ms};
  // Faster looks keep llama.cpp from noticing vanished clients.
  static const Manners kLlamaCpp{"/health", kLlamaCppLoad, 2s, 0ms};
  // An idle server waits 2 s for a record before it says that there is none.
  static const Manners kTrtLlm{"/health", kTrtLlmLoad, 0ms, 4s};
  static const Manners kOpenAi{"/v1/models", {}, 2s, 0ms};
  switch (kind) {
    case EngineKind::Vllm: return kVllm;
    case EngineKind::Sglang: return kSglang;
    case EngineKind::LlamaCpp: return kLlamaCpp;
    case EngineKind::TrtLlm: return kTrtLlm;
    case EngineKind::Auto: case EngineKind::OpenAi: break;
  }
  return kOpenAi;
}

Looker::Looker(EngineKind kind) : kind_(kind) {}

bool Looker::asks_load() const { return !instead_ && source_ < manners(kind_).load.size(); }

std::string_view Looker::path() const {
  const Manners& how = manners(kind_);
  return asks_load() ? how.load[source_] : how.liveness;
}

bool Looker::unanswered() { return instead_ = asks_load(); }

Look Looker::feed(int status, std::string_view body, std::span<const int> ranks,
                  std::vector<model::EngineState>& states) {
  states.clear();
  if (!asks_load()) {
    instead_ = false;
    // Any answer but a 5xx comes from a server that is up, even 401 or 404.
    return status >= 200 && status < 500 ? Look::Alive : Look::Down;
  }
  if (absent(status)) {
    ++source_;
    return Look::Elsewhere;
  }
  if (status == 401 || status == 403) return Look::Alive;
  const bool good = status >= 200 && status < 300;
  const Look got = good ? read(body, ranks, states) : Look::Down;
  if (got != Look::Down) return got;
  // Who does not tell its load may well serve.
  instead_ = true;
  return Look::Elsewhere;
}

Look Looker::read(std::string_view body, std::span<const int> ranks,
                  std::vector<model::EngineState>& states) {
  std::string_view from = path();
  char first = first_visible(body);
  bool json = first == '[' || first == '{';
  if (kind_ == EngineKind::TrtLlm && json) {
    auto iterations = read_iterations(body, -1);
    if (!iterations) return Look::Down;
    if (iterations->empty && !records_seen_) return Look::Alive;
    records_seen_ = true;
    for (int rank : ranks) {
      auto told = read_iterations(body, rank);
      if (told->empty) told->state.running = told->state.waiting = 0;
      states.push_back(told->state);
    }
    whole_ = iterations->state;
    return Look::Told;
  }
  if (json) {
    auto whole = read_json(kind_, from, body, -1);
    if (!whole) return Look::Down;
    whole_ = *whole;
    for (int rank : ranks) {
      states.push_back(rank < 0 ? whole_ : *read_json(kind_, from, body, rank));
    }
    return Look::Told;
  }
  PageState whole = read_page(kind_, body, -1);
  if (whole.samples == 0) {
    // A page of something else, such as a process exporter: look for the next source.
    ++source_;
    return Look::Elsewhere;
  }
  start_time_ = whole.start_time;
  whole_ = whole.state;
  for (int rank : ranks) {
    states.push_back(rank < 0 ? whole_ : read_page(kind_, body, rank).state);
  }
  return Look::Told;
}

}  // namespace signalbox::engine
