// SPDX-License-Identifier: Apache-2.0
// The visitor that writes a block as a tree: reading the tree gives the same block. For whoever has
// settings of its own to write.
#pragma once

#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "core/spec/text_form.h"
#include "core/spec/tree.h"

namespace signalbox::spec {

// `quoted`: text, which is put in quotes where it could be taken for something else.
Node scalar_node(std::string text, bool quoted);
Node empty_node(Node::Form form);

template <typename T>
Node write(T& value);

// A value that stands for "not set" has no line of its own.
template <typename T>
bool is_absent(const T& value) {
  if constexpr (IsOptional<T>::value) {
    return !value.has_value();
  } else if constexpr (IsVector<T>::value || std::is_same_v<T, std::string>) {
    return value.empty();
  } else if constexpr (IsRef<T>::value) {
    return !value;
  } else if constexpr (Source<T>) {
    return value.from == SecretSource::From::None;
  } else {
    return false;
  }
}

struct FieldWriter {
  Node& block;

  template <typename T>
  void operator()(T& field, std::string_view name, std::string_view, Rule = {}) {
    if (is_absent(field)) return;
    Node node = write(field);
    node.key = name;
    if (node.form == Node::Form::Mapping && node.items.empty()) return;
    block.items.push_back(std::move(node));
  }
};

Node write_source(const SecretSource& source);

// Takes the value by reference to non-const because describe() does; nothing is changed.
template <typename T>
Node write(T& value) {
  if constexpr (IsOptional<T>::value) {
    return write(*value);
  } else if constexpr (IsVector<T>::value) {
    Node node = empty_node(Node::Form::Sequence);
    for (auto& item : value) node.items.push_back(write(item));
    return node;
  } else if constexpr (HasTextForm<T>) {
    return scalar_node(TextForm<T>::print(value), true);
  } else if constexpr (std::is_same_v<T, bool>) {
    return scalar_node(value ? "true" : "false", false);
  } else if constexpr (std::is_enum_v<T>) {
    return scalar_node(std::string(enum_name(value)), true);
  } else if constexpr (std::is_integral_v<T>) {
    return scalar_node(std::to_string(value), false);
  } else if constexpr (std::is_floating_point_v<T>) {
    return scalar_node(print_number(static_cast<double>(value)), false);
  } else if constexpr (std::is_same_v<T, std::string>) {
    return scalar_node(value, true);
  } else if constexpr (IsRef<T>::value) {
    return scalar_node(value.name, true);
  } else if constexpr (Source<T>) {
    return write_source(value);
  } else {
    Node node = empty_node(Node::Form::Mapping);
    FieldWriter fields{node};
    describe(fields, value);
    return node;
  }
}

}  // namespace signalbox::spec
