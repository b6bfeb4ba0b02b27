// SPDX-License-Identifier: Apache-2.0
// The visitor that reads a block from a tree; every fault goes to the report with its place and
// path, and reading goes on. For parse.cc, and for whoever has files of its own made of settings.
//
// A block whose defaults follow from what is written in it has `prepare(T&, const Node&)` beside
// its describe(): called before its fields are read, it finds no fault.
#pragma once

#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "core/spec/config.h"
#include "core/spec/nearest.h"
#include "core/spec/text_form.h"

namespace signalbox::spec {

// Where reading stands: one file, one path, one report.
class Reader {
 public:
  Reader(Report& report, std::string file) : report_(report), file_(std::move(file)) {}

  // Appends `.name` or `[i]` for the life of the scope.
  class Scope {
   public:
    Scope(Reader& reader, std::string_view step) : path_(reader.path_), size_(path_.size()) {
      path_ += step;
    }
    ~Scope() { path_.resize(size_); }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    std::string& path_;
    std::size_t size_;
  };

  void record(const Node& node) { report_.record(path_, place(node)); }
  void fail(const Node& node, std::string message) {
    report_.add(place(node), path_, std::move(message));
  }
  void fail_key(const Node& node, std::string message) {
    report_.add({file_, node.key_line, node.key_column}, path_, std::move(message));
  }
  // Where something is missing: at the block's own key when it has one.
  void fail_block(const Node& node, std::string message) {
    node.key_line > 0 ? fail_key(node, std::move(message)) : fail(node, std::move(message));
  }

  // The step from here to a field; at the root, without a dot.
  std::string step(std::string_view field) const {
    return (path_.empty() ? "" : ".") + std::string(field);
  }
  // False, with a problem, unless the node has the form that `wanted` describes.
  bool expect(const Node& node, Node::Form form, std::string_view wanted);
  // The child of that key; a second one of the same key is a problem. Null: there is none.
  const Node* child(const Node& mapping, std::string_view key);
  // A problem for every key that is none of `known`.
  void refuse_others(const Node& mapping, const std::vector<std::string_view>& known,
                     std::string_view noun);

  bool read_bool(const Node& node, bool& out);
  bool read_text(const Node& node, std::string& out);
  bool read_integer(const Node& node, std::int64_t& out);
  bool read_number(const Node& node, double& out);
  bool fail_padded(const Node& node);
  void read_source(const Node& node, SecretSource& out, bool hash_allowed);
  void check_range(const Node& node, double value, const Rule& rule,
                   std::string (*print)(double));
  // False when there are too many to go on reading.
  bool check_count(const Node& node, std::size_t count, const Rule& rule);

 private:
  Place place(const Node& node) const { return {file_, node.line, node.column}; }

  Report& report_;
  std::string file_;
  std::string path_;
};

template <typename T>
void read(Reader& reader, const Node& node, T& out, const Rule& rule);

// Reads the fields that describe() names; finish() then reports what is none of them.
class FieldReader {
 public:
  FieldReader(Reader& reader, const Node& block) : reader_(reader), block_(block) {}

  template <typename T>
  void operator()(T& field, std::string_view name, std::string_view meaning, Rule rule = {}) {
    names_.push_back(name);
    const Node* node = reader_.child(block_, name);
    if (node == nullptr) {
      if (rule.required) missing(name, meaning);
      return;
    }
    const Reader::Scope scope(reader_, reader_.step(name));
    read(reader_, *node, field, rule);
  }
  void finish() { reader_.refuse_others(block_, names_, "setting"); }

 private:
  void missing(std::string_view name, std::string_view meaning);

