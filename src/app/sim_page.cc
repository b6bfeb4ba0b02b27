// SPDX-License-Identifier: Apache-2.0
// Writes runs as one page: figures, expectations, what happened over time, how latencies are
// distributed. Everything is in it: style, pictures and a small script that shows values.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "app/chart.h"
#include "app/sim_result.h"
#include "core/spec/text_form.h"

namespace signalbox::app {
namespace {

using sim::Bucket;
using sim::Moment;
using sim::Report;

constexpr double kNothing = std::numeric_limits<double>::quiet_NaN();

constexpr std::string_view kHead = R"(<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Signalbox: simulated runs</title>
<style>
:root { color-scheme: light dark; --ground: #fff; --ink: #1b1f24; --soft: #5c6570; --rule: #d9dee4;
  --band: #d9503022; --c0: #1f6fd6; --c1: #c65a11; --c2: #14804a; --c3: #8a3fb8; --bad: #b42318;
  --good: #14804a; --card: #f6f8fa; }
@media (prefers-color-scheme: dark) { :root { --ground: #14181d; --ink: #e4e9ef; --soft: #9aa5b1;
  --rule: #323a43; --band: #ff7a5933; --c0: #6aa9ff; --c1: #f5a35c; --c2: #5fd39a; --c3: #cf9bf2;
  --bad: #ff8a7a; --good: #5fd39a; --card: #1c2228; } }
body { background: var(--ground); color: var(--ink); margin: 2rem auto; max-width: 1320px;
  padding: 0 1rem; font: 15px/1.5 system-ui, sans-serif; }
h1 { font-size: 1.4rem; margin-bottom: .2rem; } h2 { font-size: 1.1rem; margin-top: 2rem; }
p.shows { margin: .2rem 0; } p.soft, td.soft, .soft { color: var(--soft); }
.grid2 { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(420px, 100%), 1fr));
  gap: 1rem; }
figure { margin: 0; background: var(--card); border-radius: 6px; padding: .6rem;
  position: relative; }
svg { width: 100%; height: auto; display: block; }
svg text { fill: var(--ink); font: 11px system-ui, sans-serif; }
svg text.title { font-weight: 600; font-size: 13px; }
svg text.tick, svg text.axis { fill: var(--soft); }
svg line.grid { stroke: var(--rule); stroke-width: .7; } svg rect.band { fill: var(--band); }
svg line.c0, svg line.c1, svg line.c2, svg line.c3 { stroke-width: 2; }
svg path.line { fill: none; stroke-width: 1.5; stroke-linejoin: round; }
svg line.pointer { stroke: var(--soft); stroke-dasharray: 2 3; }
.c0 { stroke: var(--c0); } .c1 { stroke: var(--c1); } .c2 { stroke: var(--c2); }
.c3 { stroke: var(--c3); } .dashed { stroke-dasharray: 5 4; }
table { border-collapse: collapse; margin: .6rem 0; } th { text-align: left; font-weight: 600; }
td, th { padding: .15rem .9rem .15rem 0; border-bottom: 1px solid var(--rule); }
td.figure, th.figure { text-align: right; font-variant-numeric: tabular-nums; }
.holds { color: var(--good); } .fails { color: var(--bad); font-weight: 600; }
.wide { overflow-x: auto; } pre { overflow-x: auto; background: var(--card); padding: .8rem; }
.value { position: absolute; pointer-events: none; background: var(--ground); color: var(--ink);
  border: 1px solid var(--rule); border-radius: 4px; padding: .2rem .5rem; font-size: 12px;
  display: none; white-space: pre; top: 2.2rem; }
</style></head><body>
)";

constexpr std::string_view kScript = R"(<script>
for (const svg of document.querySelectorAll('svg[data-chart]')) {
  const chart = JSON.parse(svg.dataset.chart), pointer = svg.querySelector('.pointer');
  const box = document.createElement('div');
  box.className = 'value';
  svg.parentNode.append(box);
  const short = v => v === null ? '-' : Number(v.toPrecision(4)).toString();
  svg.addEventListener('pointermove', event => {
    const frame = svg.getBoundingClientRect();
    const at = (event.clientX - frame.left) * svg.viewBox.baseVal.width / frame.width;
    const part = (at - chart.from) / (chart.to - chart.from);
    if (part < 0 || part > 1) return;
    const x = chart.log ? chart.low * Math.pow(chart.high / chart.low, part)
                        : chart.low + part * (chart.high - chart.low);
    pointer.setAttribute('x1', at);
    pointer.setAttribute('x2', at);
    const lines = [short(x)];
    for (const line of chart.lines) {
      let best = null;
      for (const point of line.points) {
        if (!best || Math.abs(point[0] - x) < Math.abs(best[0] - x)) best = point;
      }
      if (best) lines.push(line.name + ': ' + short(best[1]));
    }
    box.textContent = lines.join('\n');
    box.style.display = 'block';
    box.style.left = part < .6 ? (event.clientX - frame.left + 24) + 'px' : 'auto';
    box.style.right = part < .6 ? 'auto' : (frame.right - event.clientX + 24) + 'px';
  });
  svg.addEventListener('pointerleave', () => {
    box.style.display = 'none';
    pointer.setAttribute('x1', -9);
    pointer.setAttribute('x2', -9);
  });
}
</script></body></html>
)";

// A figure of each bucket against the bucket's middle.
template <typename Of>
std::vector<std::pair<double, double>> over_time(const Report& report, Of of) {
  std::vector<std::pair<double, double>> points;
  const double width = to_seconds(report.series.width());
  const auto& buckets = report.series.buckets();
  for (std::size_t i = 0; i < buckets.size(); ++i) {
    points.emplace_back((static_cast<double>(i) + 0.5) * width, of(buckets[i]));
  }
  return points;
}

auto mean_of(double Moment::* figure, double factor = 1) {
  return [figure, factor](const Bucket& b) {
    return b.moments > 0 ? factor * b.mean(figure) : kNothing;
  };
}

// Rates over buckets of a tenth of a second are noise: several are taken together.
std::vector<std::pair<double, double>> rate(const Report& report, std::int64_t Bucket::* counted) {
  constexpr std::size_t kPointsWanted = 120;
  const auto& buckets = report.series.buckets();
  const std::size_t together = std::max<std::size_t>(1, buckets.size() / kPointsWanted);
  const double width = to_seconds(report.series.width()) * static_cast<double>(together);
  std::vector<std::pair<double, double>> points;
  // The last few may be less than a whole point.
  for (std::size_t i = 0; i + together <= buckets.size(); i += together) {
    std::int64_t sum = 0;
    for (std::size_t j = i; j < i + together; ++j) sum += buckets[j].*counted;
    const double at = (static_cast<double>(i / together) + 0.5) * width;
    points.emplace_back(at, static_cast<double>(sum) / width);
  }
  return points;
}

std::vector<std::pair<double, double>> cumulated(const Histogram& values) {
  constexpr int kPoints = 200;
  std::vector<std::pair<double, double>> points;
  if (values.count() == 0) return points;
  for (int i = 0; i <= kPoints; ++i) {
    const double share = static_cast<double>(i) / kPoints;
    points.emplace_back(values.quantile(share), 100 * share);
  }
  points.emplace_back(values.quantile(0.999), 99.9);
  std::sort(points.begin(), points.end());
  return points;
}

// What hits several engines at one time is one band.
std::vector<Band> bands_of(const SimRun& run) {
  std::vector<Band> bands;
  for (const sim::Fault& fault : run.faults) {
    const Duration at = fault.at.time_since_epoch();
    Band band{std::string(spec::enum_name(fault.kind)), to_seconds(at),
              to_seconds(at + fault.lasts)};
    const bool known = std::any_of(bands.begin(), bands.end(), [&](const Band& b) {
      return b.name == band.name && b.from == band.from && b.to == band.to;
    });
    if (!known) bands.push_back(std::move(band));
  }
  return bands;
}

// The charts of one run; the one without faults is dashed where it helps.
class Charts {
 public:
  explicit Charts(const SimRun& run)
      : report_(run.report), baseline_(run.baseline ? &*run.baseline : nullptr),
        bands_(bands_of(run)) {}

