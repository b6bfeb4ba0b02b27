// SPDX-License-Identifier: Apache-2.0
// Last night's traffic, from the events of a live gateway: who came when, how long prompts and
// answers were, which beginnings they shared, which engines there were, how fast they were believed
// to be, and when they could not be reached. Made into a scenario and the trace that it plays.
// Pure.
//
//   RecordedRun run;                      // hand in every setup and every event, in order
//   const Result<Recording> made = run.finish(core, "trace.jsonl");
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "core/flow/flow.h"
#include "sim/scenario_form.h"

namespace signalbox::sim {

// What the clients of the recorded run saw, of completed requests that the scenario plays again.
struct RecordedFigures {
  std::int64_t requests = 0;   // that came
  std::int64_t completed = 0;
  double ttft_mean_s = 0;      // from arrival; of streams
  double ttft_p99_s = 0;
  double e2e_mean_s = 0;
  double e2e_p99_s = 0;
  double cache_hit = 0;        // share of prompt tokens, of answers that tell; 0..1
};

struct Recording {
  ScenarioForm form;
  std::string trace;               // in Mooncake's form
  RecordedFigures figures;
  std::vector<std::string> notes;  // what could not be said in a scenario; full sentences
};

class RecordedRun {
 public:
  void applied(const flow::Setup& setup, Instant now);
  void handled(const model::Event& event, Instant now);

  // `core`: after the last event, for what it believes of the engines' speed. `trace_file`: the
  // name by which the scenario finds its trace. An error says what is missing.
  Result<Recording> finish(const flow::Flow& core, const std::string& trace_file) const;

 private:
  struct Row {
    model::RequestArrived arrived;
    Instant at{};
    std::optional<Instant> first_token;
    std::optional<Instant> completed;
    std::optional<Instant> left;
    model::Usage usage;
    std::int64_t tokens = 0;
  };
  struct Engine {
    bool seen = false;
    std::int64_t kv_tokens = 0;  // 0: not told
    int slots = 0;
    std::optional<Instant> gone;
  };
  struct Outage {
    model::EndpointId endpoint;
    Instant from{};
    Instant until{};
  };

  void take(const model::AttemptEnded& event, Instant now);
  model::ModelId model_of(const Row& row) const;
  model::ModelId busiest() const;
  void add_fleet(const flow::Flow& core, model::ModelId model, Recording& out) const;
  void add_outages(const std::vector<model::EndpointId>& engines, Instant start,
                   Recording& out) const;
  void add_load(const std::vector<const Row*>& rows, Recording& out) const;

  std::shared_ptr<const model::Fleet> fleet_;
  flow::Config config_;
  std::unordered_map<model::RequestId, std::size_t> open_;  // looked up, never walked
  std::vector<Row> rows_;                                   // as they came
  std::map<model::EndpointId, Engine> engines_;
  std::vector<Outage> outages_;
  Instant last_{};
};

}  // namespace signalbox::sim
