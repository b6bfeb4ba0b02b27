// SPDX-License-Identifier: Apache-2.0
// Lookup and storage of the fields of a head.
#include "io/http/fields.h"

#include <algorithm>

#include "io/http/chars.h"

namespace signalbox::http {

std::optional<std::string_view> Fields::find(FieldName name) const {
  const std::size_t first = first_[static_cast<std::size_t>(name)];
  if (first == 0) return std::nullopt;
  return (*this)[first - 1].value;
}

std::optional<std::string_view> Fields::find(std::string_view name) const {
  if (const FieldName id = field_name(name); id != FieldName::Other) return find(id);
  for (const Slot& s : slots_) {
    if (s.name_size != name.size() || s.id != FieldName::Other) continue;
    if (!equals_ignoring_case({base_ + s.name, s.name_size}, name)) continue;
    return std::string_view(base_ + s.value, s.value_size);
  }
  return std::nullopt;
}

void Fields::clear() {
  base_ = nullptr;
  slots_.clear();
  first_.fill(0);
}

void Fields::add(FieldName id, std::size_t name, std::size_t name_size, std::size_t value,
                 std::size_t value_size) {
  if (slots_.size() == slots_.capacity()) slots_.reserve(std::max<std::size_t>(16, 2 * size()));
  slots_.push_back({static_cast<std::uint32_t>(name), static_cast<std::uint32_t>(value),
                    static_cast<std::uint32_t>(value_size), static_cast<std::uint16_t>(name_size),
                    id});
  auto& first = first_[static_cast<std::size_t>(id)];
  if (first == 0) first = static_cast<std::uint16_t>(slots_.size());
}

}  // namespace signalbox::http
