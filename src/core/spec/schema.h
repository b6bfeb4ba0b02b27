// SPDX-License-Identifier: Apache-2.0
// The declarations of all settings as data, for documents and other readers: what describe() says,
// with types and defaults. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/describe.h"
#include "core/spec/field.h"

namespace signalbox::spec {

struct Field;

struct TypeInfo {
  enum class Form : std::uint8_t { Boolean, Integer, Number, Text, Enum, List, Block, Key, Secret };
  Form form = Form::Text;
  std::string name;                 // for people: `duration`, `list of URLs`
  std::string pattern;              // Text: a regular expression; empty: any
  bool zero_number = false;         // Text: a plain 0 is accepted as well
  std::vector<std::string> values;  // Enum
  std::vector<TypeInfo> item;       // List: one
  std::vector<Field> fields;        // Block
};

struct Field {
  std::string name;
  std::string meaning;
  Rule rule;             // the range of what is counted: seconds for durations, bytes for sizes
  TypeInfo type;
  std::string fallback;  // the default as YAML; empty: none
  std::string range;     // for people: `1ms to 1h`; empty: no bounds
};

struct KindInfo {
  Kind kind = Kind::Gateway;
  std::string meaning;
  std::vector<Field> fields;
};

// Every kind, in the order of their enumerators.
std::vector<KindInfo> kinds();

// A block of a reference page: heading of `depth` (the blocks in it: 3) with what it is, a table of
// its fields, then the blocks in it, named `TITLE.FIELD`.
std::string block_markdown(const std::string& title, const std::string& meaning,
                           const std::vector<Field>& fields, int depth);

// docs/reference/settings.md.
std::string settings_markdown();

// JSON Schema (draft 2020-12) of one document.
std::string json_schema();

}  // namespace signalbox::spec
