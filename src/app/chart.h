// SPDX-License-Identifier: Apache-2.0
// Line charts as SVG inside a page: title, axes with units and ticks, legend, bands. Colours come
// from the page's style sheet (classes `c0` to `c3`), so that it can be light or dark. The data
// stand in the chart for the page's script, which shows values under the pointer.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace signalbox::app {

// `text` for HTML and its attributes.
std::string escaped(std::string_view text);

struct Line {
  std::string name;
  int colour = 0;                                 // 0..3
  bool dashed = false;
  bool steps = false;                             // holds its value until the next point
  std::vector<std::pair<double, double>> points;  // in rising order of x; NaN: a gap
};

enum class Scale { Linear, Log };

// Grey ground behind the lines from `from` to `to`.
struct Band {
  std::string name;
  double from = 0;
  double to = 0;
};

struct Chart {
  std::string title;
  std::string x_name;       // with its unit: `time, s`
  std::string y_name;
  Scale x_scale = Scale::Linear;
  double y_max = 0;         // 0: as the data have it
  std::vector<Line> lines;
  std::vector<Band> bands;
};

std::string svg(const Chart& chart);

// Round numbers that cover [low, high]: about `count` of them for a linear axis, 1, 2 and 5 times
// powers of ten for a logarithmic one (low > 0).
std::vector<double> ticks(double low, double high, int count, Scale scale);

}  // namespace signalbox::app
