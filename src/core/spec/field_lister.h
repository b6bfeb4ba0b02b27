// SPDX-License-Identifier: Apache-2.0
// The visitor that turns declarations into data: fields_of<T>() is what describe(T) says. For
// whoever has settings of its own to document.
#pragma once

#include <cmath>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/spec/schema.h"
#include "core/spec/text_form.h"

namespace signalbox::spec {

template <typename T>
TypeInfo type_of();

template <typename T>
std::string default_text(const T& value) {
  if constexpr (IsOptional<T>::value || IsRef<T>::value || Source<T> || Block<T>) {
    return {};
  } else if constexpr (IsVector<T>::value) {
    return value.empty() ? "[]" : "";
  } else if constexpr (HasTextForm<T>) {
    return TextForm<T>::print(value);
  } else if constexpr (std::is_same_v<T, bool>) {
    return value ? "true" : "false";
  } else if constexpr (std::is_enum_v<T>) {
    return std::string(enum_name(value));
  } else if constexpr (std::is_integral_v<T>) {
    return std::to_string(value);
  } else if constexpr (std::is_floating_point_v<T>) {
    return print_number(static_cast<double>(value));
  } else {
    return value.empty() ? "\"\"" : value;
  }
}

// `low to high noun`, as far as there are bounds.
std::string range_text(const Range& range, std::string (*print)(double), std::string_view noun);

template <typename T>
std::string range_of(const Rule& rule) {
  if constexpr (IsOptional<T>::value) {
    return range_of<typename T::value_type>(rule);
  } else if constexpr (IsVector<T>::value) {
    return range_text(rule.range, &print_number, " items");
  } else if constexpr (HasMagnitude<T>) {
    return range_text(rule.range, &TextForm<T>::bound, "");
  } else if constexpr (std::is_arithmetic_v<T> && !std::is_same_v<T, bool>) {
    return range_text(rule.range, &print_number, "");
  } else {
    return {};
  }
}

struct FieldLister {
  std::vector<Field>& fields;

  template <typename T>
  void operator()(T& field, std::string_view name, std::string_view meaning, Rule rule = {}) {
    Field info;
    info.name = name;
    info.meaning = meaning;
    info.rule = rule;
    info.type = type_of<T>();
    if (!rule.required) info.fallback = default_text(field);
    info.range = range_of<T>(rule);
    fields.push_back(std::move(info));
  }
};

template <typename T>
std::vector<Field> fields_of() {
  std::vector<Field> fields;
  FieldLister lister{fields};
  T defaults{};
  describe(lister, defaults);
  return fields;
}

// The plural, for `list of ...`.
std::string plural(const TypeInfo& type);

template <typename T>
TypeInfo type_of() {
  TypeInfo type;
  if constexpr (IsOptional<T>::value) {
    return type_of<typename T::value_type>();
  } else if constexpr (IsVector<T>::value) {
    type.form = TypeInfo::Form::List;
    type.item.push_back(type_of<typename T::value_type>());
    type.name = "list of " + plural(type.item[0]);
    if constexpr (HasTextForm<typename T::value_type>) {
      type.name = "list of " + std::string(TextForm<typename T::value_type>::kNames);
    }
  } else if constexpr (HasTextForm<T>) {
    type.name = TextForm<T>::kName;
    type.pattern = TextForm<T>::kPattern;
    type.zero_number = HasMagnitude<T>;
  } else if constexpr (std::is_same_v<T, bool>) {
    type.form = TypeInfo::Form::Boolean;
    type.name = "boolean";
  } else if constexpr (std::is_enum_v<T>) {
    type.form = TypeInfo::Form::Enum;
    for (const auto text : enum_names<T>()) {
      type.values.emplace_back(text);
      type.name += (type.name.empty() ? "" : ", ") + std::string(text);
    }
  } else if constexpr (std::is_integral_v<T>) {
    type.form = TypeInfo::Form::Integer;
    type.name = "integer";
  } else if constexpr (std::is_floating_point_v<T>) {
    type.form = TypeInfo::Form::Number;
    type.name = "number";
  } else if constexpr (std::is_same_v<T, std::string>) {
    type.name = "text";
  } else if constexpr (IsRef<T>::value) {
    type.name = std::string(name(IsRef<T>::kKind)) + " name";
    type.pattern = "^.+$";
  } else if constexpr (Source<T>) {
    type.form = std::is_same_v<T, KeySource> ? TypeInfo::Form::Key : TypeInfo::Form::Secret;
    type.name = std::is_same_v<T, KeySource> ? "key" : "secret";
  } else {
    type.form = TypeInfo::Form::Block;
    type.name = "block";
    type.fields = fields_of<T>();
  }
  return type;
}

}  // namespace signalbox::spec