  std::string time() {
    std::string out;
    out += timed("Requests that wait", "requests",
                 {line("at the gateway", 0, over_time(report_, mean_of(&Moment::queued))),
                  line("in engines", 1, over_time(report_, mean_of(&Moment::waiting)))});
    out += timed("Batch: sequences that run, all engines", "sequences",
                 {line("running", 0, over_time(report_, mean_of(&Moment::running)))});
    out += timed("KV cache held by sequences", "share, %",
                 {line("held", 0, over_time(report_, mean_of(&Moment::kv, 100)))}, 100);
    out += timed("Time to first token, by end of answer", "time, s", ttft_lines());
    out += timed("Goodput", "requests per second", goodput_lines());
    std::vector<Line> up{line("up", 2, over_time(report_, mean_of(&Moment::instances)))};
    up[0].steps = true;
    out += timed("Engines that are up", "engines", std::move(up));
    return out;
  }

  std::string distributions() {
    return distribution("Time to first token", &Report::ttft) +
           distribution("Time per further token", &Report::tpot) +
           distribution("Time to the end", &Report::e2e);
  }

 private:
  static Line line(std::string name, int colour, std::vector<std::pair<double, double>> points) {
    Line out;
    out.name = std::move(name);
    out.colour = colour;
    out.points = std::move(points);
    return out;
  }
  static Line dashed(std::string name, int colour, std::vector<std::pair<double, double>> points) {
    Line out = line(std::move(name), colour, std::move(points));
    out.dashed = true;
    return out;
  }

