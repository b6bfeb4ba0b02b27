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
  if (given_.insert_or_assign(name, id).second) order_.push_back(name);
  if (order_.size() > kRememberedMax) {
    given_.erase(order_.front());
    order_.pop_front();
  }
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
