// SPDX-License-Identifier: Apache-2.0
// TextForm<T>: a setting type with a grammar of its own, once: how its text is read and written,
// its name for people, its pattern for JSON Schema, and random examples. Used by the visitors.
#pragma once

#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/describe.h"
#include "base/result.h"
#include "base/rng.h"
#include "base/time.h"
#include "core/spec/address.h"
#include "core/spec/field.h"

namespace signalbox::spec {

template <typename T>
struct TextForm;

template <>
struct TextForm<Duration> {
  static constexpr std::string_view kName = "duration", kNames = "durations";
  static constexpr std::string_view kPattern = R"(^(0|([0-9]+(\.[0-9]+)?(d|h|m|s|ms|us|ns))+)$)";
  static Result<Duration> parse(std::string_view text);
  static std::string print(const Duration& value);
  static Duration draw(Rng& rng, const Rule& rule, const Duration& normal);
  // Correctly rounded both ways, so that 60s is exactly the bound 60 and 0.1 is exactly 100ms.
  static double magnitude(const Duration& value) {
    return static_cast<double>(value.count()) / 1e9;
  }
  static Duration from_magnitude(double seconds);
  static std::string bound(double seconds) { return print(from_magnitude(seconds)); }
};

template <>
struct TextForm<Bytes> {
  static constexpr std::string_view kName = "size", kNames = "sizes";
  static constexpr std::string_view kPattern =
      R"(^(0|[0-9]+(\.[0-9]+)?(B|KiB|MiB|GiB|TiB|kB|MB|GB|TB))$)";
  static Result<Bytes> parse(std::string_view text);
  static std::string print(const Bytes& value);
  static Bytes draw(Rng& rng, const Rule& rule, const Bytes& normal);
  static double magnitude(const Bytes& value) { return static_cast<double>(value.value); }
  static std::string bound(double bytes) { return print(Bytes{static_cast<std::int64_t>(bytes)}); }
};

template <>
struct TextForm<Address> {
  static constexpr std::string_view kName = "address", kNames = "addresses";
  static constexpr std::string_view kPattern =
      R"(^(\[[0-9a-fA-F:.]+\]|[0-9.]+|localhost):[0-9]{1,5}$)";
  static Result<Address> parse(std::string_view text) { return parse_address(text); }
  static std::string print(const Address& value) { return to_string(value); }
  static Address draw(Rng& rng, const Rule& rule, const Address& normal);
};

template <>
struct TextForm<Url> {
  static constexpr std::string_view kName = "URL", kNames = "URLs";
  static constexpr std::string_view kPattern = R"(^[hH][tT][tT][pP][sS]?://[^/?#@\\%\s]+/?$)";
  static Result<Url> parse(std::string_view text) { return parse_url(text); }
  static std::string print(const Url& value) { return to_string(value); }
  static Url draw(Rng& rng, const Rule& rule, const Url& normal);
};

template <>
struct TextForm<Cidr> {
  static constexpr std::string_view kName = "network", kNames = "networks";
  static constexpr std::string_view kPattern = R"(^[0-9a-fA-F:.]+(/[0-9]{1,3})?$)";
  static Result<Cidr> parse(std::string_view text) { return parse_cidr(text); }
  static std::string print(const Cidr& value) { return to_string(value); }
  static Cidr draw(Rng& rng, const Rule& rule, const Cidr& normal);
};

template <>
struct TextForm<Origin> {
  static constexpr std::string_view kName = "origin", kNames = "origins";
  static constexpr std::string_view kPattern = R"(^(\*|https?://[^/?#@\\%\s]+)$)";
  static Result<Origin> parse(std::string_view text) { return parse_origin(text); }
  static std::string print(const Origin& value) { return value.text; }
  static Origin draw(Rng& rng, const Rule& rule, const Origin& normal);
};

template <typename T>
concept HasTextForm = requires { TextForm<T>::kName; };

// Types whose range counts: seconds, bytes.
template <typename T>
concept HasMagnitude = HasTextForm<T> && requires(const T& v) { TextForm<T>::magnitude(v); };

template <typename E>
std::vector<std::string_view> enum_names() {
  std::vector<std::string_view> names;
  for (const auto& [value, text] : EnumNames<E>::values) names.push_back(text);
  return names;
}

template <typename E>
std::string_view enum_name(E wanted) {
  for (const auto& [value, text] : EnumNames<E>::values) {
    if (value == wanted) return text;
  }
  return "?";
}

// The shortest text that reads back as the same number.
std::string print_number(double value);

template <typename T>
struct IsVector : std::false_type {};
template <typename T>
struct IsVector<std::vector<T>> : std::true_type {};

template <typename T>
struct IsRef : std::false_type {};
template <Kind K>
struct IsRef<Ref<K>> : std::true_type {
  static constexpr Kind kKind = K;
};

template <typename T>
struct IsOptional : std::false_type {};
template <typename T>
struct IsOptional<std::optional<T>> : std::true_type {};

template <typename T>
concept Source = std::is_same_v<T, SecretSource> || std::is_same_v<T, KeySource>;

// A type with a describe() of its own.
struct AnyVisitor {
  template <typename T>
  void operator()(T&, std::string_view, std::string_view, Rule = {}) {}
};
template <typename T>
concept Block = std::is_class_v<T> && requires(AnyVisitor& v, T& t) { describe(v, t); };

}  // namespace signalbox::spec
