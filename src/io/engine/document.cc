// SPDX-License-Identifier: Apache-2.0
// Parses with exceptions switched off: broken JSON gives a discarded tree.
#include "io/engine/document.h"

#include <nlohmann/json.hpp>

namespace signalbox::engine {
namespace {

using Json = nlohmann::json;

const Json& json(const void* node) {
  static const Json none;
  return node ? *static_cast<const Json*>(node) : none;
}

}  // namespace

struct Document::Tree {
  Json json;
};

Document::Document(std::string_view body)
    : tree_(new Tree{Json::parse(body.begin(), body.end(), nullptr, false)}) {}

Document::~Document() = default;

Value Document::root() const {
  return Value(tree_->json.is_discarded() ? nullptr : &tree_->json);
}

bool Value::object() const { return json(node_).is_object(); }
bool Value::array() const { return json(node_).is_array(); }
std::size_t Value::size() const { return array() ? json(node_).size() : 0; }
Value Value::operator[](std::size_t i) const { return Value(&json(node_)[i]); }

Value Value::member(const char* key) const {
  const Json& own = json(node_);
  if (!own.is_object()) return Value();
  auto found = own.find(key);
  return found == own.end() ? Value() : Value(&*found);
}

double Value::number(const char* key) const {
  const Json& value = json(member(key).node_);
  if (!value.is_number()) return -1;
  double told = value.get<double>();
  return told >= 0 && told <= static_cast<double>(kToldMax) ? told : -1;
}

std::int64_t Value::whole(const char* key) const {
  return static_cast<std::int64_t>(number(key));
}

int Value::small(const char* key) const {
  double told = number(key);
  return told > 1e9 ? 1'000'000'000 : static_cast<int>(told);
}

bool Value::flag(const char* key) const {
  const Json& value = json(member(key).node_);
  return value.is_boolean() && value.get<bool>();
}

std::string Value::text(const char* key, std::size_t longest) const {
  return member(key).text(longest);
}

std::string Value::text(std::size_t longest) const {
  const Json& value = json(node_);
  if (!value.is_string()) return {};
  const auto& told = value.get_ref<const std::string&>();
  return told.size() > longest ? std::string() : told;
}

}  // namespace signalbox::engine
