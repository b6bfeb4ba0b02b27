// SPDX-License-Identifier: Apache-2.0
// Request ids to text and back.
#include "io/gateway/shared.h"

#include <charconv>
#include <cstdio>

namespace signalbox::gateway {
namespace {

constexpr std::size_t kOrigin = 13;  // characters that tell processes apart
constexpr std::size_t kLength = 29;

}  // namespace

std::string RequestNames::name(model::RequestId id) const {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text = "req-00000000-0000000000000000";
  for (std::size_t i = 0; i < 8; ++i) text[11 - i] = kDigits[(origin_ >> (4 * i)) & 15];
  for (std::size_t i = 0; i < 16; ++i) text[28 - i] = kDigits[(id.value() >> (4 * i)) & 15];
  return text;
}

bool RequestNames::is_ours(std::string_view name) const {
  return name.size() == kLength && name.substr(0, kOrigin) == this->name({}).substr(0, kOrigin);
}

void RequestNames::remember(const std::string& name, model::RequestId id) {
  const std::lock_guard lock(mutex_);
  given_[name].push_back(id);
  name_of_.insert_or_assign(id, name);
  order_.push_back(id);
  if (order_.size() <= kRememberedMax) return;
  // The oldest of all is the oldest of its name.
  const auto oldest = name_of_.find(order_.front());
  order_.pop_front();
  const auto found = given_.find(oldest->second);
  found->second.pop_front();
  if (found->second.empty()) given_.erase(found);
  name_of_.erase(oldest);
}

std::string RequestNames::known_as(model::RequestId id) const {
  {
    const std::lock_guard lock(mutex_);
    if (const auto found = name_of_.find(id); found != name_of_.end()) return found->second;
  }
  return name(id);
}

std::vector<model::RequestId> RequestNames::find(std::string_view name) const {
  if (is_ours(name)) {
    std::uint64_t value = 0;
    const auto [end, error] =
        std::from_chars(name.data() + kOrigin, name.data() + kLength, value, 16);
    if (error == std::errc() && end == name.data() + kLength) return {model::RequestId(value)};
  }
  const std::lock_guard lock(mutex_);
  const auto found = given_.find(std::string(name));
  if (found == given_.end()) return {};
  return {found->second.begin(), found->second.end()};
}

}  // namespace signalbox::gateway
