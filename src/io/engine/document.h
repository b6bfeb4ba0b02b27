// SPDX-License-Identifier: Apache-2.0
// Lenient reading of small JSON documents: a member of the wrong type is a member not told. Keeps
// the JSON library out of the other sources. Pure; any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace signalbox::engine {

// Larger numbers are garbage and count as not told; sums stop here.
inline constexpr std::int64_t kToldMax = std::int64_t{1} << 53;

// Adds a part to a sum; negative parts and sums are not told.
constexpr std::int64_t add_told(std::int64_t sum, std::int64_t part) {
  if (part < 0) return sum;
  return sum < 0 ? part : (sum > kToldMax - part ? kToldMax : sum + part);
}
constexpr int add_told(int sum, int part) {
  constexpr int kMost = 1'000'000'000;
  if (part < 0) return sum;
  return sum < 0 ? part : (sum > kMost - part ? kMost : sum + part);
}

// A value inside a Document, valid while the Document lives. Of a value that is not there, every
// member is not there either.
class Value {
 public:
  explicit Value(const void* node = nullptr) : node_(node) {}

  bool object() const;
  bool array() const;
  std::size_t size() const;                 // of an array; else 0
  Value operator[](std::size_t i) const;    // i < size()
  Value member(const char* key) const;

  // Numbers below zero, not finite or beyond kToldMax are not told: -1.
  double number(const char* key) const;
  std::int64_t whole(const char* key) const;
  int small(const char* key) const;         // 10^9 at most
  bool flag(const char* key) const;         // false when not told
  // Empty when not told or longer than `longest`.
  std::string text(const char* key, std::size_t longest = 512) const;
  std::string text(std::size_t longest = 512) const;  // of the value itself

 private:
  const void* node_;
};

class Document {
 public:
  // Not JSON: root() is not there.
  explicit Document(std::string_view body);
  ~Document();
  Document(const Document&) = delete;
  Document& operator=(const Document&) = delete;

  Value root() const;

 private:
  struct Tree;
  std::unique_ptr<Tree> tree_;
};

}  // namespace signalbox::engine
