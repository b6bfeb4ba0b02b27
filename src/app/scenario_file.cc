// SPDX-License-Identifier: Apache-2.0
// Reads scenario files and traces.
#include "app/scenario_file.h"

#include <zlib.h>

#include <charconv>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>

#include "core/spec/nearest.h"
#include "io/config/load.h"
#include "io/config/yaml.h"

namespace signalbox::app {
namespace {

using spec::Node;

constexpr std::size_t kScenarioBytesMax = 8u << 20;
constexpr std::size_t kTraceBytesMax = 1u << 30;
constexpr std::string_view kFromCommandLine = "--set";

// What is not from the file has no place in it.
void forget_places(Node& node) {
  node.line = node.column = node.key_line = node.key_column = 0;
  for (Node& item : node.items) forget_places(item);
}

Result<Node> parse_value(const std::string& text) {
  spec::Report report;
  auto documents = config::read_yaml("VALUE", text, {}, report);
  if (!report.clean()) return report.error();
  if (documents.size() != 1) return invalid("the value is no YAML.");
  forget_places(documents[0].root);
  return std::move(documents[0].root);
}

// A step of a path: a key, or an index.
struct Step {
  std::string key;
  std::optional<std::size_t> index;
};

Result<std::vector<Step>> steps_of(std::string_view path) {
  std::vector<Step> steps;
  std::size_t i = 0;
  while (i < path.size()) {
    if (path[i] == '[') {
      const std::size_t end = path.find(']', i);
      std::size_t index = 0;
      const char* last = path.data() + (end == path.npos ? path.size() : end);
      const auto parsed = std::from_chars(path.data() + i + 1, last, index);
      if (end == path.npos || parsed.ec != std::errc() || parsed.ptr != last) {
        return invalid("has a bracket without a number in it.");
      }
      steps.push_back({"", index});
      i = end + 1;
      continue;
    }
    if (path[i] == '.') ++i;
    const std::size_t end = std::min(path.find_first_of(".[", i), path.size());
    if (end == i) return invalid("has an empty step.");
    steps.push_back({std::string(path.substr(i, end - i)), {}});
    i = end;
  }
  if (steps.empty()) return invalid("names no setting.");
  return steps;
}

// The child that a step leads to, made if it is not there yet.
Result<Node*> follow(Node& node, const Step& step) {
  if (node.form == Node::Form::Null) {
    node.form = step.index ? Node::Form::Sequence : Node::Form::Mapping;
  }
  if (step.index) {
    if (node.form != Node::Form::Sequence) return invalid("counts in what is no list.");
    if (*step.index > node.items.size()) {
      return invalid("counts beyond a list of " + std::to_string(node.items.size()) + ".");
    }
    if (*step.index == node.items.size()) node.items.emplace_back();
    return &node.items[*step.index];
  }
  if (node.form != Node::Form::Mapping) return invalid("asks for a key of what is no block.");
  for (Node& item : node.items) {
    if (item.key == step.key) return &item;
  }
  node.items.emplace_back().key = step.key;
  return &node.items.back();
}

Result<std::string> inflated(std::string_view packed, std::size_t bytes_max) {
  std::string out;
  z_stream stream{};
  if (inflateInit2(&stream, 15 + 16) != Z_OK) return invalid("cannot be unpacked.");
  // The library takes a pointer to non-const and changes nothing.
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data()));
  stream.avail_in = static_cast<uInt>(packed.size());
  std::vector<char> buffer(1 << 18);
  int state = Z_OK;
  while (state == Z_OK) {
    stream.next_out = reinterpret_cast<Bytef*>(buffer.data());
    stream.avail_out = static_cast<uInt>(buffer.size());
    state = inflate(&stream, Z_NO_FLUSH);
    out.append(buffer.data(), buffer.size() - stream.avail_out);
    if (out.size() > bytes_max) break;
    // A file may be several packed ones, one behind the other.
    if (state == Z_STREAM_END && stream.avail_in > 0) state = inflateReset(&stream);
  }
  inflateEnd(&stream);
  if (out.size() > bytes_max) {
    return invalid("has more than " + std::to_string(bytes_max) + " bytes, unpacked.");
  }
  if (state != Z_STREAM_END) return invalid("is no whole gzip file.");
  return out;
}

