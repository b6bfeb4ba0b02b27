// SPDX-License-Identifier: Apache-2.0
// Requests as native values, and refusals as both engines know them. Bodies become these in the
// first step; nothing behind it sees JSON.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tl/expected.hpp>

#include "emulator/fault.h"
#include "emulator/options.h"
#include "emulator/text.h"

namespace signalbox::emulator {

enum class Api : std::uint8_t { Chat, Completions, Messages, Responses };

// Why a request is not served. How it looks on the wire is the dialect's and the API's affair.
struct Refusal {
  int status = 400;
  std::string type;
  std::string message;
  std::string param;                // vLLM; empty: null
  std::int64_t prompt_tokens = -1;  // llama.cpp, for prompts that are too long
};

struct GenerateRequest {
  Api api = Api::Chat;
  std::string model;                 // empty: not named
  std::vector<std::string> prompts;  // rendered, at least one
  std::string continued;             // the partial answer that the last message holds
  bool echo = false;                 // the answer repeats what it continues
  bool stream = false;
  bool include_usage = false;
  bool continuous_usage = false;     // vLLM: usage in every chunk
  bool return_token_ids = false;     // vLLM
  bool timings_per_token = false;    // llama.cpp
  int n = 1;
  std::optional<std::int64_t> max_tokens;
  std::int64_t min_tokens = 0;
  bool ignore_eos = false;
  std::vector<std::string> stops;
  std::string cache_salt;
  std::string request_id;            // from the body
};

struct TokenizeRequest {
  std::string text;
  bool pieces = false;  // llama.cpp: with_pieces
  bool chat = false;    // from messages: no token strings
};

template <typename T>
using Read = tl::expected<T, Refusal>;

// request_json.cc
Read<GenerateRequest> read_generate(Api api, Dialect dialect, std::string_view body);
Read<TokenizeRequest> read_tokenize(Dialect dialect, std::string_view body);
Read<std::string> read_detokenize(std::string_view body);           // ids back to text
Read<std::vector<std::string>> read_embeddings(std::string_view body, std::string& model);
// A body of any API, or {"text": rendered, "max_tokens": n}. `api` is guessed when absent.
Read<GenerateRequest> read_expect(std::optional<Api> api, Dialect dialect, std::string_view body);
Read<FaultCommand> read_fault(std::string_view body);

}  // namespace signalbox::emulator
