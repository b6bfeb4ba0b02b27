// SPDX-License-Identifier: Apache-2.0
// Lays out and writes one chart.
#include "app/chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace signalbox::app {
namespace {

constexpr double kWidth = 620, kHeight = 250;
constexpr double kLeft = 62, kRight = 14, kTop = 34, kBottom = 44;
constexpr int kTicksX = 7, kTicksY = 5;

// One axis: from values to places in the picture.
struct Axis {
  double low = 0, high = 1;
  double from = 0, to = 1;
  Scale scale = Scale::Linear;

  double place(double value) const {
    const auto at = [&](double v) { return scale == Scale::Log ? std::log10(v) : v; };
    const double bounded = std::clamp(value, low, high);
    return from + (to - from) * (at(bounded) - at(low)) / (at(high) - at(low));
  }
};

struct Extent {
  double low = std::numeric_limits<double>::infinity();
  double high = -low;

  void add(double value) {
    low = std::min(low, value);
    high = std::max(high, value);
  }
  bool empty() const { return low > high; }
};

Axis x_axis(const Chart& chart) {
  Extent extent;
  for (const Line& line : chart.lines) {
    for (const auto& [x, y] : line.points) {
      if (!std::isnan(y) && (chart.x_scale == Scale::Linear || x > 0)) extent.add(x);
    }
  }
  if (extent.empty()) extent = {chart.x_scale == Scale::Log ? 0.1 : 0.0, 1};
  if (chart.x_scale == Scale::Linear) extent.low = std::min(0.0, extent.low);
  if (extent.low >= extent.high) extent.high = extent.low > 0 ? extent.low * 2 : 1;
  return {extent.low, extent.high, kLeft, kWidth - kRight, chart.x_scale};
}

Axis y_axis(const Chart& chart) {
  Extent extent;
  extent.add(0);
  for (const Line& line : chart.lines) {
    for (const auto& [x, y] : line.points) {
      if (!std::isnan(y)) extent.add(y);
    }
  }
  double high = chart.y_max > 0 ? chart.y_max : extent.high * 1.05;
  if (high <= 0) high = 1;
  return {0, high, kHeight - kBottom, kTop, Scale::Linear};
}

// As many decimals as the distance of ticks needs.
std::string tick_text(double value) {
  if (value == 0) return "0";
  const double size = std::abs(value);
  if (size >= 1e6 || size < 1e-4) return fmt::format("{:.0e}", value);
  return fmt::format("{:g}", std::round(value * 1e6) / 1e6);
}

std::string grid(const Chart& chart, const Axis& x, const Axis& y) {
  std::string out;
  for (const double t : ticks(x.low, x.high, kTicksX, x.scale)) {
    const double at = x.place(t);
    out += fmt::format(R"(<line class="grid" x1="{0:.1f}" x2="{0:.1f}" y1="{1}" y2="{2}"/>)"
                       R"(<text class="tick" x="{0:.1f}" y="{3}" text-anchor="middle">)"
                       "{4}</text>\n",
                       at, kTop, kHeight - kBottom, kHeight - kBottom + 15, tick_text(t));
  }
  for (const double t : ticks(y.low, y.high, kTicksY, y.scale)) {
    const double at = y.place(t);
    out += fmt::format(R"(<line class="grid" x1="{1}" x2="{2}" y1="{0:.1f}" y2="{0:.1f}"/>)"
                       R"(<text class="tick" x="{3}" y="{4:.1f}" text-anchor="end">{5}</text>)"
                       "\n",
                       at, kLeft, kWidth - kRight, kLeft - 6, at + 3.5, tick_text(t));
  }
  const double middle_x = (kLeft + kWidth - kRight) / 2;
  const double middle_y = (kTop + kHeight - kBottom) / 2;
  out += fmt::format(R"(<text class="axis" x="{:.0f}" y="{}" text-anchor="middle">{}</text>)"
                     R"_(<text class="axis" transform="translate(14 {:.0f}) rotate(-90)" )_"
                     R"(text-anchor="middle">{}</text>)"
                     "\n",
                     middle_x, kHeight - 8, escaped(chart.x_name), middle_y,
                     escaped(chart.y_name));
  return out;
}

std::string bands(const Chart& chart, const Axis& x) {
  std::string out;
  for (const Band& band : chart.bands) {
    if (band.from >= x.high || band.to < x.low) continue;
    const double from = x.place(band.from);
    const double width = std::max(1.5, x.place(band.to) - from);
    out += fmt::format(R"(<rect class="band" x="{0:.1f}" y="{1}" width="{2:.1f}" height="{3}">)"
                       R"(<title>{4}</title></rect>)"
                       R"(<text class="tick" x="{5:.1f}" y="{6}">{4}</text>)"
                       "\n",
                       from, kTop, width, kHeight - kBottom - kTop, escaped(band.name), from + 3,
                       kTop + 11);
  }
  return out;
}

// Each stretch without gaps begins with a move.
std::string path(const Line& line, const Axis& x, const Axis& y) {
  std::string out;
  bool begun = false;
  for (const auto& [at, value] : line.points) {
    if (std::isnan(value) || (x.scale == Scale::Log && at <= 0)) {
      begun = false;
      continue;
    }
    if (begun && line.steps) out += fmt::format("H{:.1f}", x.place(at));
    out += fmt::format("{}{:.1f} {:.1f}", begun ? 'L' : 'M', x.place(at), y.place(value));
    begun = true;
  }
  return out;
}

std::string legend(const Chart& chart) {
  std::string out;
  double at = kWidth - kRight;
  for (auto line = chart.lines.rbegin(); line != chart.lines.rend(); ++line) {
    at -= 6.2 * static_cast<double>(line->name.size()) + 34;
    out += fmt::format(R"(<line class="c{0}{1}" x1="{2:.0f}" x2="{3:.0f}" y1="22" y2="22"/>)"
                       R"(<text class="legend" x="{4:.0f}" y="26">{5}</text>)"
                       "\n",
                       line->colour, line->dashed ? " dashed" : "", at, at + 18, at + 23,
                       escaped(line->name));
  }
  return out;
}

std::string number(double value) {
  return std::isnan(value) ? "null" : fmt::format("{:.5g}", value);
}

// What the script needs, as JSON: the axis in pictures and values, and the points.
std::string data(const Chart& chart, const Axis& x) {
  std::string out = fmt::format("{{\"from\":{},\"to\":{},\"low\":{},\"high\":{},\"log\":{},"
                                "\"lines\":[",
                                x.from, x.to, number(x.low), number(x.high),
                                x.scale == Scale::Log);
  for (const Line& line : chart.lines) {
    std::string points;
    for (const auto& [at, value] : line.points) {
      points += (points.empty() ? "[" : ",[") + number(at) + "," + number(value) + "]";
    }
    std::string name;
    for (const char c : line.name) {
      if (c == '"' || c == '\\') name += '\\';
      name += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
    }
    out += fmt::format("{}{{\"name\":\"{}\",\"points\":[{}]}}",
                       &line == chart.lines.data() ? "" : ",", name, points);
  }
  return out + "]}";
}

}  // namespace

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '"': out += "&quot;"; break;
      case '\'': out += "&#39;"; break;
      default: out += c;
    }
  }
  return out;
}

