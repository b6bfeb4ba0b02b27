// SPDX-License-Identifier: Apache-2.0
// Escapes and numbers of the format; counts below 2^53 are written without exponent.
#include "io/telemetry/exposition.h"

#include <charconv>
#include <cmath>

#include "io/telemetry/utf8.h"

namespace signalbox::telemetry {
namespace {

std::string_view type_name(MetricType type) {
  switch (type) {
    case MetricType::Counter: return "counter";
    case MetricType::Gauge: return "gauge";
    case MetricType::Histogram: return "histogram";
  }
  return "untyped";
}

}  // namespace

void TextWriter::family(std::string_view name, MetricType type, std::string_view help) {
  name_ = name;
  out_.append("# HELP ").append(name).append(" ");
  for (char c : help) {
    if (c == '\\') out_ += "\\\\";
    else if (c == '\n') out_ += "\\n";
    else out_ += c;
  }
  out_.append("\n# TYPE ").append(name).append(" ").append(type_name(type)).append("\n");
}

void TextWriter::sample(std::string_view suffix, std::span<const Label> labels, double value) {
  out_.append(name_).append(suffix);
  char separator = '{';
  for (const auto& [key, text] : labels) {
    out_ += separator;
    out_.append(key).append("=\"");
    escaped(text);
    out_ += '"';
    separator = ',';
  }
  if (!labels.empty()) out_ += '}';
  out_ += ' ';
  number(value);
  out_ += '\n';
}

void TextWriter::escaped(std::string_view value) {
  while (!value.empty()) {
    std::size_t size = utf8_length(value);
    char c = value[0];
    if (size == 0) out_ += '?';
    else if (c == '\\') out_ += "\\\\";
    else if (c == '"') out_ += "\\\"";
    else if (c == '\n') out_ += "\\n";
    else out_.append(value.substr(0, size));
    value.remove_prefix(size == 0 ? 1 : size);
  }
}

void TextWriter::number(double value) {
  if (std::isnan(value)) {
    out_ += "NaN";
    return;
  }
  if (std::isinf(value)) {
    out_ += value > 0 ? "+Inf" : "-Inf";
    return;
  }
  char text[32];
  bool whole = std::fabs(value) < 9e15 && value == std::floor(value);
  auto end = whole ? std::to_chars(text, text + sizeof text, static_cast<std::int64_t>(value)).ptr
                   : std::to_chars(text, text + sizeof text, value).ptr;
  out_.append(text, end);
}

}  // namespace signalbox::telemetry
