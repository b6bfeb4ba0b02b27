// SPDX-License-Identifier: Apache-2.0
// Declares the figures.
#include "sim/metric.h"

#include <array>
#include <charconv>
#include <cmath>
#include <utility>

#include "core/spec/nearest.h"

namespace signalbox::sim {
namespace {

using Value = std::optional<double>;

Value ratio(double part, double whole) {
  return whole > 0 ? Value(part / whole) : std::nullopt;
}
template <typename A, typename B>
Value ratio(A part, B whole) {
  return ratio(static_cast<double>(part), static_cast<double>(whole));
}

struct Statistic {
  const char* name;
  const char* meaning;
  double quantile;  // negative: the mean; above 1: the greatest
};
constexpr std::array kStatistics = {
    Statistic{"mean", "mean", -1},  Statistic{"p50", "median", 0.5},
    Statistic{"p90", "90 %", 0.9},  Statistic{"p95", "95 %", 0.95},
    Statistic{"p99", "99 %", 0.99}, Statistic{"max", "greatest", 2}};

class Table {
 public:
  void distribution(const std::string& name, const std::string& meaning,
                    Histogram Report::* values) {
    for (const Statistic& s : kStatistics) {
      Metric& m = add(name + "." + s.name, Unit::Seconds,
                      meaning + (s.quantile >= 0 && s.quantile <= 1
                                     ? std::string(": not above this for ") + s.meaning + "."
                                     : std::string(": ") + s.meaning + "."));
      if (s.quantile == 0.5) m.meaning = meaning + ": median.";
      m.of = [values, q = s.quantile](const Report& r) -> Value {
        const Histogram& h = r.*values;
        if (h.count() == 0) return std::nullopt;
        return q < 0 ? h.mean() : q > 1 ? h.max() : h.quantile(q);
      };
    }
  }
  void whole(const std::string& name, Unit unit, const std::string& meaning,
             std::function<Value(const Report&)> of) {
    add(name, unit, meaning).of = std::move(of);
  }
  // Known of every stretch; of the whole run, unless told otherwise, as the stretch of all of it.
  Metric& over_time(const std::string& name, Unit unit, const std::string& meaning,
                    std::function<Value(const Bucket&, double)> within) {
    Metric& m = add(name, unit, meaning);
    m.within = within;
    m.of = [within = std::move(within)](const Report& r) {
      constexpr Duration kAll = Duration::max();
      return within(r.series.between({}, kAll), r.series.seconds_between({}, kAll));
    };
    return m;
  }
  // Adds that to a figure of the whole run.
  void also(const std::string& name, std::function<Value(const Bucket&, double)> within) {
    for (Metric& m : list) {
      if (m.name == name) m.within = std::move(within);
    }
  }

  std::vector<Metric> list;