std::vector<double> ticks(double low, double high, int count, Scale scale) {
  std::vector<double> out;
  if (scale == Scale::Log) {
    const bool many = std::log10(high / low) > 4;
    for (double power = std::pow(10, std::floor(std::log10(low))); power <= high; power *= 10) {
      for (const double step : {1.0, 2.0, 5.0}) {
        const double tick = power * step;
        if ((step == 1 || !many) && tick >= low * 0.999 && tick <= high * 1.001) {
          out.push_back(tick);
        }
      }
    }
    // Less than a decade: there the axis is nearly straight.
    if (out.size() >= 3) return out;
    out.clear();
  }
  const double raw = (high - low) / count;
  const double power = std::pow(10, std::floor(std::log10(raw)));
  const double part = raw / power;
  const double step = power * (part < 1.5 ? 1 : part < 3.5 ? 2 : part < 7.5 ? 5 : 10);
  for (double tick = std::ceil(low / step) * step; tick <= high * (1 + 1e-9); tick += step) {
    out.push_back(std::abs(tick) < step * 1e-9 ? 0 : tick);
  }
  return out;
}

std::string svg(const Chart& chart) {
  const Axis x = x_axis(chart);
  const Axis y = y_axis(chart);
  std::string out = fmt::format(R"(<figure><svg viewBox="0 0 {} {}" role="img" data-chart="{}">)"
                                "<title>{}</title>\n",
                                kWidth, kHeight, escaped(data(chart, x)), escaped(chart.title));
  out += fmt::format(R"(<text class="title" x="4" y="14">{}</text>)", escaped(chart.title)) + "\n";
  out += bands(chart, x) + grid(chart, x, y) + legend(chart);
  for (const Line& line : chart.lines) {
    out += fmt::format(R"(<path class="line c{}{}" d="{}"/>)", line.colour,
                       line.dashed ? " dashed" : "", path(line, x, y)) + "\n";
  }
  return out + fmt::format(R"(<line class="pointer" y1="{}" y2="{}" x1="-9" x2="-9"/>)", kTop,
                           kHeight - kBottom) + "</svg></figure>\n";
}

}  // namespace signalbox::app
