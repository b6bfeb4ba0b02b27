// SPDX-License-Identifier: Apache-2.0
// The vocabulary in which the kinds declare their fields, beyond base/describe.h. A type carries
// its own grammar: a Ref must name a resource that exists, a KeySource is never plain text.
//
//   v(p.model, "model", "The Model that its engines serve.", required);
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "base/describe.h"

namespace signalbox::spec {

// What a field must satisfy. For lists the range counts items; for text it has no meaning.
struct Required {};
inline constexpr Required required{};

struct Rule {
  Range range;
  bool required = false;
  bool at_start = false;

  constexpr Rule() = default;
  constexpr Rule(Range r) : range(r) {}                                      // NOLINT: reads as one
  constexpr Rule(Required) : required(true) {}                               // NOLINT
  constexpr Rule(Range r, Required) : range(r), required(true) {}
  constexpr Rule(AtStart a) : range(a.range), at_start(true) {}              // NOLINT
};

enum class Kind : std::uint8_t { Gateway, Model, Pool, Tenant, Objective, Route };
std::string_view name(Kind kind);

// The metadata.name of another resource; empty: none.
template <Kind K>
struct Ref {
  std::string name;
  explicit operator bool() const { return !name.empty(); }
  auto operator<=>(const Ref&) const = default;
};

// A secret that we need in plain text, such as an upstream key: where it is, never what it is.
struct SecretSource {
  enum class From : std::uint8_t { None, Hash, Env, File };
  From from = From::None;  // never Hash here
  std::string where;       // name of the variable, path of the file, or 64 hexadecimal digits
  auto operator<=>(const SecretSource&) const = default;
};

// A key that is only compared: its SHA-256 (`sha256:...`), or where the key itself is.
struct KeySource : SecretSource {
  auto operator<=>(const KeySource&) const = default;
};

}  // namespace signalbox::spec

template <>
struct signalbox::EnumNames<signalbox::spec::Kind> {
  using Kind = spec::Kind;
  static constexpr std::pair<Kind, std::string_view> values[] = {
      {Kind::Gateway, "Gateway"}, {Kind::Model, "Model"},         {Kind::Pool, "Pool"},
      {Kind::Tenant, "Tenant"},   {Kind::Objective, "Objective"}, {Kind::Route, "Route"}};
};