 private:
  Metric& add(const std::string& name, Unit unit, const std::string& meaning) {
    Metric& m = list.emplace_back();
    m.name = name;
    m.unit = unit;
    m.meaning = meaning;
    return m;
  }
};

void add_latencies(Table& t) {
  t.distribution("ttft", "Time to first token at the gateway, of completed requests",
                 &Report::ttft);
  t.distribution("tpot", "Time per further token, of streamed answers", &Report::tpot);
  t.distribution("e2e", "Time to the end, of completed requests", &Report::e2e);
  t.distribution("task.ttft", "Time from a user's first request to the answer's first token",
                 &Report::task_ttft);
  t.distribution("task.e2e", "Time from a user's first request to the answer", &Report::task_e2e);
  t.distribution("transfer", "Time from the end of a prefill to its KV at the engine that decodes",
                 &Report::transfer);
  t.also("ttft.mean", [](const Bucket& b, double) { return ratio(b.ttft_sum, b.answered); });
  t.also("ttft.max", [](const Bucket& b, double) -> Value {
    return b.answered > 0 ? Value(b.ttft_max) : std::nullopt;
  });
}

void add_yields(Table& t) {
  t.over_time("goodput", Unit::PerSecond, "Requests completed within both objectives.",
              [](const Bucket& b, double s) { return ratio(b.good, s); })
      .of = [](const Report& r) { return Value(r.goodput()); };
  t.over_time("throughput", Unit::PerSecond, "Requests completed.",
              [](const Bucket& b, double s) { return ratio(b.answered, s); })
      .of = [](const Report& r) {
    return ratio(r.count(model::Outcome::Completed), to_seconds(r.elapsed));
  };
  t.whole("completed", Unit::Share, "Requests that were completed.", [](const Report& r) {
    return ratio(r.count(model::Outcome::Completed), r.arrived);
  });
  t.whole("task.done", Unit::Share, "Tasks whose user got an answer.",
          [](const Report& r) { return ratio(r.tasks_done, r.tasks); });
  t.whole("task.good", Unit::Share, "Tasks answered within both objectives.",
          [](const Report& r) { return ratio(r.tasks_good, r.tasks); });
  t.whole("cache_hit", Unit::Share, "Prompt tokens that an engine found in its cache.",
          [](const Report& r) { return ratio(r.engines.cached_tokens, r.engines.prompt_tokens); });
  t.whole("host_hit", Unit::Share, "Prompt tokens that came back from host memory.",
          [](const Report& r) { return ratio(r.engines.host_tokens, r.engines.prompt_tokens); });
  t.whole("acceptance", Unit::Share, "Tokens of draft models that were accepted.",
          [](const Report& r) {
            return ratio(r.engines.accepted_tokens, r.engines.drafted_tokens);
          });
  t.whole("useful_tokens", Unit::Share,
          "Tokens that engines generated and a completed answer holds.",
          [](const Report& r) { return ratio(r.answer_tokens, r.engines.generated_tokens); });
  t.whole("lost_tokens", Unit::Count, "Tokens that clients had when their answer broke off.",
          [](const Report& r) { return Value(static_cast<double>(r.lost_tokens)); });
}

void add_counts(Table& t) {
  const auto count = [&](const char* name, const char* meaning, auto of) {
    t.whole(name, Unit::Count, meaning,
            [of](const Report& r) { return Value(static_cast<double>(of(r))); });
  };
  count("requests", "Requests that arrived.", [](const Report& r) { return r.arrived; });
  count("tasks", "What users wanted; each is one request or more.",
        [](const Report& r) { return r.tasks; });
  count("retries", "Attempts that the gateway made anew.",
        [](const Report& r) { return r.retries; });
  count("client_retries", "Requests that a client's library sent again.",
        [](const Report& r) { return r.client_retries; });
  count("client_timeouts", "Requests that a client's library gave up waiting for.",
        [](const Report& r) { return r.client_timeouts; });
  count("pressed", "Requests that a user sent beside another one.",
        [](const Report& r) { return r.pressed; });
  count("preemptions", "Sequences that an engine threw out for want of memory.",
        [](const Report& r) { return r.engines.preemptions; });
  count("lora_loads", "Adapters that an engine loaded.",
        [](const Report& r) { return r.engines.lora_loads; });
  count("handovers", "Prompts that one engine computed and another went on with.",
        [](const Report& r) { return r.transfer.count(); });
  for (const model::Outcome outcome : model::kOutcomes) {
    const std::string label(model::label(outcome));
    count(("outcome." + label).c_str(), ("Requests that ended as `" + label + "`.").c_str(),
          [outcome](const Report& r) { return r.count(outcome); });
  }
}

void add_states(Table& t) {
  const auto mean = [](double Moment::* figure) {
    return [figure](const Bucket& b, double) -> Value {
      return b.moments > 0 ? Value(b.mean(figure)) : std::nullopt;
    };
  };
  t.over_time("arrivals", Unit::PerSecond, "Requests that arrive.",
              [](const Bucket& b, double s) { return ratio(b.arrived, s); });
  t.over_time("queue.mean", Unit::Count, "Requests that wait at the gateway: mean.",
              mean(&Moment::queued));
  t.over_time("queue.max", Unit::Count, "Requests that wait at the gateway: greatest seen.",
              [](const Bucket& b, double) { return Value(b.queued_max); });
  t.over_time("batch.mean", Unit::Count, "Sequences that run, over all engines: mean.",
              mean(&Moment::running));
  t.over_time("engine_queue.mean", Unit::Count, "Sequences that wait in engines, over all: mean.",
              mean(&Moment::waiting));
  t.over_time("kv.mean", Unit::Share, "KV cache that sequences hold: mean.", mean(&Moment::kv));
  t.over_time("kv.max", Unit::Share, "KV cache that sequences hold: greatest seen.",
              [](const Bucket& b, double) { return Value(b.kv_max); });
  t.over_time("starting.mean", Unit::Count, "Engines that come up and are not there yet: mean.",
              mean(&Moment::starting));
  t.over_time("instances.mean", Unit::Count, "Engines that are up: mean.",
              mean(&Moment::instances));
}

void add_costs(Table& t) {
  t.whole("busy", Unit::Share,
          "Time in steps over the time of engines in the fleet; who left may still work.",
          [](const Report& r) { return ratio(r.engines.busy_seconds, r.engine_seconds); });
  t.whole("cost", Unit::Usd, "What the fleet cost, idle or not.",
          [](const Report& r) { return Value(r.usd); });
  t.whole("cost_per_1000", Unit::Usd, "The same for every thousand requests completed.",
          [](const Report& r) { return ratio(1000 * r.usd, r.count(model::Outcome::Completed)); });
  t.whole("elapsed", Unit::Seconds, "Virtual time of the run.",
          [](const Report& r) { return Value(to_seconds(r.elapsed)); });
  t.whole("ttft_error", Unit::Share,
          "Median error of the core's predicted time to first token, in the worst pool.",
          [](const Report& r) { return Value(r.ttft_error); });
}

std::vector<Metric> declare() {
  Table table;
  add_latencies(table);
  add_yields(table);
  add_counts(table);
  add_states(table);
  add_costs(table);
  return std::move(table.list);
}

// So many significant digits, without an exponent for what people read.
std::string digits(double value) {
  const double size = std::abs(value);
  const int decimals = size >= 100 || size == std::floor(size) ? 0
                       : size >= 10                            ? 1
                       : size >= 1                             ? 2
                                                               : 3;
  char text[64];
  const auto end = std::to_chars(text, text + sizeof text, value, std::chars_format::fixed,
                                 decimals);
  return end.ec == std::errc() ? std::string(text, end.ptr) : "a great many";
}

}  // namespace

const std::vector<Metric>& metrics() {
  static const std::vector<Metric> all = declare();
  return all;
}

Result<const Metric*> find_metric(std::string_view name) {
  std::vector<std::string_view> names;
  for (const Metric& metric : metrics()) {
    if (metric.name == name) return &metric;
    names.push_back(metric.name);
  }
  return invalid(spec::quote(name) + " is no metric" + spec::suggestion(name, names));
}

std::string print(double value, Unit unit) {
  switch (unit) {
    case Unit::Seconds:
      return value != 0 && std::abs(value) < 1 ? digits(value * 1e3) + " ms" : digits(value) + " s";
    case Unit::Share: return digits(value * 100) + " %";
    case Unit::PerSecond: return digits(value) + "/s";
    case Unit::Count: return digits(value);
    case Unit::Usd: return digits(value) + " USD";
  }
  return "?";
}

std::string_view examples(Unit unit) {
  switch (unit) {
    case Unit::Seconds: return "`2s`, `250ms`";
    case Unit::Share: return "`95%`, `0.95`";
    case Unit::PerSecond: return "`4.5`";
    case Unit::Count: return "`0`, `100`";
    case Unit::Usd: return "`1.2`";
  }
  return "?";
}

}  // namespace signalbox::sim
