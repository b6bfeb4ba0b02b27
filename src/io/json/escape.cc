// SPDX-License-Identifier: Apache-2.0
// Escaping, and error bodies. Types and codes follow the vendors' published error tables.
#include "io/json/escape.h"

#include <simdjson.h>

#include <algorithm>

#include "io/json/bytes.h"
#include "io/json/cursor.h"

namespace signalbox::json {
namespace {

void append_escape(std::string& out, char c) {
  constexpr std::string_view kHex = "0123456789abcdef";
  switch (c) {
    case '"': out += "\\\""; return;
    case '\\': out += "\\\\"; return;
    case '\n': out += "\\n"; return;
    case '\r': out += "\\r"; return;
    case '\t': out += "\\t"; return;
    default:
      out += "\\u00";
      out += kHex[static_cast<unsigned char>(c) >> 4];
      out += kHex[static_cast<unsigned char>(c) & 15];
  }
}

// Length of the valid UTF-8 sequence at the beginning of text; 0: there is none. RFC 3629, section
// 4: the second byte excludes long forms, surrogates and what lies beyond U+10FFFF.
std::size_t sequence(std::string_view text) {
  const auto byte = [&](std::size_t at) { return static_cast<unsigned char>(text[at]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return 1;
  const std::size_t size = lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  if (lead < 0xC2 || lead > 0xF4 || text.size() < size) return 0;
  const unsigned char low = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
  const unsigned char high = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
  if (byte(1) < low || byte(1) > high) return 0;
  for (std::size_t at = 2; at < size; ++at) {
    if ((byte(at) & 0xC0) != 0x80) return 0;
  }
  return size;
}

// A block at the beginning of text, without the beginning of a sequence that its border cuts.
std::string_view block_of(std::string_view text) {
  constexpr std::size_t kBlock = 256;
  if (text.size() <= kBlock) return text;
  std::size_t size = kBlock;
  while (size > kBlock - 3 && (static_cast<unsigned char>(text[size]) & 0xC0) == 0x80) --size;
  return text.substr(0, size);
}

// Valid blocks are copied whole; only one with a fault is read character by character.
std::string repaired(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const std::string_view block = block_of(text);
    if (simdjson::validate_utf8(block.data(), block.size())) {
      out += block;
      text.remove_prefix(block.size());
      continue;
    }
    const char* const end = block.data() + block.size();
    while (text.data() < end) {
      const std::size_t size = sequence(text);
      out += size != 0 ? text.substr(0, size) : "\xEF\xBF\xBD";
      text.remove_prefix(std::max<std::size_t>(size, 1));
    }
  }
  return out;
}

void append_escaped(std::string& out, std::string_view text) {
  const char* p = text.data();
  const char* const end = p + text.size();
  while (p != end) {
    const char* const stop = find_special(p, end);
    out.append(p, stop);
    if (stop == end) return;
    append_escape(out, *stop);
    p = stop + 1;
  }
}

void append(std::string& out, std::string_view text) {
  if (simdjson::validate_utf8(text.data(), text.size())) {
    append_escaped(out, text);
  } else {
    append_escaped(out, repaired(text));
  }
}

std::string_view openai_type(int status) {
  switch (status) {
    case 401: return "authentication_error";
    case 403: return "permission_error";
    case 429: return "rate_limit_error";
    default: return status < 500 ? "invalid_request_error" : "server_error";
  }
}

std::string_view openai_code(int status) {
  switch (status) {
    case 401: return "invalid_api_key";
    case 404: return "model_not_found";
    case 429: return "rate_limit_exceeded";
    default: return {};
  }
}

std::string_view anthropic_type(int status) {
  switch (status) {
    case 401: return "authentication_error";
    case 403: return "permission_error";
    case 404: return "not_found_error";
    case 413: return "request_too_large";
    case 429: return "rate_limit_error";
    case 503: return "overloaded_error";
    case 504: return "timeout_error";
    default: return status < 500 ? "invalid_request_error" : "api_error";
  }
}

}  // namespace

std::string escape(std::string_view text) {
  std::string out;
  append(out, text);
  return out;
}

// JSON has backslashes inside strings only.
std::string mended(std::string json) {
  if (!simdjson::validate_utf8(json.data(), json.size())) json = repaired(json);
  const auto surrogate = [&](std::size_t at) {
    return at + 6 <= json.size() && json[at] == '\\' && json[at + 1] == 'u'
               ? hex4(json.data() + at + 2) : -1;
  };
  for (std::size_t at = json.find('\\'); at != std::string::npos; at = json.find('\\', at)) {
    const int code = surrogate(at);
    if (code < 0xD800 || code > 0xDFFF) {
      at += 2;
      continue;
    }
    const int second = code < 0xDC00 ? surrogate(at + 6) : -1;
    const bool paired = second >= 0xDC00 && second <= 0xDFFF;
    if (!paired) json.replace(at, 6, "\\ufffd");
    at += paired ? 12 : 6;
  }
  return json;
}

std::string quote(std::string_view text) {
  std::string out;
  out.reserve(text.size() + 2);
  out += '"';
  append(out, text);
  out += '"';
  return out;
}

std::string openai_error(std::string_view message, std::string_view type, std::string_view param,
                         std::string_view code) {
  const auto or_null = [](std::string_view text) {
    return text.empty() ? std::string("null") : quote(text);
  };
  return R"({"error":{"message":)" + quote(message) + R"(,"type":)" + quote(type) +
         R"(,"param":)" + or_null(param) + R"(,"code":)" + or_null(code) + "}}";
}

std::string anthropic_error(std::string_view message, std::string_view type) {
  return R"({"type":"error","error":{"type":)" + quote(type) + R"(,"message":)" + quote(message) +
         "}}";
}

std::string error_body(model::Api api, int status, std::string_view message,
                       std::string_view param, std::string_view code) {
  if (api == model::Api::Messages || api == model::Api::CountTokens) {
    return anthropic_error(message, anthropic_type(status));
  }
  return openai_error(message, openai_type(status), param,
                      code.empty() ? openai_code(status) : code);
}

}  // namespace signalbox::json