// Problems of what the command line has set have no line, and say so.
Error told(const spec::Report& report, bool overridden) {
  spec::Report shown;
  for (const spec::Problem& problem : report.problems()) {
    spec::Place place = problem.place;
    if (overridden && place.line == 0) place.file = kFromCommandLine;
    shown.add(place, problem.path, problem.message);
  }
  return shown.error();
}

}  // namespace

Result<std::string> read_unpacked(const std::string& path, std::size_t bytes_max) {
  std::error_code fault;
  const auto status = std::filesystem::status(path, fault);
  if (!std::filesystem::exists(status)) return invalid("is not there.");
  if (!std::filesystem::is_regular_file(status)) return invalid("is no regular file.");
  const auto size = std::filesystem::file_size(path, fault);
  if (!fault && size > bytes_max) {
    return invalid("is larger than " + std::to_string(bytes_max) + " bytes.");
  }
  std::ifstream in(path, std::ios::binary);
  std::ostringstream bytes;
  bytes << in.rdbuf();
  if (!in.is_open() || (size > 0 && bytes.tellp() <= 0)) return invalid("cannot be read.");
  std::string text = std::move(bytes).str();
  return text.starts_with("\x1f\x8b") ? inflated(text, bytes_max) : Result<std::string>(text);
}

Result<bool> set_value(Node& root, std::string_view assignment) {
  const std::size_t equals = assignment.find('=');
  if (equals == assignment.npos) {
    return invalid(spec::quote(assignment) + " is no PATH=VALUE, such as `load.requests=500`.");
  }
  const std::string_view path = assignment.substr(0, equals);
  const auto wrong = [&](const Error& error) {
    return invalid(spec::quote(path) + " " + error.message);
  };
  const auto steps = steps_of(path);
  if (!steps) return wrong(steps.error());
  auto value = parse_value(std::string(assignment.substr(equals + 1)));
  if (!value) return wrong(value.error());
  Node* at = &root;
  for (const Step& step : *steps) {
    const auto next = follow(*at, step);
    if (!next) return wrong(next.error());
    at = *next;
  }
  value->key = at->key;
  *at = std::move(*value);
  return true;
}

Result<ScenarioFile> ScenarioFile::open(const std::string& path,
                                        const std::vector<std::string>& sets) {
  auto text = read_unpacked(path, kScenarioBytesMax);
  if (!text) return invalid(path + ": " + text.error().message);
  return parse(path, *text, sets);
}

Result<ScenarioFile> ScenarioFile::parse(const std::string& path, const std::string& text,
                                         const std::vector<std::string>& sets) {
  ScenarioFile file;
  file.path_ = path;
  auto documents = config::read_yaml(path, text, {}, file.places_);
  if (!file.places_.clean()) return file.places_.error();
  if (documents.size() != 1) {
    return invalid(path + ": has " + std::to_string(documents.size()) +
                   " documents; a scenario is one.");
  }
  for (const std::string& set : sets) {
    if (const auto done = set_value(documents[0].root, set); !done) {
      return invalid(std::string(kFromCommandLine) + ": " + done.error().message);
    }
  }
  file.form_ = sim::read_scenario(documents[0], file.places_);
  file.overridden_ = !sets.empty();
  if (!file.places_.clean()) return told(file.places_, file.overridden_);
  return file;
}

Result<std::string> ScenarioFile::text_of(const std::string& name) {
  const std::string folder = std::filesystem::path(path_).parent_path().string();
  const std::string full = config::resolve_path(folder.empty() ? "." : folder, name);
  if (const auto known = texts_.find(full); known != texts_.end()) return known->second;
  TRY_ASSIGN(std::string text, read_unpacked(full, kTraceBytesMax));
  return texts_.emplace(full, std::move(text)).first->second;
}

Result<sim::Scenario> ScenarioFile::scenario(std::uint64_t seed) {
  spec::Report report = places_;
  const auto read = [this](const std::string& name) { return text_of(name); };
  auto scenario = sim::make_scenario(form_, seed, read, report);
  if (!scenario) return told(report, overridden_);
  return std::move(*scenario);
}

}  // namespace signalbox::app
