// SPDX-License-Identifier: Apache-2.0
// ScanLimits: what a request body may ask for at most. One request must not be able to kill an
// engine; whatever exceeds a limit is refused with 400 and the name of the key.
#pragma once

#include <cstdint>

#include "base/describe.h"

namespace signalbox::json {

struct ScanLimits {
  int depth_max = 64;
  int schema_depth_max = 32;
  int messages_max = 4096;
  int inputs_max = 2048;
  int tools_max = 512;
  int n_max = 128;
  int best_of_max = 20;
  int logprobs_max = 20;
  int top_logprobs_max = 20;
  int stop_max = 16;
  int stop_bytes_max = 1024;
  int logit_bias_max = 1024;
  int metadata_max = 64;
  int name_bytes_max = 1024;
  std::int64_t output_tokens_max = 10'000'000;
};

template <typename Visitor>
void describe(Visitor& v, ScanLimits& c) {
  v(c.depth_max, "json_depth_max", "Nesting of arrays and objects in a body.", Range{2, 512});
  v(c.schema_depth_max, "schema_depth_max", "Nesting of the schema of a tool or an answer.",
    Range{1, 1024});
  v(c.messages_max, "messages_max", "Messages or input items of one request.", Range{1, 1e6});
  v(c.inputs_max, "inputs_max", "Prompts or embedding inputs of one request.", Range{1, 1e6});
  v(c.tools_max, "tools_max", "Tools declared by one request.", Range{0, 1e6});
  v(c.n_max, "n_max", "Choices asked for at once (`n`).", Range{1, 1024});
  v(c.best_of_max, "best_of_max", "Candidates per choice (`best_of`).", Range{0, 1024});
  v(c.logprobs_max, "logprobs_max", "Alternatives per token of a completion (`logprobs`).",
    Range{0, 1e6});
  v(c.top_logprobs_max, "top_logprobs_max", "Alternatives per token.", Range{0, 1e6});
  v(c.stop_max, "stop_max", "Stop strings of one request.", Range{0, 1e4});
  v(c.stop_bytes_max, "stop_bytes_max", "Bytes of one stop string as written.", Range{1, 1e6});
  v(c.logit_bias_max, "logit_bias_max", "Entries of `logit_bias`.", Range{0, 1e6});
  v(c.metadata_max, "metadata_max", "Entries of `metadata`.", Range{0, 1e4});
  v(c.name_bytes_max, "name_bytes_max",
    "Bytes, as written, of the model name, user, salt and cache key.", Range{1, 65536});
  v(c.output_tokens_max, "output_tokens_max", "Tokens asked for at most (`max_tokens`).",
    Range{1, 1e12});
}

}  // namespace signalbox::json
