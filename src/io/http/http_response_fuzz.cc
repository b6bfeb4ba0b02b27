// SPDX-License-Identifier: Apache-2.0
// Fuzzes the reading of responses, bodies included, as answers to HEAD and to other requests.
// Laws: splits change nothing; every refusal is a 502.
#include "io/http/fuzz_support.h"
#include "io/http/transcript.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace signalbox::http;
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  if (size > fuzz::kInputMax) return 0;
  Limits tight;
  tight.head_bytes_max = {256};
  tight.line_bytes_max = {64};
  tight.fields_max = 4;
  tight.chunk_extension_bytes_max = {16};
  tight.trailer_bytes_max = {16};
  tight.interim_responses_max = 1;
  for (const Limits& limits : {Limits{}, tight}) {
    for (const AnswerTo request : {AnswerTo::Other, AnswerTo::Head}) {
      const std::string whole = transcript::responses(input, {}, limits, request);
      fuzz::must_equal("splits change nothing", whole,
                       transcript::responses(input, fuzz::split_of(input, 1), limits, request));
      if (size > 160) continue;
      fuzz::must_equal("single bytes change nothing", whole,
                       transcript::responses(input, {1}, limits, request));
    }
  }
  return 0;
}
