// SPDX-License-Identifier: Apache-2.0
// Changes of a request body, turned into edits of its bytes.
#include "io/json/splice.h"

#include <algorithm>

#include "io/json/escape.h"

namespace signalbox::json {
namespace {

std::string pair(std::string_view key, std::string_view json) {
  std::string out = quote(key);
  out += ':';
  out += json;
  return out;
}

}  // namespace

Splice::Change& Splice::change(Key key) {
  for (Change& c : changes_) {
    if (c.key == key) return c;
  }
  return changes_.emplace_back(Change{key, false, {}});
}

void Splice::set(Key key, std::string_view json) {
  Change& c = change(key);
  c.remove = false;
  c.json = json;
}

void Splice::remove(Key key) {
  Change& c = change(key);
  c.remove = true;
  c.json.clear();
}

void Splice::set_model(std::string_view name) { set(Key::Model, quote(name)); }
void Splice::set_stream(bool on) { set(Key::Stream, on ? "true" : "false"); }
void Splice::set_cache_salt(std::string_view salt) { set(Key::CacheSalt, quote(salt)); }
void Splice::set_priority(std::int64_t priority) { set(Key::Priority, std::to_string(priority)); }

void Splice::include_usage() {
  constexpr std::string_view kOptions = R"({"include_usage":true})";
  switch (scan_.include_usage) {
    case IncludeUsage::NoOptions:
    case IncludeUsage::NullOptions:
      return set(Key::StreamOptions, kOptions);
    case IncludeUsage::NotGiven:
    case IncludeUsage::False:
      // Usage with every chunk has no meaning without usage; with it, clients would see it.
      if (scan_.continuous_usage) return set(Key::StreamOptions, kOptions);
      include_usage_ = true;
      return;
    case IncludeUsage::True:
      return;
  }
}

void Splice::add(std::string_view key, std::string_view json) {
  for (std::size_t i = 0; i < kKeyCount; ++i) {
    const Key known = static_cast<Key>(i);
    if (name(known) == key && scan_.has(known)) return set(known, json);
  }
  additions_.push_back(pair(key, json));
}

bool Splice::empty() const {
  return changes_.empty() && additions_.empty() && !include_usage_;
}

// The comma behind a member, or 0 when it is the last.
std::uint32_t Splice::next_comma(const Member& member) const {
  const auto at = body_.find_first_not_of(" \t\r\n", member.value.end);
  return at != std::string_view::npos && body_[at] == ',' ? static_cast<std::uint32_t>(at) : 0;
}

// A member goes with the comma before it. At the head of the object, where there is none, members
// go with the comma behind them.
void Splice::remove_members(Edits& edits, int& remaining) const {
  std::vector<const Member*> gone;  // takes no memory when nothing goes
  for (const Change& c : changes_) {
    if (c.remove && scan_.has(c.key)) gone.push_back(&scan_.member(c.key));
  }
  std::sort(gone.begin(), gone.end(),
            [](const Member* a, const Member* b) { return a->begin < b->begin; });
  remaining -= static_cast<int>(gone.size());
  Span head;                   // the members that are gone from the head
  std::uint32_t expected = 0;  // comma before the member that would go on with it
  for (const Member* m : gone) {
    if (m->comma != expected) {
      edits.replace({m->comma, m->value.end}, "");
      continue;
    }
    const std::uint32_t comma = next_comma(*m);
    if (!head) head.begin = m->begin;
    head.end = comma != 0 ? comma + 1 : m->value.end;
    expected = comma != 0 ? comma : 0xFFFFFFFF;
  }
  if (head) edits.replace(head, "");
}

Edits Splice::edits() const {
  Edits edits(body_);
  int remaining = scan_.member_count;
  remove_members(edits, remaining);
  std::string tail;
  const auto append = [&](std::string_view member) {
    if (remaining++ > 0) tail += ',';
    tail += member;
  };
  bool options_changed = false;
  for (const Change& c : changes_) {
    options_changed = options_changed || c.key == Key::StreamOptions;
    if (c.remove) continue;
    if (scan_.has(c.key)) {
      edits.replace(scan_.member(c.key).value, c.json);
    } else {
      append(pair(name(c.key), c.json));
    }
  }
  if (include_usage_ && !options_changed) {
    if (scan_.include_usage_value) {
      edits.replace(scan_.include_usage_value, "true");
    } else {
      edits.replace({scan_.options_close, scan_.options_close},
                    scan_.options_empty ? R"("include_usage":true)" : R"(,"include_usage":true)");
    }
  }
  for (const std::string& member : additions_) append(member);
  if (!tail.empty()) edits.replace({scan_.close, scan_.close}, tail);
  return edits;
}

}  // namespace signalbox::json
