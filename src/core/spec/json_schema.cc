// SPDX-License-Identifier: Apache-2.0
// Writes the JSON Schema of one document from the declarations.
#include <cmath>
#include <string>

#include "core/spec/config.h"
#include "core/spec/schema.h"
#include "core/spec/text_form.h"

namespace signalbox::spec {
namespace {

std::string json_text(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + "\"";
}

// Objects and arrays with two spaces of indent; values are JSON texts.
class JsonObject {
 public:
  explicit JsonObject(int indent) : indent_(indent) {}
  JsonObject& add(std::string_view key, const std::string& value) {
    body_ += (body_.empty() ? "" : ",") + line(indent_ + 2) + json_text(key) + ": " + value;
    return *this;
  }
  std::string text() const { return body_.empty() ? "{}" : "{" + body_ + line(indent_) + "}"; }

 private:
  static std::string line(int indent) {
    return "\n" + std::string(static_cast<std::size_t>(indent), ' ');
  }
  int indent_;
  std::string body_;
};

std::string json_list(const std::vector<std::string>& values) {
  std::string out = "[";
  for (const std::string& value : values) out += (out.size() > 1 ? ", " : "") + value;
  return out + "]";
}

void add_block(const std::vector<Field>& fields, int indent, JsonObject& out);

constexpr std::string_view kEnvOrFile =
    R"({"type": "object", "additionalProperties": false, "minProperties": 1, "maxProperties": 1,)"
    R"( "properties": {"env": {"type": "string", "pattern": "^[A-Za-z_][A-Za-z0-9_]*$"},)"
    R"( "file": {"type": "string", "minLength": 1}}})";

void add_bounds(const Field& field, std::string_view low, std::string_view high,
                JsonObject& out) {
  const Range& range = field.rule.range;
  if (std::isfinite(range.low)) out.add(low, print_number(range.low));
  if (std::isfinite(range.high)) out.add(high, print_number(range.high));
}

// Adds the keywords of a type; `field` is null inside a list.
void add_type(const TypeInfo& type, const Field* field, int indent, JsonObject& out) {
  using Form = TypeInfo::Form;
  switch (type.form) {
    case Form::Boolean: out.add("type", "\"boolean\""); return;
    case Form::Integer:
    case Form::Number:
      out.add("type", type.form == Form::Integer ? "\"integer\"" : "\"number\"");
      if (field != nullptr) add_bounds(*field, "minimum", "maximum", out);
      return;
    case Form::Text: {
      const std::string pattern = json_text(type.pattern);
      if (type.zero_number) {
        out.add("anyOf", "[{\"type\": \"string\", \"pattern\": " + pattern + "}, {\"const\": 0}]");
        return;
      }
      out.add("type", "\"string\"");
      if (!type.pattern.empty()) out.add("pattern", pattern);
      return;
    }
    case Form::Enum: {
      std::vector<std::string> values;
      for (const std::string& value : type.values) values.push_back(json_text(value));
      out.add("enum", json_list(values));
      return;
    }
    case Form::List: {
      out.add("type", "\"array\"");
      if (field != nullptr) add_bounds(*field, "minItems", "maxItems", out);
      JsonObject item(indent + 2);
      add_type(type.item[0], nullptr, indent + 2, item);
      out.add("items", item.text());
      return;
    }
    case Form::Block: add_block(type.fields, indent, out); return;
    case Form::Key:
      out.add("anyOf", "[{\"type\": \"string\", \"pattern\": \"^sha256:[0-9a-f]{64}$\"}, "
                       "{\"$ref\": \"#/$defs/source\"}]");
      return;
    case Form::Secret: out.add("$ref", "\"#/$defs/source\""); return;
  }
}

std::string default_json(const Field& field) {
  using Form = TypeInfo::Form;
  const bool bare = field.type.form == Form::Boolean || field.type.form == Form::Integer ||
                    field.type.form == Form::Number || field.type.form == Form::List;
  return bare || field.fallback == "\"\"" ? field.fallback : json_text(field.fallback);
}

std::string field_schema(const Field& field, int indent) {
  JsonObject out(indent);
  out.add("description", json_text(field.meaning));
  add_type(field.type, &field, indent, out);
  if (!field.fallback.empty()) out.add("default", default_json(field));
  return out.text();
}

void add_block(const std::vector<Field>& fields, int indent, JsonObject& out) {
  JsonObject properties(indent + 2);
  std::vector<std::string> needed;
  for (const Field& field : fields) {
    properties.add(field.name, field_schema(field, indent + 4));
    if (field.rule.required) needed.push_back(json_text(field.name));
  }
  out.add("type", "\"object\"").add("additionalProperties", "false");
  if (!needed.empty()) out.add("required", json_list(needed));
  out.add("properties", properties.text());
}

std::string kind_schema(const KindInfo& info, int indent) {
  std::vector<std::string> needed{"\"apiVersion\"", "\"kind\"", "\"metadata\""};
  for (const Field& field : info.fields) {
    if (field.rule.required) {
      needed.emplace_back("\"spec\"");
      break;
    }
  }
  JsonObject properties(indent + 2);
  properties.add("apiVersion", "{\"const\": " + json_text(kApiVersion) + "}");
  properties.add("kind", "{\"const\": " + json_text(name(info.kind)) + "}");
  properties.add("metadata", "{\"$ref\": \"#/$defs/metadata\"}");
  JsonObject spec(indent + 4);
  add_block(info.fields, indent + 4, spec);
  properties.add("spec", spec.text());
  JsonObject out(indent);
  out.add("description", json_text(info.meaning)).add("type", "\"object\"");
  out.add("additionalProperties", "false").add("required", json_list(needed));
  return out.add("properties", properties.text()).text();
}

}  // namespace

std::string json_schema() {
  JsonObject metadata(4);
  metadata.add("type", "\"object\"").add("additionalProperties", "false");
  metadata.add("required", "[\"name\"]");
  metadata.add("properties",
               R"({"name": {"type": "string", "maxLength": 253, "pattern": )"
               R"("^[A-Za-z0-9]([-A-Za-z0-9_./:@+]*[A-Za-z0-9])?$"}})");
  JsonObject definitions(2);
  definitions.add("metadata", metadata.text()).add("source", std::string(kEnvOrFile));
  std::vector<std::string> choices, branches;
  for (const KindInfo& info : kinds()) {
    const std::string text(name(info.kind));
    definitions.add(text, kind_schema(info, 4));
    choices.push_back(json_text(text));
    branches.push_back("{\"if\": {\"properties\": {\"kind\": {\"const\": " + json_text(text) +
                       "}}}, \"then\": {\"$ref\": \"#/$defs/" + text + "\"}}");
  }
  JsonObject out(0);
  out.add("$schema", "\"https://json-schema.org/draft/2020-12/schema\"");
  out.add("title", "\"Signalbox configuration\"").add("type", "\"object\"");
  out.add("required", "[\"kind\"]");
  out.add("properties", "{\"kind\": {\"enum\": " + json_list(choices) + "}}");
  out.add("allOf", json_list(branches)).add("$defs", definitions.text());
  return out.text() + "\n";
}

}  // namespace signalbox::spec
