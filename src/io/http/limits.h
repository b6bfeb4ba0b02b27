// SPDX-License-Identifier: Apache-2.0
// What one HTTP message may cost before it is refused. Every figure is a setting.
#pragma once

#include "base/describe.h"

namespace signalbox::http {

struct Limits {
  Bytes head_bytes_max{64 * 1024};             // start line, fields and blank line
  int fields_max = 100;                        // fields of one head
  Bytes line_bytes_max{8 * 1024};              // one line of a head, without its CRLF
  Bytes body_bytes_max{8 * 1024 * 1024};       // decoded request body; a route may set its own
  Bytes chunk_extension_bytes_max{16 * 1024};  // extensions of all chunks of one body together
  Bytes trailer_bytes_max{8 * 1024};           // trailer section of one body
  int interim_responses_max = 16;              // 1xx answers before the final one
  Bytes sse_tail_bytes_max{256 * 1024};        // an unfinished event held back for its end
};

template <typename Visitor>
void describe(Visitor& v, Limits& c) {
  v(c.head_bytes_max, "head_bytes_max", "Bytes of a message head; more is answered with 431.",
    Range{256, 16.0 * 1024 * 1024});
  v(c.fields_max, "fields_max", "Fields of a message head; more is answered with 431.",
    Range{1, 10000});
  v(c.line_bytes_max, "line_bytes_max",
    "Bytes of one line of a message head; more is answered with 414 or 431.", Range{128, 65535});
  v(c.body_bytes_max, "body_bytes_max", "Bytes of a request body; more is answered with 413.",
    Range{0, 4e9});
  v(c.chunk_extension_bytes_max, "chunk_extension_bytes_max",
    "Bytes of chunk extensions in one body; they are read and ignored.", Range{0, 1e6});
  v(c.trailer_bytes_max, "trailer_bytes_max",
    "Bytes of the trailer section of one body; it is read and dropped.", Range{0, 1e6});
  v(c.interim_responses_max, "interim_responses_max",
    "Interim (1xx) responses that an engine may send before its answer.", Range{0, 1000});
  v(c.sse_tail_bytes_max, "sse_tail_bytes_max",
    "Bytes of an unfinished server-sent event that are held until its end; a longer event passes "
    "through unread.",
    Range{0, 64.0 * 1024 * 1024});
}

}  // namespace signalbox::http
