// SPDX-License-Identifier: Apache-2.0
// The fields of one message head, in order. Holds offsets into the buffer that the head was read
// from, never copies; that buffer must live, unmoved or rebase()d, as long as views are taken.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "io/http/field_name.h"

namespace signalbox::http {

struct Field {
  std::string_view name;   // as sent; a token
  std::string_view value;  // without blanks around it; no control but tab
  FieldName id = FieldName::Other;
};

class Fields {
 public:
  class Iterator {
   public:
    using value_type = Field;
    using difference_type = std::ptrdiff_t;
    Iterator(const Fields* fields, std::size_t index) : fields_(fields), index_(index) {}
    Field operator*() const { return (*fields_)[index_]; }
    Iterator& operator++() {
      ++index_;
      return *this;
    }
    bool operator==(const Iterator& other) const { return index_ == other.index_; }

   private:
    const Fields* fields_;
    std::size_t index_;
  };

  std::size_t size() const { return slots_.size(); }
  bool empty() const { return slots_.empty(); }
  // index < size().
  Field operator[](std::size_t index) const {
    const Slot& s = slots_[index];
    return {{base_ + s.name, s.name_size}, {base_ + s.value, s.value_size}, s.id};
  }
  Iterator begin() const { return {this, 0}; }
  Iterator end() const { return {this, slots_.size()}; }

  // The value of the first field of that name; nullopt when there is none. Constant time for a
  // FieldName other than Other and for any listed name; else one pass over the lengths.
  std::optional<std::string_view> find(FieldName name) const;
  std::optional<std::string_view> find(std::string_view name) const;

  // For the parser: views are taken from `base` + offset from now on.
  void clear();
  void rebase(const char* base) { base_ = base; }
  const char* base() const { return base_; }
  // Offsets and sizes below 2^32, a name below 2^16 bytes.
  void add(FieldName id, std::size_t name, std::size_t name_size, std::size_t value,
           std::size_t value_size);

 private:
  struct Slot {
    std::uint32_t name;
    std::uint32_t value;
    std::uint32_t value_size;
    std::uint16_t name_size;
    FieldName id;
  };

  const char* base_ = nullptr;
  std::vector<Slot> slots_;
  std::array<std::uint16_t, kFieldNames> first_{};  // 1 + index of the first of that name; 0: none
};

}  // namespace signalbox::http
