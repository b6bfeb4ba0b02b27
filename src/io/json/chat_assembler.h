// SPDX-License-Identifier: Apache-2.0
// ChatAssembler: makes the plain answer that the client asked for out of the stream that the engine
// was asked for. Chat and text completions.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"
#include "core/model/event.h"

namespace signalbox::json {

class ChatAssembler {
 public:
  // Refuses to hold more than `bytes_max` of payload.
  ChatAssembler(model::Api api, std::size_t bytes_max);
  ~ChatAssembler();
  ChatAssembler(ChatAssembler&&) noexcept;
  ChatAssembler& operator=(ChatAssembler&&) noexcept;

  // Takes one data payload; `[DONE]` is ignored. Fails when it is not a chunk object or reports an
  // error, or beyond bytes_max; the assembler is used no more then.
  Result<void> add(std::string_view payload);
  // The answer as one JSON object. Whether every choice ended is what ChunkReader knows.
  std::string finish() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace signalbox::json
