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
  // Holds no more than about `bytes_max` of the answer: what it keeps counts, not what came.
  ChatAssembler(model::Api api, std::size_t bytes_max);
  ~ChatAssembler();
  ChatAssembler(ChatAssembler&&) noexcept;
  ChatAssembler& operator=(ChatAssembler&&) noexcept;

  // Takes one data payload; `[DONE]` is ignored. Fails when it is not a chunk object or reports an
  // error, when an object of the answer gets more than 256 members, or beyond bytes_max; the
  // assembler is used no more then.
  Result<void> add(std::string_view payload);
  // It failed because the answer is larger than bytes_max, which is not the engine's fault.
  bool full() const;
  // The answer as one JSON object, under the name `model` unless that is empty. Whether every
  // choice ended is what ChunkReader knows.
  std::string finish(std::string_view model = {}) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace signalbox::json
