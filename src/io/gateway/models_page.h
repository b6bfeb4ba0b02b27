// SPDX-License-Identifier: Apache-2.0
// The bodies of /v1/models and /v1/models/{id}, readable by OpenAI and Anthropic clients alike.
#pragma once

#include <string>
#include <string_view>

#include "io/gateway/published.h"

namespace signalbox::gateway {

std::string models_page(const Published& published, model::TenantId tenant);
std::string model_entry(std::string_view name, const NameAccess& access);

}  // namespace signalbox::gateway
