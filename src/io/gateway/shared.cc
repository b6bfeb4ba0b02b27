// SPDX-License-Identifier: Apache-2.0
// Request ids to text and back.
#include "io/gateway/shared.h"

#include <charconv>
#include <cstdio>

namespace signalbox::gateway {

std::string RequestNames::name(model::RequestId id) const {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text = "req-00000000-0000000000000000";
  for (std::size_t i = 0; i < 8; ++i) text[11 - i] = kDigits[(origin_ >> (4 * i)) & 15];
  for (std::size_t i = 0; i < 16; ++i) text[28 - i] = kDigits[(id.value() >> (4 * i)) & 15];
  return text;
}

void RequestNames::remember(const std::string& name, model::RequestId id) {
  const std::lock_guard lock(mutex_);
  given_.insert_or_assign(name, id);
  name_of_.insert_or_assign(id, name);
  order_.push_back(id);
  if (order_.size() <= kRememberedMax) return;
  const auto oldest = name_of_.find(order_.front());
  order_.pop_front();
  const auto found = given_.find(oldest->second);
  if (found != given_.end() && found->second == oldest->first) given_.erase(found);
  name_of_.erase(oldest);
}

std::string RequestNames::known_as(model::RequestId id) const {
  {
    const std::lock_guard lock(mutex_);
    if (const auto found = name_of_.find(id); found != name_of_.end()) return found->second;
  }
  return name(id);
}

std::optional<model::RequestId> RequestNames::find(std::string_view name) const {
  // A name that another process gave, or this one before it restarted, may have been brought to us.
  if (name.size() == 29 && name.substr(0, 13) == this->name({}).substr(0, 13)) {
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(name.data() + 13, name.data() + 29, value, 16);
    if (error == std::errc() && end == name.data() + 29) return model::RequestId(value);
  }
  const std::lock_guard lock(mutex_);
  const auto found = given_.find(std::string(name));
  if (found == given_.end()) return std::nullopt;
  return found->second;
}

}  // namespace signalbox::gateway