  Reader& reader_;
  const Node& block_;
  std::vector<std::string_view> names_;
};

template <typename T>
void read_list(Reader& reader, const Node& node, std::vector<T>& out, const Rule& rule) {
  if (!reader.expect(node, Node::Form::Sequence, "a list")) return;
  if (!reader.check_count(node, node.items.size(), rule)) return;
  out.clear();
  out.reserve(node.items.size());
  std::map<std::conditional_t<Block<T>, std::size_t, T>, std::size_t> seen;
  for (std::size_t i = 0; i < node.items.size(); ++i) {
    const Reader::Scope scope(reader, "[" + std::to_string(i) + "]");
    T item{};
    read(reader, node.items[i], item, {});
    // What could not be read is at its default and no twin of another; blocks may be alike.
    if constexpr (!Block<T>) {
      if (const auto [at, fresh] = seen.try_emplace(item, i); !fresh && item != T{}) {
        reader.fail(node.items[i],
                    "is the same as item [" + std::to_string(at->second) + "]; remove one.");
      }
    }
    out.push_back(std::move(item));
  }
}

template <typename E>
void read_enum(Reader& reader, const Node& node, E& out) {
  std::string text;
  if (!reader.read_text(node, text)) return;
  for (const auto& [value, name] : EnumNames<E>::values) {
    if (name == text) {
      out = value;
      return;
    }
  }
  reader.fail(node, quote(text) + " is no value of this setting" +
                        suggestion(text, enum_names<E>()));
}

template <typename T>
void read_form(Reader& reader, const Node& node, T& out, const Rule& rule) {
  if (!reader.expect(node, Node::Form::Scalar, TextForm<T>::kName)) return;
  auto value = TextForm<T>::parse(node.text);
  if (!value) {
    reader.fail(node, std::move(value).error().message);
    return;
  }
  out = std::move(*value);
  if constexpr (HasMagnitude<T>) {
    reader.check_range(node, TextForm<T>::magnitude(out), rule, &TextForm<T>::bound);
  }
}

template <typename T>
void read_integral(Reader& reader, const Node& node, T& out, const Rule& rule) {
  std::int64_t value = 0;
  if (!reader.read_integer(node, value)) return;
  // A type narrower than its declared range narrows the range.
  Rule narrowed = rule;
  using Numbers = std::numeric_limits<T>;
  narrowed.range.low = std::max(rule.range.low, static_cast<double>(Numbers::lowest()));
  narrowed.range.high = std::min(rule.range.high, static_cast<double>(Numbers::max()));
  reader.check_range(node, static_cast<double>(value), narrowed, &print_number);
  out = static_cast<T>(value);
}

template <typename T>
void read(Reader& reader, const Node& node, T& out, const Rule& rule) {
  reader.record(node);
  if constexpr (IsOptional<T>::value) {
    read(reader, node, out.emplace(), rule);
  } else if constexpr (IsVector<T>::value) {
    read_list(reader, node, out, rule);
  } else if constexpr (HasTextForm<T>) {
    read_form(reader, node, out, rule);
  } else if constexpr (std::is_same_v<T, bool>) {
    reader.read_bool(node, out);
  } else if constexpr (std::is_enum_v<T>) {
    read_enum(reader, node, out);
  } else if constexpr (std::is_integral_v<T>) {
    read_integral(reader, node, out, rule);
  } else if constexpr (std::is_floating_point_v<T>) {
    double value = 0;
    if (!reader.read_number(node, value)) return;
    out = static_cast<T>(value);
    reader.check_range(node, value, rule, &print_number);
  } else if constexpr (std::is_same_v<T, std::string>) {
    reader.read_text(node, out);
  } else if constexpr (IsRef<T>::value) {
    if (reader.read_text(node, out.name) && out.name.empty()) {
      reader.fail(node, "is empty; write the name of a " +
                            std::string(spec::name(IsRef<T>::kKind)) + ".");
    }
  } else if constexpr (Source<T>) {
    reader.read_source(node, out, std::is_same_v<T, KeySource>);
  } else {
    static_assert(Block<T>, "a setting of this type has no reader");
    if (!reader.expect(node, Node::Form::Mapping, "a block of settings")) return;
    if constexpr (requires { prepare(out, node); }) prepare(out, node);
    FieldReader fields(reader, node);
    describe(fields, out);
    fields.finish();
  }
}

}  // namespace signalbox::spec
