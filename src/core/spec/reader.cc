// SPDX-License-Identifier: Apache-2.0
// Reads scalars and blocks from a tree. Messages never repeat what could be a secret.
#include "core/spec/reader.h"

#include <algorithm>
#include <charconv>

namespace signalbox::spec {
namespace {

constexpr std::size_t kTextMax = 4096;
constexpr std::string_view kKeyHelp =
    "a key is never written here; write `sha256:` and its 64 hexadecimal digits, {env: NAME} or"
    " {file: PATH}.";
constexpr std::string_view kSecretHelp =
    "a secret is never written here; write {env: NAME} or {file: PATH}.";

std::string_view form_name(const Node& node) {
  switch (node.form) {
    case Node::Form::Null: return "nothing";
    case Node::Form::Scalar: return "a single value";
    case Node::Form::Sequence: return "a list";
    case Node::Form::Mapping: return "a block";
  }
  return "?";
}

bool is_hex(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
  });
}

bool is_variable(std::string_view text) {
  if (text.empty() || text.size() > 255 || (text[0] >= '0' && text[0] <= '9')) return false;
  return std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
  });
}

// 010 is eight to some readers of YAML and ten to others.
bool is_padded(std::string_view number) {
  if (number.starts_with('-')) number.remove_prefix(1);
  return number.size() > 1 && number[0] == '0' && number[1] >= '0' && number[1] <= '9';
}

}  // namespace

bool Reader::expect(const Node& node, Node::Form form, std::string_view wanted) {
  if (node.form == form) return true;
  if (node.form == Node::Form::Null) {
    fail_block(node, "has no value; write " + std::string(wanted) + " or remove the line.");
  } else {
    const bool article = wanted.starts_with("a ") || wanted.starts_with("an ");
    fail(node, "is " + std::string(form_name(node)) + " where " + (article ? "" : "one ") +
                   std::string(wanted) + " is expected.");
  }
  return false;
}

const Node* Reader::child(const Node& mapping, std::string_view key) {
  const Node* first = nullptr;
  for (const Node& item : mapping.items) {
    if (item.key != key) continue;
    if (first != nullptr) {
      fail_key(item, quote(key) + " is set twice, first in line " +
                         std::to_string(first->key_line) + "; remove one.");
    } else {
      first = &item;
    }
  }
  return first;
}

void Reader::refuse_others(const Node& mapping, const std::vector<std::string_view>& known,
                           std::string_view noun) {
  for (const Node& item : mapping.items) {
    if (std::find(known.begin(), known.end(), item.key) != known.end()) continue;
    fail_key(item, "there is no " + std::string(noun) + " " + quote(item.key) + " here" +
                       (report_.full() ? "." : suggestion(item.key, known)));
  }
}

bool Reader::read_bool(const Node& node, bool& out) {
  if (!expect(node, Node::Form::Scalar, "true or false")) return false;
  if (!node.quoted && (node.text == "true" || node.text == "false")) {
    out = node.text == "true";
    return true;
  }
  fail(node, quote(node.text) + " is neither true nor false.");
  return false;
}

bool Reader::read_text(const Node& node, std::string& out) {
  if (!expect(node, Node::Form::Scalar, "text")) return false;
  if (!node.quoted && is_typed_scalar(node.text)) {
    fail(node, quote(node.text) + " is no text; put it in quotes if it is meant as a name.");
    return false;
  }
  if (node.text.size() > kTextMax) {
    fail(node, "is longer than " + std::to_string(kTextMax) + " bytes.");
    return false;
  }
  const bool control = std::any_of(node.text.begin(), node.text.end(), [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte < 0x20 || byte == 0x7F;
  });
  if (control) {
    fail(node, "has a line break or another control character; write it in one line.");
    return false;
  }
  out = node.text;
  return true;
}

