// SPDX-License-Identifier: Apache-2.0
// Expected failures as values: Error, Result<T>, and the macros that pass errors up.
#pragma once

#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <utility>

namespace signalbox {

// A code exists when some caller reacts to it. http_status() gives each its HTTP status.
enum class Code {
  InvalidArgument,   // 400: the caller's input is wrong; the message says how to mend it
  Unauthenticated,   // 401
  PermissionDenied,  // 403
  NotFound,          // 404
  Timeout,           // 408 when the client was slow, 504 when an engine was
  TooLarge,          // 413
  Unsupported,       // 415
  LimitExceeded,     // 429: a tenant's own cap
  Internal,          // 500
  BadUpstream,       // 502: an engine broke the protocol or could not be reached
  Unavailable,       // 503: nobody can serve this now
};

// Who is at fault: decides blame in metrics and whether a breaker counts it.
enum class Source { Client, Engine, Us };

struct Error {
  Code code = Code::Internal;
  Source source = Source::Us;
  bool retryable = false;  // the same call may succeed elsewhere or later
  std::string message;     // a full sentence for the operator
};

int http_status(const Error& error);
std::string_view name(Code code);

// A value or an Error. Must be looked at.
template <typename T>
class [[nodiscard]] Result : public tl::expected<T, Error> {
 public:
  using tl::expected<T, Error>::expected;
  Result(Error error) : tl::expected<T, Error>(tl::unexpected<Error>(std::move(error))) {}
};

inline Error invalid(std::string message) {
  return Error{Code::InvalidArgument, Source::Client, false, std::move(message)};
}
inline Error internal(std::string message) {
  return Error{Code::Internal, Source::Us, false, std::move(message)};
}

}  // namespace signalbox

#define SIGNALBOX_CONCAT2(a, b) a##b
#define SIGNALBOX_CONCAT(a, b) SIGNALBOX_CONCAT2(a, b)

// TRY_ASSIGN(auto x, f()): x is f's value, or the enclosing function returns f's error.
#define TRY_ASSIGN_IMPL(temporary, declaration, expression) \
  auto temporary = (expression);                            \
  if (!temporary) return std::move(temporary).error();      \
  declaration = std::move(*temporary)
#define TRY_ASSIGN(declaration, ...) \
  TRY_ASSIGN_IMPL(SIGNALBOX_CONCAT(try_result_, __LINE__), declaration, (__VA_ARGS__))

// TRY_CHECK(f()): passes f's error up; drops its value.
#define TRY_CHECK(...)                                              \
  do {                                                              \
    if (auto try_result = (__VA_ARGS__); !try_result)               \
      return std::move(try_result).error();                         \
  } while (false)