  std::vector<Line> ttft_lines() const {
    const auto mean = [](const Bucket& b) {
      return b.answered > 0 ? b.ttft_sum / static_cast<double>(b.answered) : kNothing;
    };
    const auto most = [](const Bucket& b) { return b.answered > 0 ? b.ttft_max : kNothing; };
    return {line("greatest", 1, over_time(report_, most)), line("mean", 0,
                                                                over_time(report_, mean))};
  }
  std::vector<Line> goodput_lines() const {
    std::vector<Line> lines{line("arrivals", 3, rate(report_, &Bucket::arrived)),
                            line("good", 2, rate(report_, &Bucket::good))};
    if (baseline_ != nullptr) {
      lines.push_back(dashed("good, no faults", 2, rate(*baseline_, &Bucket::good)));
    }
    return lines;
  }

  std::string timed(std::string title, std::string unit, std::vector<Line> lines,
                    double y_max = 0) const {
    Chart chart;
    chart.title = std::move(title);
    chart.x_name = "time, s";
    chart.y_name = std::move(unit);
    chart.y_max = y_max;
    chart.lines = std::move(lines);
    chart.bands = bands_;
    return svg(chart);
  }
  std::string distribution(std::string title, Histogram Report::* values) const {
    Chart chart;
    chart.title = std::move(title);
    chart.x_name = "time, s";
    chart.y_name = "not above, %";
    chart.x_scale = Scale::Log;
    chart.y_max = 100;
    chart.lines.push_back(line("this run", 0, cumulated(report_.*values)));
    if (baseline_ != nullptr) {
      chart.lines.push_back(dashed("no faults", 0, cumulated(baseline_->*values)));
    }
    return svg(chart);
  }

