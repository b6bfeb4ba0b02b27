// SPDX-License-Identifier: Apache-2.0
// Formatting of heads and chunks.
#include "io/http/writer.h"

#include <algorithm>
#include <charconv>

#include "base/check.h"
#include "io/http/scan.h"

namespace signalbox::http {
namespace {

// Grows by doubling at least: resize alone may grow to the exact size.
char* extend(std::string& out, std::size_t size) {
  const std::size_t old = out.size();
  if (out.capacity() < old + size) out.reserve(std::max(old + size, 2 * out.capacity()));
  out.resize(old + size);
  return out.data() + old;
}

char* put(char* to, std::string_view text) {
  return std::copy(text.begin(), text.end(), to);
}

void append_line(std::string& out, std::string_view a, std::string_view between,
                 std::string_view b, std::string_view end) {
  char* to = extend(out, a.size() + between.size() + b.size() + end.size());
  put(put(put(put(to, a), between), b), end);
}

}  // namespace

std::string_view reason_phrase(int status) {
  switch (status) {
    case 100: return "Continue";
    case 101: return "Switching Protocols";
    case 200: return "OK";
    case 201: return "Created";
    case 202: return "Accepted";
    case 204: return "No Content";
    case 206: return "Partial Content";
    case 301: return "Moved Permanently";
    case 302: return "Found";
    case 303: return "See Other";
    case 304: return "Not Modified";
    case 307: return "Temporary Redirect";
    case 308: return "Permanent Redirect";
    case 400: return "Bad Request";
    case 401: return "Unauthorized";
    case 402: return "Payment Required";
    case 403: return "Forbidden";
    case 404: return "Not Found";
    case 405: return "Method Not Allowed";
    case 406: return "Not Acceptable";
    case 408: return "Request Timeout";
    case 409: return "Conflict";
    case 410: return "Gone";
    case 411: return "Length Required";
    case 413: return "Content Too Large";
    case 414: return "URI Too Long";
    case 415: return "Unsupported Media Type";
    case 417: return "Expectation Failed";
    case 421: return "Misdirected Request";
    case 422: return "Unprocessable Content";
    case 424: return "Failed Dependency";
    case 426: return "Upgrade Required";
    case 429: return "Too Many Requests";
    case 431: return "Request Header Fields Too Large";
    case 499: return "Client Closed Request";
    case 500: return "Internal Server Error";
    case 501: return "Not Implemented";
    case 502: return "Bad Gateway";
    case 503: return "Service Unavailable";
    case 504: return "Gateway Timeout";
    case 505: return "HTTP Version Not Supported";
    case 529: return "Overloaded";
    default: return "";
  }
}

void append_status_line(std::string& out, int status) {
  CHECK(status >= 100 && status <= 999);
  char line[13] = {'H', 'T', 'T', 'P', '/', '1', '.', '1', ' ', 0, 0, 0, ' '};
  line[9] = static_cast<char>('0' + status / 100);
  line[10] = static_cast<char>('0' + status / 10 % 10);
  line[11] = static_cast<char>('0' + status % 10);
  append_line(out, {line, sizeof line}, reason_phrase(status), "\r\n", {});
}

bool append_request_line(std::string& out, std::string_view method, std::string_view target) {
  if (method.empty() || !all(kUpper, method) || target.empty() || !all(kTarget, target)) {
    return false;
  }
  append_line(out, method, " ", target, " HTTP/1.1\r\n");
  return true;
}

bool append_field(std::string& out, std::string_view name, std::string_view value) {
  const char* const end = value.data() + value.size();
  if (name.empty() || !all(kToken, name) || find_control(value.data(), end) != end) return false;
  append_line(out, name, ": ", value, "\r\n");
  return true;
}

void append_field(std::string& out, std::string_view name, std::uint64_t value) {
  char digits[20];
  const char* const end = std::to_chars(digits, digits + sizeof digits, value).ptr;
  append_field(out, name, std::string_view(digits, static_cast<std::size_t>(end - digits)));
}

void append_field(std::string& out, const Field& field) {
  append_line(out, field.name, ": ", field.value, "\r\n");
}

ChunkHeader::ChunkHeader(std::uint64_t size) : begin_(16) {
  CHECK(size > 0);
  text_[16] = '\r';
  text_[17] = '\n';
  for (; size != 0; size >>= 4) text_[--begin_] = "0123456789abcdef"[size & 15];
}

void append_chunk(std::string& out, std::string_view data) {
  if (data.empty()) return;
  const ChunkHeader header(data.size());
  append_line(out, header.text(), data, kChunkEnd, {});
}

}  // namespace signalbox::http
