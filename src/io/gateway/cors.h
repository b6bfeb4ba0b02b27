// SPDX-License-Identifier: Apache-2.0
// Calls from browsers: who may, and what we tell them.
#pragma once

#include <string>
#include <string_view>

#include "io/gateway/published.h"
#include "io/http/head.h"

namespace signalbox::gateway {

// Appends Access-Control-* fields for the request's Origin when it may call us; else nothing.
void append_cors(std::string& out, const Published& published, const http::RequestHead& head);

// The whole answer to OPTIONS.
void append_preflight(std::string& out, const Published& published, const http::RequestHead& head,
                      std::string_view request_id);

}  // namespace signalbox::gateway
