// SPDX-License-Identifier: Apache-2.0
// Builds trees from the events of yaml-cpp; its exceptions end here.
#include "io/config/yaml.h"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <sstream>
#include <string_view>
#include <utility>

namespace signalbox::config {
namespace {

using spec::Node;

constexpr std::string_view kAliasHelp =
    "aliases (`*name`) are not read; write what it stands for, or put the text in quotes.";

constexpr std::string_view kTagHelp = "tags (`!name`) are not read; remove it.";
constexpr std::string_view kOpenQuotesHelp =
    "a quoted text begins here, and no quotes end it; close the quotes.";
// The library's words.
constexpr std::string_view kOpenList = "end of sequence flow not found";
constexpr std::string_view kOpenBlock = "end of map flow not found";
constexpr std::string_view kEndInQuotes = "illegal EOF in scalar";
constexpr std::string_view kDocumentEndInQuotes = "illegal document indicator in scalar";
constexpr std::string_view kTab = "illegal tab when looking for indentation";
constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

// Whether the quotes that `text` begins with are closed in it. A quote inside is doubled ('') or
// behind a backslash ("\"").
bool closed(std::string_view text) {
  const char quote = text.front();
  for (std::size_t i = 1; i < text.size(); ++i) {
    if (quote == '"' && text[i] == '\\') {
      ++i;
    } else if (text[i] == quote) {
      if (quote == '"' || i + 1 == text.size() || text[i + 1] != quote) return true;
      ++i;
    }
  }
  return false;
}

// Collects one document. After the first fault it ignores the rest of the document.
class TreeBuilder : public YAML::EventHandler {
 public:
  // `text`: what the parser reads, without a byte order mark.
  TreeBuilder(const std::string& file, std::string_view text, const YamlLimits& limits,
              spec::Report& report)
      : file_(file), text_(text), limits_(limits), report_(report) {}

  Node take() { return std::move(root_); }
  bool failed() const { return failed_; }

  // What the parser threw. It tells where it gave up; whoever mends the file wants the beginning.
  void fail_with(const YAML::Exception& error, std::string message) {
    YAML::Mark mark = error.mark;
    const bool list = error.msg == kOpenList;
    if (list || error.msg == kOpenBlock) {
      const auto form = list ? Node::Form::Sequence : Node::Form::Mapping;
      const auto begun = std::find_if(stack_.rbegin(), stack_.rend(), [&](const Open& open) {
        return open.node.form == form;
      });
      if (begun != stack_.rend()) return fail(mark, begun->node, std::move(message));
    }
    fail(mark, std::move(message));
  }

  void OnDocumentStart(const YAML::Mark& mark) override {
    root_ = Node{};
    stack_.clear();
    // The library offers text that begins no document again and again, as an empty one.
    if (mark.pos <= last_start_) fail(mark, "no document can begin here; write `---` before it.");
    last_start_ = mark.pos;
  }
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    Node node = make(mark, Node::Form::Null);
    if (accept(mark, "", anchor)) add(std::move(node));
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override {
    fail(mark, std::string(kAliasHelp));
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    if (!accept(mark, tag, anchor)) return;
    Node node = make(mark, Node::Form::Scalar);
    node.quoted = tag == "!";
    if (node.quoted) {
      const auto at = static_cast<std::size_t>(mark.pos);
      const char first = at < text_.size() ? text_[at] : '\0';
      if (first == '!') return fail(mark, std::string(kTagHelp));
      // The library takes quotes as closed by the end of the file.
      if ((first == '"' || first == '\'') && !closed(text_.substr(at))) {
        return fail(mark, std::string(kOpenQuotesHelp));
      }
    }
    node.text = value;
    add(std::move(node));
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    if (accept(mark, tag, anchor)) open(make(mark, Node::Form::Sequence));
  }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    if (accept(mark, tag, anchor)) open(make(mark, Node::Form::Mapping));
  }
  void OnSequenceEnd() override { close(); }
  void OnMapEnd() override { close(); }

 private:
  // A block under construction, with the key that its next value belongs to.
  struct Open {
    Node node;
    bool has_key = false;
    Node key;
  };

