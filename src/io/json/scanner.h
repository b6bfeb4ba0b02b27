// SPDX-License-Identifier: Apache-2.0
// Scanner: the pass behind scan(), in three sources: request_scan.cc walks the top level,
// scan_fields.cc reads typed values, scan_prompt.cc reads what makes the prompt.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "io/json/block_encoder.h"
#include "io/json/cursor.h"
#include "io/json/prompt_walk.h"
#include "io/json/request_scan.h"

namespace signalbox::json {

class Scanner {
 public:
  Scanner(std::string_view body, model::Api api, const ScanLimits& limits, RequestScan& out)
      : body_(body), api_(api), limits_(limits), out_(out), c_(body, limits.depth_max),
        walk_(c_, encoder_) {}

  Result<void> run();

 private:
  // Functions that read return false after a fault; error() then tells it.
  bool top();
  bool member(Key key);
  bool check_required();
  Error error() const;
  bool refuse(Key key, std::string_view rule);
  bool refuse_count(Key key, std::int64_t count, std::int64_t most);

  // Typed values; null counts as absent everywhere but in `model`.
  bool null();
  bool flag(Key key, bool& out);
  bool integer(Key key, std::int64_t low, std::int64_t high, std::int64_t& out);
  bool short_string(Key key);
  bool model_name();
  bool output_limit(Key key);
  bool small_integer(Key key, int low, int high, int& out);
  bool logprobs();
  // Reads by `read` a value whose schema stands in a container of this depth.
  template <typename F>
  bool with_schema(Key key, int depth, F&& read);
  bool stop(Key key);
  bool stop_string(Key key);
  bool map(Key key, int most);
  bool metadata();
  bool stream_options();
  bool reference(Key key);

  // The prompt.
  bool template_argument(Key key);
  bool tools(Key key);
  bool messages(Key key);
  bool prompt(Key key);
  bool token_ids(Key key);
  bool token_id();
  bool message(Key key);
  bool message_member(const Token& token);
  bool message_bulk(const Token& token, std::string_view name);
  bool message_in_order(std::uint32_t begin);
  bool encode_small(int small);
  bool encode_at(std::uint32_t key, std::uint32_t value);
  void give_up_order();
  int stage(Key key) const;
  void begin_stage();
  void end_stage(int stage);

  // The message being read: offsets of the key and value of each small member, by rank.
  static constexpr int kSmallKeys = 6;
  struct MessageState {
    std::array<std::uint32_t, kSmallKeys> key{};
    std::array<std::uint32_t, kSmallKeys> value{};
    std::string_view last_bulk;  // the bulk key encoded last
    std::size_t first_block = 0;
    bool has_content = false;
    bool in_order = true;        // content is being encoded while it is read
    bool encoding = false;       // the role, or its absence, is encoded already
  };
  static int small_rank(std::string_view name);

  std::string_view body_;
  model::Api api_;
  const ScanLimits& limits_;
  RequestScan& out_;
  BlockEncoder encoder_;
  Cursor c_;
  PromptWalk walk_;
  MessageState message_;
  std::uint32_t comma_ = 0;
  std::array<std::size_t, 8> stage_sizes_{};  // tool blocks of each stage so far
  std::size_t stage_begin_ = 0;
  std::string refusal_;
};

template <typename F>
bool Scanner::with_schema(Key key, int depth, F&& read) {
  const int deepest = depth + limits_.schema_depth_max;
  if (deepest >= c_.depth_max()) return read();
  const int before = c_.limit_depth(deepest);
  if (!read()) {
    if (c_.what != kTooDeep) return false;
    c_.what = nullptr;
    return refuse(key, "has a schema that is nested more than " +
                           std::to_string(limits_.schema_depth_max) + " deep");
  }
  c_.limit_depth(before);
  return true;
}

}  // namespace signalbox::json
