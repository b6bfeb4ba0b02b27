// SPDX-License-Identifier: Apache-2.0
// Reads resources from documents: the envelope of each, its spec by kind, then the whole.
#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include "core/spec/reader.h"

namespace signalbox::spec {
namespace {

constexpr std::size_t kResourcesMax = 100'000;

bool is_resource_name(std::string_view text) {
  const auto good = [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  };
  if (text.empty() || text.size() > 253 || !good(text.front()) || !good(text.back())) return false;
  return std::all_of(text.begin(), text.end(), [&](char c) {
    return good(c) || std::string_view("-_./:@+").find(c) != std::string_view::npos;
  });
}

// The envelope of one resource: everything but its spec.
struct Envelope {
  Kind kind = Kind::Gateway;
  std::string name;
  const Node* spec = nullptr;
};

void read_api_version(Reader& reader, const Node& root) {
  const Node* node = reader.child(root, "apiVersion");
  if (node == nullptr) {
    return reader.fail(root, "`apiVersion` is missing; write `apiVersion: " +
                                 std::string(kApiVersion) + "`.");
  }
  std::string text;
  if (reader.read_text(*node, text) && text != kApiVersion) {
    reader.fail(*node, quote(text) + " is unknown to this version; write " + quote(kApiVersion) +
                           ".");
  }
}

bool read_kind(Reader& reader, const Node& root, Kind& kind) {
  const auto names = enum_names<Kind>();
  const Node* node = reader.child(root, "kind");
  if (node == nullptr) {
    reader.fail(root, "`kind` is missing" + suggestion("", names));
    return false;
  }
  std::string text;
  if (!reader.read_text(*node, text)) return false;
  for (const auto& [value, name] : EnumNames<Kind>::values) {
    if (name != text) continue;
    kind = value;
    return true;
  }
  reader.fail(*node, quote(text) + " is no kind" + suggestion(text, names));
  return false;
}

// The name as far as it can be read, for the path of what follows.
bool read_name(Reader& reader, const Node& root, std::string& name) {
  const Node* metadata = reader.child(root, "metadata");
  if (metadata == nullptr) {
    reader.fail(root, "`metadata` is missing; write `metadata: {name: NAME}`.");
    return false;
  }
  const Reader::Scope scope(reader, "metadata");
  if (!reader.expect(*metadata, Node::Form::Mapping, "a block with `name`")) return false;
  reader.refuse_others(*metadata, {"name"}, "field");
  const Node* node = reader.child(*metadata, "name");
  if (node == nullptr) {
    reader.fail_block(*metadata, "`name` is missing.");
    return false;
  }
  std::string text;
  if (!reader.read_text(*node, text)) return false;
  if (!is_resource_name(text)) {
    reader.fail(*node, quote(text) + " is no name: it takes letters, digits and - _ . / : @ +,"
                                     " starts and ends with a letter or digit, has at most 253.");
    return false;
  }
  name = std::move(text);
  return true;
}

class Parser {
 public:
  explicit Parser(Report& report) : report_(report) {}

  void document(const Document& document) {
    if (document.root.form == Node::Form::Null) return;
    Reader reader(report_, document.file);
    const Node& root = document.root;
    if (!reader.expect(root, Node::Form::Mapping, "a resource (a block with `kind`)")) return;
    reader.refuse_others(root, {"apiVersion", "kind", "metadata", "spec"}, "field");
    read_api_version(reader, root);
    Envelope envelope;
    if (!read_kind(reader, root, envelope.kind)) return;
    const bool named = read_name(reader, root, envelope.name);
    envelope.spec = reader.child(root, "spec");
    if (!named) envelope.name = "?";
    resource(reader, envelope, root);
  }

  Config finish() {
    sort(config_.models);
    sort(config_.pools);
    sort(config_.tenants);
    sort(config_.objectives);
    sort(config_.routes);
    return std::move(config_);
  }

 private:
  void resource(Reader& reader, const Envelope& envelope, const Node& root) {
    switch (envelope.kind) {
      case Kind::Gateway: return gateway(reader, envelope, root);
      case Kind::Model: return add(reader, envelope, root, config_.models);
      case Kind::Pool: return add(reader, envelope, root, config_.pools);
      case Kind::Tenant: return add(reader, envelope, root, config_.tenants);
      case Kind::Objective: return add(reader, envelope, root, config_.objectives);
      case Kind::Route: return add(reader, envelope, root, config_.routes);
    }
  }

  void gateway(Reader& reader, const Envelope& envelope, const Node& root) {
    if (has_gateway_) {
      return reader.fail(root, "is a second Gateway, after " + quote(config_.gateway.name) +
                                   "; a configuration has one.");
    }
    has_gateway_ = true;
    fill(reader, envelope, root, config_.gateway);
  }

  template <typename Resource>
  void add(Reader& reader, const Envelope& envelope, const Node& root,
           std::vector<Resource>& list) {
    const std::string path = std::string(name(envelope.kind)) + "/" + envelope.name;
    if (envelope.name != "?" && !names_.emplace(envelope.kind, envelope.name).second) {
      const Place& first = report_.place_of(path);
      return reader.fail(root, "there is a " + std::string(name(envelope.kind)) + " " +
                                   quote(envelope.name) + " already, at " + first.file + ":" +
                                   std::to_string(first.line) + "; rename or remove one.");
    }
    if (list.size() >= kResourcesMax) return reader.fail(root, "is one resource too many.");
    fill(reader, envelope, root, list.emplace_back());
  }

  template <typename Resource>
  void fill(Reader& reader, const Envelope& envelope, const Node& root, Resource& resource) {
    resource.name = envelope.name;
    const Reader::Scope scope(reader, std::string(name(envelope.kind)) + "/" + envelope.name);
    reader.record(root);
    const Reader::Scope inner(reader, ".spec");
    Node nothing;
    nothing.form = Node::Form::Mapping;
    nothing.line = root.line;
    nothing.column = root.column;
    read(reader, envelope.spec != nullptr ? *envelope.spec : nothing, resource, {});
  }

  template <typename Resource>
  static void sort(std::vector<Resource>& list) {
    std::sort(list.begin(), list.end(),
              [](const Resource& a, const Resource& b) { return a.name < b.name; });
  }

  Report& report_;
  Config config_;
  std::set<std::pair<Kind, std::string>> names_;
  bool has_gateway_ = false;
};

}  // namespace

std::string_view name(Kind kind) { return enum_name(kind); }

Config parse(const std::vector<Document>& documents, Report& report) {
  Parser parser(report);
  for (const Document& document : documents) parser.document(document);
  Config config = parser.finish();
  check(config, report);
  return config;
}

Result<Config> parse(const std::vector<Document>& documents) {
  Report report;
  Config config = parse(documents, report);
  if (!report.clean()) return report.error();
  return config;
}

}  // namespace signalbox::spec
