// SPDX-License-Identifier: Apache-2.0
// Fuzzes the reading of requests, bodies included. Laws: splits change nothing, tight limits change
// nothing but refusals, and a head that is written again from its parts reads the same.
#include "io/http/fuzz_support.h"
#include "io/http/transcript.h"
#include "io/http/writer.h"

namespace {

using namespace signalbox::http;

void write_again(std::string_view input) {
  RequestParser parser{Limits{}};
  if (parser.parse(input) != Progress::Complete) return;
  const RequestHead& head = parser.head();
  if (head.minor_version == 0) return;  // the writer speaks HTTP/1.1
  std::string copy;
  if (!append_request_line(copy, head.method_text(), head.target())) std::abort();
  for (const Field& field : head.fields) {
    if (!append_field(copy, field.name, field.value)) std::abort();
  }
  append_end_of_head(copy);
  RequestParser again{Limits{}};
  if (again.parse(copy) != Progress::Complete) std::abort();
  fuzz::must_equal("a head written again reads the same", transcript::describe_head(head),
                   transcript::describe_head(again.head()));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  if (size > fuzz::kInputMax) return 0;
  Limits tight;
  tight.head_bytes_max = {256};
  tight.line_bytes_max = {64};
  tight.fields_max = 4;
  tight.body_bytes_max = {20};
  tight.chunk_extension_bytes_max = {16};
  tight.trailer_bytes_max = {16};
  for (const Limits& limits : {Limits{}, tight}) {
    const std::string whole = transcript::requests(input, {}, limits);
    fuzz::must_equal("splits change nothing", whole,
                     transcript::requests(input, fuzz::split_of(input, 1), limits));
    if (size > 160) continue;
    fuzz::must_equal("single bytes change nothing", whole,
                     transcript::requests(input, {1}, limits));
  }
  write_again(input);
  return 0;
}
