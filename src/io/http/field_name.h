// SPDX-License-Identifier: Apache-2.0
// The field names that the gateway knows, as small numbers, so that finding one is an array access.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace signalbox::http {

enum class FieldName : std::uint8_t {
  Other,  // any name that is not listed here
  Accept,
  AcceptEncoding,
  AccessControlRequestHeaders,
  AccessControlRequestMethod,
  Authorization,
  CacheControl,
  Connection,
  ContentEncoding,
  ContentLength,
  ContentType,
  Cookie,
  Date,
  Expect,
  Forwarded,
  Host,
  IfNoneMatch,
  KeepAlive,
  Location,
  Origin,
  ProxyAuthenticate,
  ProxyAuthorization,
  ProxyConnection,
  RetryAfter,
  SecFetchSite,
  Server,
  Te,
  Traceparent,
  Tracestate,
  Trailer,
  TransferEncoding,
  Upgrade,
  UserAgent,
  Via,
  XApiKey,
  XForwardedFor,
  XForwardedHost,
  XForwardedProto,
  XRequestId,
  kCount,
};

inline constexpr std::size_t kFieldNames = static_cast<std::size_t>(FieldName::kCount);

// Case is ignored. Other when the name is not listed. `name` holds no CR.
FieldName field_name(std::string_view name);

// Lower case, as HTTP/2 and most servers write it; empty for Other.
std::string_view text(FieldName name);

// Fields that concern one connection only, whatever its Connection field says.
bool is_connection_field(FieldName name);

}  // namespace signalbox::http