  static Node make(const YAML::Mark& mark, Node::Form form) {
    Node node;
    node.form = form;
    node.line = mark.line + 1;
    node.column = mark.column + 1;
    return node;
  }

  void fail(const YAML::Mark& mark, std::string message) {
    if (!failed_) report_.add({file_, mark.line + 1, mark.column + 1}, "", std::move(message));
    failed_ = true;
    stack_.clear();
    root_ = Node{};
  }

  bool accept(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor) {
    if (failed_) return false;
    if (anchor != 0) {
      fail(mark, "anchors (`&name`) are not read; remove it.");
    } else if (!tag.empty() && tag != "?" && tag != "!") {
      fail(mark, std::string(kTagHelp));
    } else if (++nodes_ > limits_.nodes_max) {
      fail(mark, "the file has more than " + std::to_string(limits_.nodes_max) + " values.");
    }
    return !failed_;
  }

  void open(Node node) {
    if (!stack_.empty() && expects_key()) {
      return fail(YAML::Mark{}, node, "a key is a list or a block; keys are text.");
    }
    if (stack_.size() >= static_cast<std::size_t>(limits_.depth_max)) {
      return fail(YAML::Mark{}, node, "is nested deeper than " +
                                          std::to_string(limits_.depth_max) + " levels.");
    }
    stack_.push_back({std::move(node), false, {}});
  }
  void fail(YAML::Mark mark, const Node& node, std::string message) {
    mark.line = node.line - 1;
    mark.column = node.column - 1;
    fail(mark, std::move(message));
  }

  bool expects_key() const {
    return stack_.back().node.form == Node::Form::Mapping && !stack_.back().has_key;
  }

  void close() {
    if (failed_ || stack_.empty()) return;
    Node node = std::move(stack_.back().node);
    stack_.pop_back();
    add(std::move(node));
  }

  void add(Node node) {
    if (stack_.empty()) {
      root_ = std::move(node);
      return;
    }
    Open& top = stack_.back();
    if (top.node.form == Node::Form::Sequence) {
      top.node.items.push_back(std::move(node));
    } else if (!top.has_key) {
      if (node.form != Node::Form::Scalar) {
        return fail(YAML::Mark{}, node, "a key is missing or null; keys are text.");
      }
      if (node.text == "<<" && !node.quoted) {
        return fail(YAML::Mark{}, node, "merge keys (`<<`) are not read; repeat the settings.");
      }
      top.key = std::move(node);
      top.has_key = true;
    } else {
      node.key = std::move(top.key.text);
      node.key_line = top.key.line;
      node.key_column = top.key.column;
      top.has_key = false;
      top.node.items.push_back(std::move(node));
    }
  }

  const std::string& file_;
  std::string_view text_;
  const YamlLimits& limits_;
  spec::Report& report_;
  Node root_;
  std::vector<Open> stack_;
  std::size_t nodes_ = 0;
  int last_start_ = -1;  // where the document before this one began
  bool failed_ = false;
};

// Offset of the first byte that is no UTF-8 (RFC 3629) or no text; npos: all is well.
std::size_t first_bad_byte(std::string_view text) {
  std::size_t i = 0;
  const auto byte = [&](std::size_t at) { return static_cast<unsigned char>(text[at]); };
  while (i < text.size()) {
    const unsigned char lead = byte(i);
    if (lead < 0x80) {
      const bool control = lead < 0x20 && lead != '\n' && lead != '\r' && lead != '\t';
      if (control || lead == 0x7F) return i;
      ++i;
      continue;
    }
    const std::size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
    if (lead < 0xC2 || lead > 0xF4 || i + length > text.size()) return i;
    for (std::size_t k = 1; k < length; ++k) {
      if ((byte(i + k) & 0xC0u) != 0x80u) return i;
    }
    const unsigned char second = byte(i + 1);
    const bool overlong = (lead == 0xE0 && second < 0xA0) || (lead == 0xF0 && second < 0x90);
    const bool beyond = (lead == 0xED && second > 0x9F) || (lead == 0xF4 && second > 0x8F);
    if (overlong || beyond) return i;
    i += length;
  }
  return std::string_view::npos;
}

spec::Place place_at(const std::string& file, std::string_view text, std::size_t offset) {
  const std::string_view before = text.substr(0, offset);
  const auto lines = std::count(before.begin(), before.end(), '\n');
  const std::size_t line_start = before.rfind('\n') + 1;  // npos + 1 is 0
  const std::string_view line = before.substr(line_start);
  const auto characters = std::count_if(line.begin(), line.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0u) != 0x80u;
  });
  return {file, static_cast<int>(lines) + 1, static_cast<int>(characters) + 1};
}