  const Report& report_;
  const Report* baseline_;
  std::vector<Band> bands_;
};

std::string row(const sim::Metric& metric, const std::vector<std::string>& cells) {
  std::string out = "<tr><td>" + escaped(metric.name) + "</td>";
  for (const std::string& cell : cells) {
    out += "<td class=\"figure\">" + escaped(cell) + "</td>";
  }
  return out + "<td class=\"soft\">" + escaped(metric.meaning) + "</td></tr>\n";
}

std::string figures(const SimResult& result) {
  const bool many = result.runs.size() > 1;
  const bool compares = !many && result.runs[0].baseline;
  std::string out = "<details><summary>All figures</summary><div class=\"wide\"><table><tr>"
                    "<th>Metric</th>";
  const auto head = [&](const char* text) {
    out += std::string("<th class=\"figure\">") + text + "</th>";
  };
  if (many) for (const char* text : {"mean", "sd", "least", "most"}) head(text);
  else head("value");
  if (compares) head("no faults");
  out += "<th>Meaning</th></tr>\n";
  for (const sim::Metric& metric : sim::metrics()) {
    const Spread s = spread_of(result, metric);
    if (s.count == 0) continue;
    const auto print = [&](double value) { return sim::print(value, metric.unit); };
    if (many) {
      out += row(metric, {print(s.mean), print(s.deviation), print(s.low), print(s.high)});
      continue;
    }
    std::vector<std::string> cells{print(s.mean)};
    if (compares) {
      const auto without = metric.of(*result.runs[0].baseline);
      cells.push_back(without ? print(*without) : "-");
    }
    out += row(metric, cells);
  }
  return out + "</table></div></details>\n";
}

std::string key_figures(const SimRun& run) {
  constexpr const char* kNames[] = {"requests", "completed", "goodput", "ttft.p50", "ttft.p99",
                                    "tpot.p50", "e2e.p50",   "e2e.p99", "cache_hit", "cost"};
  std::string heads, values;
  for (const char* name : kNames) {
    const sim::Metric& metric = **sim::find_metric(name);
    const auto value = metric.of(run.report);
    heads += "<th class=\"figure\">" + escaped(name) + "</th>";
    values += "<td class=\"figure\">" + (value ? sim::print(*value, metric.unit) : "-") + "</td>";
  }
  return "<div class=\"wide\"><table><tr>" + heads + "</tr><tr>" + values +
         "</tr></table></div>\n";
}

std::string expectations(const SimResult& result) {
  std::string out;
  for (std::size_t i = 0; i < result.form.expect.size(); ++i) {
    std::size_t held = 0;
    for (const SimRun& run : result.runs) held += run.verdicts[i].holds ? 1 : 0;
    const bool all = held == result.runs.size();
    const std::string detail = result.runs.size() > 1
                                   ? fmt::format("{} of {} seeds", held, result.runs.size())
                                   : result.runs[0].verdicts[i].sentence.substr(
                                         result.form.expect[i].text.size() + 2);
    out += fmt::format(R"(<tr><td class="{}">{}</td><td>{}</td><td class="soft">{}</td></tr>)",
                       all ? "holds" : "fails", all ? "holds" : "fails",
                       escaped(result.form.expect[i].text), escaped(detail)) + "\n";
  }
  return out.empty() ? out : "<h2>Expected</h2><table>\n" + out + "</table>\n";
}

std::string section(const SimResult& result) {
  const SimRun& run = result.runs[0];
  std::string out = "<h1>" + escaped(result.file) + "</h1>\n";
  if (!result.form.shows.empty()) {
    out += "<p class=\"shows\">" + escaped(result.form.shows) + "</p>\n";
  }
  out += fmt::format(R"(<p class="soft">seed {}, decided by {}, {:.6g} s of virtual time, digest )"
                     "{:016x}</p>\n",
                     run.seed, escaped(result.form.policy), to_seconds(run.report.elapsed),
                     run.report.digest);
  if (result.runs.size() > 1) {
    out += fmt::format("<p class=\"soft\">{} seeds in all; the pictures are of the first.</p>\n",
                       result.runs.size());
  }
  out += key_figures(run) + expectations(result);
  std::string violations;
  for (const std::string& failure : failures(result)) violations += failure + "\n";
  if (!violations.empty()) {
    out += "<h2 class=\"fails\">Does not hold</h2><pre>" + escaped(violations) + "</pre>\n";
  }
  Charts charts(run);
  out += "<h2>Over time</h2><div class=\"grid2\">\n" + charts.time() + "</div>\n";
  out += "<h2>Distributions</h2><div class=\"grid2\">\n" + charts.distributions() + "</div>\n";
  return out + figures(result);
}

}  // namespace

std::string sim_page(const std::vector<SimResult>& results) {
  std::string out(kHead);
  for (const SimResult& result : results) out += section(result);
  return out + std::string(kScript);
}

}  // namespace signalbox::app
