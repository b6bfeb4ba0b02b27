// SPDX-License-Identifier: Apache-2.0
// Writes a tree as block YAML that every YAML 1.1 and 1.2 reader takes the same way.
#include "core/spec/tree.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <string_view>

namespace signalbox::spec {
namespace {

bool is_alnum(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

// Words and number forms of YAML 1.1, which other readers of the same file may use.
bool is_ambiguous(const std::string& text) {
  constexpr std::array<std::string_view, 8> kWords{"y", "n", "yes", "no", "on", "off", "null", "~"};
  std::string lower = text;
  for (char& c : lower) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  if (std::find(kWords.begin(), kWords.end(), lower) != kWords.end()) return true;
  const bool digits = std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= '0' && c <= '9') || c == ':' || c == '_' || c == '.' || c == '-' || c == '+' ||
           c == 'e' || c == 'E';
  });
  return digits || is_typed_scalar(text);
}

bool is_plain(const std::string& text) {
  if (text.empty() || text.size() > 200 || !(is_alnum(text[0]) || text[0] == '/')) return false;
  if (text.back() == ':' || is_ambiguous(text)) return false;
  return std::all_of(text.begin(), text.end(), [](char c) {
    return is_alnum(c) || std::string_view("_-./:@+").find(c) != std::string_view::npos;
  });
}

std::string in_quotes(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (byte < 0x20 || byte == 0x7F) {
      constexpr char kHex[] = "0123456789ABCDEF";
      out += "\\x";
      out += kHex[byte >> 4];
      out += kHex[byte & 0xF];
    } else {
      out += c;
    }
  }
  return out + "\"";
}

std::string scalar(const Node& node) {
  if (node.form == Node::Form::Null) return "null";
  return !node.quoted || is_plain(node.text) ? node.text : in_quotes(node.text);
}

void write_items(const Node& node, int indent, bool first_inline, std::string& out);

// The value after `key:` or `-`.
void write_value(const Node& node, int indent, bool in_sequence, std::string& out) {
  const bool leaf = node.form == Node::Form::Null || node.form == Node::Form::Scalar;
  if (leaf) {
    out += " " + scalar(node) + "\n";
  } else if (node.items.empty()) {
    out += node.form == Node::Form::Mapping ? " {}\n" : " []\n";
  } else if (in_sequence) {
    out += " ";
    write_items(node, indent + 2, true, out);
  } else {
    out += "\n";
    write_items(node, indent + 2, false, out);
  }
}

void write_items(const Node& node, int indent, bool first_inline, std::string& out) {
  for (const Node& item : node.items) {
    if (!first_inline) out.append(static_cast<std::size_t>(indent), ' ');
    first_inline = false;
    const bool mapping = node.form == Node::Form::Mapping;
    if (mapping) {
      out += (is_plain(item.key) ? item.key : in_quotes(item.key)) + ":";
    } else {
      out += "-";
    }
    write_value(item, indent, !mapping, out);
  }
}

}  // namespace

std::string to_yaml(const Node& root) {
  std::string out;
  if (root.form == Node::Form::Null || root.form == Node::Form::Scalar) return scalar(root) + "\n";
  if (root.items.empty()) return root.form == Node::Form::Mapping ? "{}\n" : "[]\n";
  write_items(root, 0, false, out);
  return out;
}

bool is_typed_scalar(const std::string& text) {
  constexpr std::array<std::string_view, 11> kWords{
      "", "~", "null", "Null", "NULL", "true", "True", "TRUE", "false", "False", "FALSE"};
  if (std::find(kWords.begin(), kWords.end(), text) != kWords.end()) return true;
  std::string_view rest = text;
  if (rest.starts_with("0x") || rest.starts_with("0o")) {
    rest.remove_prefix(2);
    return !rest.empty() && std::all_of(rest.begin(), rest.end(), [](char c) {
      return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
    });
  }
  if (rest.starts_with('-') || rest.starts_with('+')) rest.remove_prefix(1);
  if (rest == ".inf" || rest == ".Inf" || rest == ".INF") return true;
  if (text == ".nan" || text == ".NaN" || text == ".NAN") return true;
  if (rest.empty() || !((rest[0] >= '0' && rest[0] <= '9') || rest[0] == '.')) return false;
  double value = 0;
  const auto [end, fault] = std::from_chars(rest.data(), rest.data() + rest.size(), value);
  // A number too large for a double is a number all the same.
  return (fault == std::errc{} || fault == std::errc::result_out_of_range) &&
         end == rest.data() + rest.size();
}

}  // namespace signalbox::spec
