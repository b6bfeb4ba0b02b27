// SPDX-License-Identifier: Apache-2.0
// Fuzzes what reads engines' answers: ChunkReader, read_answer(), AnswerSkeleton and ChatAssembler.
// Payloads are the lines of the input; the first byte picks the API.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "io/json/answer_reader.h"
#include "io/json/answer_skeleton.h"
#include "io/json/chat_assembler.h"
#include "io/json/chunk_reader.h"
#include "io/json/edits.h"

namespace signalbox::json {
namespace {

void check_chunk(model::Api api, const std::string& payload, ChunkReader& reader) {
  const Chunk chunk = reader.read(payload);
  if (chunk.model) CHECK(chunk.model.of(payload).starts_with('"'));
  if (chunk.error_value) CHECK(chunk.error_value.end <= payload.size());
  if (!chunk.null_usage) return;
  Edits edits(payload);
  edits.replace(chunk.null_usage, "");
  std::string cut;
  edits.append_to(cut);
  CHECK(!ChunkReader(api).read(cut).malformed);
}

// A valid answer says the same whether it is held or passes.
void check_passing(model::Api api, std::string_view text) {
  const Answer whole = read_answer(api, text);
  AnswerSkeleton skeleton(api);
  while (!text.empty()) text.remove_prefix(skeleton.feed(text.substr(0, 7)));
  const Answer passed = skeleton.answer();
  if (!whole.valid) return;
  CHECK(passed.valid && passed.error == whole.error);
  CHECK(passed.choices == whole.choices && passed.finished == whole.finished);
  CHECK(passed.usage.prompt_tokens == whole.usage.prompt_tokens);
  CHECK(passed.usage.completion_tokens == whole.usage.completion_tokens);
  CHECK(passed.timings.prefill == whole.timings.prefill);
}

}  // namespace
}  // namespace signalbox::json

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace signalbox;
  if (size == 0) return 0;
  const auto api = static_cast<model::Api>(data[0] % 6);
  const std::string text(reinterpret_cast<const char*>(data) + 1, size - 1);
  json::check_passing(api, text);
  json::ChunkReader reader(api);
  json::ChatAssembler assembler(api, 1 << 20);
  bool assembling = true;
  std::size_t from = 0;
  while (from <= text.size()) {
    const std::size_t to = std::min(text.find('\n', from), text.size());
    const std::string payload = text.substr(from, to - from);
    json::check_chunk(api, payload, reader);
    assembling = assembling && assembler.add(payload).has_value();
    from = to + 1;
  }
  CHECK(reader.finished() >= 0);
  if (assembling) CHECK(json::read_answer(api, assembler.finish()).valid);
  return 0;
}