// Whether line `line`, counted from 0, or the one before it begins with blanks and a tab.
bool tab_in_indent(std::string_view text, int line) {
  int at = 0;
  for (std::size_t begin = 0; begin < text.size() && at <= line; ++at) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view row = text.substr(begin, end - begin);
    const std::size_t first = row.find_first_not_of(" \t");
    if (at + 1 >= line && row.substr(0, first).find('\t') != std::string_view::npos) return true;
    begin = end + 1;
  }
  return false;
}

// The library's words, as a sentence of ours that helps.
std::string sentence(const std::string& words) {
  constexpr std::pair<std::string_view, std::string_view> kHelp[] = {
      {kTab,
       "a tab stands where spaces are needed; indent with spaces."},
      {kOpenList, "a `[` has no `]` after it; close the list."},
      {kOpenBlock, "a `{` has no `}` after it; close the block."},
      {kEndInQuotes, "the file ends inside a quoted text; close the quotes."},
      {kDocumentEndInQuotes, "the document ends inside a quoted text; close the quotes."},
      {"illegal map value",
       "a `:` makes no sense here; put text that contains `: ` in quotes, or mend the indent."},
      {"the referenced anchor is not defined",
       kAliasHelp},
  };
  for (const auto& [theirs, ours] : kHelp) {
    if (words == theirs) return std::string(ours);
  }
  return "this is no YAML: " + words + "; mend the syntax.";
}

std::vector<spec::Document> read_documents(const std::string& file, std::string_view text,
                                           const YamlLimits& limits, spec::Report& report) {
  std::vector<spec::Document> documents;
  TreeBuilder builder(file, text, limits, report);
  try {
    std::istringstream stream{std::string(text)};
    YAML::Parser parser(stream);
    while (!builder.failed() && parser.HandleNextDocument(builder)) {
      if (!builder.failed()) documents.push_back({file, builder.take()});
    }
  } catch (const YAML::Exception& error) {
    const bool in_quotes = error.msg == kEndInQuotes || error.msg == kDocumentEndInQuotes;
    if (in_quotes && !builder.failed()) {
      // As if a line had ended the file there: then the builder sees the quotes that are open.
      spec::Report begun;
      const auto end = std::min(static_cast<std::size_t>(error.mark.pos), text.size());
      const std::string cut = std::string(text.substr(0, end)) + '\n';
      if (cut.size() <= text.size() || !text.ends_with('\n')) {
        read_documents(file, cut, limits, begun);
      }
      if (!begun.clean()) {
        report.add(begun.problems()[0].place, "", begun.problems()[0].message);
        return documents;
      }
    }
    const bool tab = tab_in_indent(text, error.mark.line);
    builder.fail_with(error, sentence(tab ? std::string(kTab) : error.msg));
  }
  return documents;
}

}  // namespace

std::vector<spec::Document> read_yaml(const std::string& file, std::string_view text,
                                      const YamlLimits& limits, spec::Report& report) {
  if (text.size() > limits.bytes_max) {
    report.add({file, 0, 0}, "", "is larger than " + std::to_string(limits.bytes_max) + " bytes.");
    return {};
  }
  if (const std::size_t bad = first_bad_byte(text); bad != std::string_view::npos) {
    const auto byte = static_cast<unsigned char>(text[bad]);
    report.add(place_at(file, text, bad), "",
               byte == 0     ? "a NUL byte stands here; take it out."
               : byte < 0x80 ? "a control character stands here; take it out."
                             : "a byte here is no UTF-8 text; save it as UTF-8.");
    return {};
  }
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  return read_documents(file, text, limits, report);
}

}  // namespace signalbox::config
