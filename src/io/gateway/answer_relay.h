// SPDX-License-Identifier: Apache-2.0
// What becomes of an engine's answer: a sans-IO state machine from body bytes to pieces for the
// client, with the facts that the core and the log want. No sockets, no clock.
// Keeps INV-5: bytes go on in order and unchanged, but for the permitted edits.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/model/event.h"
#include "io/http/sse_scanner.h"
#include "io/json/answer_reader.h"
#include "io/json/answer_skeleton.h"
#include "io/json/chat_assembler.h"
#include "io/json/chunk_reader.h"

namespace signalbox::gateway {

struct RelayPlan {
  model::Api api = model::Api::ChatCompletions;
  int choices = 1;                 // answers that must each come to an end
  bool client_streams = false;
  bool assemble = false;           // we asked for a stream that the client did not
  bool drop_usage = false;         // we asked for usage that the client did not
  std::string model;               // name to show in answers; empty: as the engine wrote it
  std::size_t event_max = 256 << 10;
  std::size_t held_max = 1 << 20;
  std::size_t assembled_max = 32 << 20;  // memory for an answer that is assembled, or for one event
};

class AnswerRelay {
 public:
  enum class Mode : std::uint8_t {
    Hold,      // kept until whole: may still be tried elsewhere
    Stream,    // events go on as they come
    Assemble,  // events become one plain answer
    Pass,      // a plain answer too large to hold goes on as it comes
  };

  // A response head came.
  void begin(const RelayPlan& plan, int status, bool event_stream);

  // Takes body bytes. They must stay valid until the pieces made of them were sent.
  void feed(std::string_view data);

  // The body ended; `whole`: in good order. What is left to send becomes pieces. Decides how the
  // attempt ended.
  model::AttemptResult end(bool whole);

  // Bytes for the client since the last clear_pieces(), in order.
  const std::vector<std::string_view>& pieces() const { return pieces_; }
  std::size_t pieces_size() const { return pieces_size_; }
  void clear_pieces();

  Mode mode() const { return mode_; }
  // The answer's status: its head's, until end() finds an error in the place of an answer, of
  // which nothing was shown; then the one that the error names, or 502.
  int status() const { return status_; }
  // It points elsewhere. A client that followed would carry its prompt past us.
  bool redirects() const { return status_ >= 300 && status_ <= 399; }
  // The held answer: what PassOn delivers in modes Hold and Assemble, or the error event that came
  // instead of a stream's first event.
  std::string_view held() const { return held_; }
  // Nothing of the stream may be shown yet: no event has come.
  bool stream_begun() const { return stream_begun_; }
  bool stream_failed() const { return error_seen_; }
  // The answer cannot be assembled in the room for it; held() says so to the client. The engine is
  // not to blame, and another one would say as much.
  bool overrun() const { return overrun_; }
  // What the client was given ends with a whole event.
  bool between_events() const { return !inside_large_ || !large_shown_; }

  // Nothing can follow but the end of the body.
  bool end_seen() const { return end_seen_; }

  // Signs of an engine at work so far: events with data, or reads of a plain answer. Its HTTP
  // library sends comments whether or not it works.
  std::int64_t signs() const { return signs_; }

  bool content_seen() const { return tokens_ > 0; }
  // Events with content; of a plain answer 1, or an estimate when it tells no usage.
  std::int64_t tokens() const { return tokens_; }
  const model::Usage& usage() const { return usage_; }
  const model::EngineTimings& timings() const { return timings_; }

 private:
  void feed_events(std::string_view data);
  static bool tells_something(const http::SseEvent& event);
  void take_event(const http::SseEvent& event, std::string_view input);
  void take_fragment(const http::SseEvent& part, std::string_view input);
  void take_large();
  json::Chunk read_chunk(const http::SseEvent& event);
  void take_data(const http::SseEvent& event, std::string_view input);
  void take_error_line(std::string_view line, std::string_view input);
  bool all_ended() const;
  bool like_the_last(std::string_view data) const;
  void remember_shape(std::string_view data, const json::Chunk& chunk);
  void forward(std::string_view bytes, std::string_view input);
  void forward_edited(const http::SseEvent& event, const json::Chunk& chunk);
  model::AttemptResult end_stream();
  void take_tail();
  void close_stream();
  model::AttemptResult end_held(bool whole);
  void pass(std::string_view data);
  model::AttemptResult end_passed(bool whole);
  static std::int64_t tokens_of(const json::Answer& answer);
  void rename_held(json::Span model);
  bool good_status() const { return status_ >= 200 && status_ <= 299; }
  model::AttemptResult judge_status() const;
  model::AttemptResult judge_error();
  void add_piece(std::string_view bytes);

  RelayPlan plan_;
  Mode mode_ = Mode::Hold;
  int status_ = 0;
  http::SseScanner scanner_{256 << 10};
  json::ChunkReader reader_{model::Api::ChatCompletions};
  std::optional<json::ChatAssembler> assembler_;
  bool assembler_failed_ = false;
  bool overrun_ = false;
  bool stream_begun_ = false;
  bool error_seen_ = false;
  bool end_seen_ = false;          // the API's own end
  bool done_seen_ = false;         // [DONE]
  bool unread_ = false;            // part of the stream was too long to be read
  // An event too long to be held back: as much of it as may be kept, to be read when it is whole.
  std::string large_;
  bool inside_large_ = false;
  bool large_shown_ = false;       // its bytes went to the client as they came
  bool large_lost_ = false;        // it is too long to be kept, too
  bool large_error_ = false;       // its beginning tells an error
  std::int64_t tokens_ = 0;
  std::int64_t signs_ = 0;
  model::Usage usage_;
  model::EngineTimings timings_;
  std::string held_;
  json::AnswerSkeleton skeleton_{model::Api::ChatCompletions};  // of an answer that passes
  // What stands before and behind the text of a chunk that carried one piece of content and
  // nothing else. The next token's chunk mostly differs in the text alone.
  std::string shape_head_;
  std::string shape_tail_;
  std::vector<std::string_view> pieces_;
  std::size_t pieces_size_ = 0;
  std::deque<std::string> own_;    // bytes of pieces that are not in the input
};

}  // namespace signalbox::gateway
