// SPDX-License-Identifier: Apache-2.0
// Which fields end at this connection.
#include "io/http/head.h"

namespace signalbox::http {
namespace {

// A peer may not make the next hop forget these by naming them in Connection.
bool may_be_nominated(FieldName name) {
  switch (name) {
    case FieldName::Authorization:
    case FieldName::CacheControl:
    case FieldName::ContentEncoding:
    case FieldName::ContentLength:
    case FieldName::ContentType:
    case FieldName::Expect:
    case FieldName::Forwarded:
    case FieldName::Host:
    case FieldName::RetryAfter:
    case FieldName::XApiKey:
    case FieldName::XForwardedFor:
    case FieldName::XForwardedHost:
    case FieldName::XForwardedProto:
    case FieldName::XRequestId:
      return false;
    default:
      return true;
  }
}

}  // namespace

bool is_hop_by_hop(const MessageHead& head, const Field& field) {
  if (is_connection_field(field.id)) return true;
  if (!head.nominates_fields || !may_be_nominated(field.id)) return false;
  bool nominated = false;
  for (const Field& other : head.fields) {
    if (other.id != FieldName::Connection) continue;
    for_each_element(other.value, [&](std::string_view option) {
      nominated = nominated || equals_ignoring_case(option, field.name);
    });
  }
  return nominated;
}

}  // namespace signalbox::http