bool Reader::read_integer(const Node& node, std::int64_t& out) {
  if (!expect(node, Node::Form::Scalar, "a whole number")) return false;
  const char* end = node.text.data() + node.text.size();
  const auto [stop, fault] = std::from_chars(node.text.data(), end, out);
  if (is_padded(node.text)) return fail_padded(node);
  if (!node.quoted && fault == std::errc{} && stop == end) return true;
  const bool digits = stop == end && !node.text.empty();
  fail(node, quote(node.text) + (node.quoted && digits ? " is text; remove the quotes."
                                 : digits              ? " is too large a number."
                                                       : " is no whole number."));
  return false;
}

bool Reader::fail_padded(const Node& node) {
  fail(node, quote(node.text) + " begins with a needless zero; remove it.");
  return false;
}

bool Reader::read_number(const Node& node, double& out) {
  if (!expect(node, Node::Form::Scalar, "a number")) return false;
  const char* end = node.text.data() + node.text.size();
  const auto [stop, fault] = std::from_chars(node.text.data(), end, out);
  const bool whole = fault == std::errc{} && stop == end && std::isfinite(out);
  if (is_padded(node.text)) return fail_padded(node);
  if (!node.quoted && whole) return true;
  fail(node, quote(node.text) + (node.quoted && whole ? " is text; remove the quotes."
                                                      : " is no number."));
  return false;
}

void Reader::read_source(const Node& node, SecretSource& out, bool hash_allowed) {
  const std::string_view help = hash_allowed ? kKeyHelp : kSecretHelp;
  if (node.form == Node::Form::Scalar) {
    constexpr std::string_view kPrefix = "sha256:";
    const std::string_view text = node.text;
    const bool good = text.size() == kPrefix.size() + 64 && text.starts_with(kPrefix) &&
                      is_hex(text.substr(kPrefix.size()));
    if (!hash_allowed || !good) return fail(node, std::string(help));
    out = {SecretSource::From::Hash, std::string(text.substr(kPrefix.size()))};
    return;
  }
  if (node.form == Node::Form::Mapping && node.items.size() > 1) {
    return fail_block(node, "has more than one source; keep one of {env: NAME} and {file: PATH}.");
  }
  if (node.form != Node::Form::Mapping || node.items.size() != 1 ||
      (node.items[0].key != "env" && node.items[0].key != "file")) {
    return fail_block(node, std::string(help));
  }
  const Node& item = node.items[0];
  const bool env = item.key == "env";
  const Scope scope(*this, env ? ".env" : ".file");
  record(item);
  std::string where;
  if (!expect(item, Node::Form::Scalar, env ? "the name of a variable" : "the path of a file")) {
    return;
  }
  // What stands here by mistake may be the secret itself: it is not repeated.
  if (env && !is_variable(item.text)) {
    return fail(item, "is no name of an environment variable: letters, digits and `_`.");
  }
  if (!env && item.text.empty()) return fail(item, "is empty; write the path of a file.");
  if (read_text(item, where)) {
    out = {env ? SecretSource::From::Env : SecretSource::From::File, std::move(where)};
  }
}

void Reader::check_range(const Node& node, double value, const Rule& rule,
                         std::string (*print)(double)) {
  const auto [low, high] = rule.range;
  if (value >= low && value <= high) return;
  const std::string bounds = !std::isfinite(high)  ? "at least " + print(low)
                             : !std::isfinite(low) ? "at most " + print(high)
                                                   : "from " + print(low) + " to " + print(high);
  fail(node, quote(node.text) + " is out of range; write " + bounds + ".");
}

bool Reader::check_count(const Node& node, std::size_t count, const Rule& rule) {
  const auto value = static_cast<double>(count);
  if (value < rule.range.low) {
    fail(node, "has " + std::to_string(count) + " items; write at least " +
                   print_number(rule.range.low) + ".");
  } else if (value > rule.range.high) {
    fail(node, "has " + std::to_string(count) + " items; at most " +
                   print_number(rule.range.high) + " are accepted.");
    return false;
  }
  return true;
}

void FieldReader::missing(std::string_view name, std::string_view meaning) {
  reader_.fail_block(block_, quote(name) + " is missing: " + std::string(meaning));
}

}  // namespace signalbox::spec
