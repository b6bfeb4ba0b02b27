// SPDX-License-Identifier: Apache-2.0
// The one table from error codes to HTTP statuses and names.
#include "base/result.h"

#include "base/check.h"

namespace signalbox {

int http_status(const Error& error) {
  switch (error.code) {
    case Code::InvalidArgument: return 400;
    case Code::Unauthenticated: return 401;
    case Code::PermissionDenied: return 403;
    case Code::NotFound: return 404;
    case Code::Timeout: return error.source == Source::Client ? 408 : 504;
    case Code::TooLarge: return 413;
    case Code::Unsupported: return 415;
    case Code::LimitExceeded: return 429;
    case Code::Internal: return 500;
    case Code::BadUpstream: return 502;
    case Code::Unavailable: return 503;
  }
  CHECK(false);
}

std::string_view name(Code code) {
  switch (code) {
    case Code::InvalidArgument: return "invalid_argument";
    case Code::Unauthenticated: return "unauthenticated";
    case Code::PermissionDenied: return "permission_denied";
    case Code::NotFound: return "not_found";
    case Code::Timeout: return "timeout";
    case Code::TooLarge: return "too_large";
    case Code::Unsupported: return "unsupported";
    case Code::LimitExceeded: return "limit_exceeded";
    case Code::Internal: return "internal";
    case Code::BadUpstream: return "bad_upstream";
    case Code::Unavailable: return "unavailable";
  }
  CHECK(false);
}

}  // namespace signalbox
