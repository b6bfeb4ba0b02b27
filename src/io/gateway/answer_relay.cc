// SPDX-License-Identifier: Apache-2.0
// Holds, streams, assembles or passes an answer, and judges its end.
#include "io/gateway/answer_relay.h"

#include <functional>
#include <utility>

#include "io/json/answer_keys.h"
#include "io/json/answer_walk.h"
#include "io/json/edits.h"
#include "io/json/escape.h"

namespace signalbox::gateway {
namespace {

using model::AttemptResult;

constexpr std::string_view kErrorLine = "error:";

bool inside(std::string_view part, std::string_view whole) {
  const std::less_equal<const char*> le;
  return le(whole.data(), part.data()) &&
         le(part.data() + part.size(), whole.data() + whole.size());
}

bool is_done(const http::SseEvent& event) {
  return event.kind == http::SseEvent::Kind::Data && event.data.starts_with("[DONE]");
}

// Whether the first data of an event begins in these bytes of it, and is not the end's mark: what
// is padded before either would go on unread.
bool begins_data(std::string_view bytes) {
  constexpr std::string_view kData = "data:";
  for (std::size_t at = 0; at < bytes.size();) {
    std::string_view line = bytes.substr(at);
    if (line.starts_with(kData)) {
      line.remove_prefix(kData.size());
      while (line.starts_with(' ')) line.remove_prefix(1);
      return !line.empty() && !line.starts_with('[');
    }
    const std::size_t end = line.find_first_of("\r\n");
    if (end == line.npos) return false;
    at += end + 1;
  }
  return false;
}

// Whether an event that begins so says that the engine has failed.
bool begins_error(std::string_view bytes) {
  const std::size_t at = bytes.find("data:");
  const std::size_t object = at == bytes.npos ? at : bytes.find_first_not_of(" ", at + 5);
  return bytes.substr(0, at).find("event: error") != bytes.npos ||
         (object != bytes.npos && bytes.substr(object).starts_with("{\"error\""));
}

// Chat and completions name no types of events, but for servers that mark their errors so.
bool is_error(const http::SseEvent& event, model::Api api) {
  return event.type == "error" && json::has_choices(api);
}

}  // namespace

void AnswerRelay::begin(const RelayPlan& plan, int status, bool event_stream) {
  plan_ = plan;
  status_ = status;
  scanner_ = http::SseScanner(plan.event_max);
  reader_ = json::ChunkReader(plan.api);
  assembler_.reset();
  assembler_failed_ = overrun_ = stream_begun_ = error_seen_ = false;
  end_seen_ = done_seen_ = unread_ = inside_large_ = false;
  large_.clear();
  tokens_ = signs_ = 0;
  usage_ = {};
  timings_ = {};
  held_.clear();
  shape_head_.clear();
  clear_pieces();
  mode_ = Mode::Hold;
  if (status < 200 || status > 299 || !event_stream) return;
  if (plan.assemble) {
    mode_ = Mode::Assemble;
    assembler_.emplace(plan.api, plan.assembled_max);
  } else {
    mode_ = Mode::Stream;
  }
}

void AnswerRelay::clear_pieces() {
  pieces_.clear();
  pieces_size_ = 0;
  own_.clear();
}

void AnswerRelay::add_piece(std::string_view bytes) {
  if (bytes.empty()) return;
  pieces_size_ += bytes.size();
  if (!pieces_.empty()) {
    std::string_view& last = pieces_.back();
    if (last.data() + last.size() == bytes.data()) {
      last = {last.data(), last.size() + bytes.size()};
      return;
    }
  }
  pieces_.push_back(bytes);
}

void AnswerRelay::feed(std::string_view data) {
  switch (mode_) {
    case Mode::Stream:
    case Mode::Assemble: return feed_events(data);
    case Mode::Pass: return pass(data);
    case Mode::Hold:
      ++signs_;
      if (held_.size() + data.size() <= plan_.held_max) {
        held_.append(data);
        return;
      }
      mode_ = Mode::Pass;
      skeleton_ = json::AnswerSkeleton(plan_.api);
      own_.push_back(std::move(held_));
      held_.clear();
      pass(own_.back());
      pass(data);
  }
}

// Everything as it is, but for the value of `model`, which may stand anywhere and be cut anywhere.
void AnswerRelay::pass(std::string_view data) {
  ++signs_;
  if (!good_status()) return add_piece(data);
  while (!data.empty()) {
    const bool model = skeleton_.in_model();
    const std::string_view part = data.substr(0, skeleton_.feed(data));
    data.remove_prefix(part.size());
    if (!model || plan_.model.empty()) {
      add_piece(part);
    } else if (!skeleton_.in_model()) {
      own_.push_back(json::quote(plan_.model));
      add_piece(own_.back());
    }
  }
}

void AnswerRelay::feed_events(std::string_view data) {
  if (overrun_) return;
  scanner_.feed(data);
  while (const auto event = scanner_.next()) take_event(*event, data);
}

// Whether an engine at work must have sent it: a thread that does nothing else can ping.
bool AnswerRelay::tells_something(const http::SseEvent& event) {
  return event.kind == http::SseEvent::Kind::Fragment ||
         (event.kind == http::SseEvent::Kind::Data && !event.data.empty() && event.type != "ping");
}

void AnswerRelay::take_event(const http::SseEvent& event, std::string_view input) {
  // Behind its end nothing belongs to an answer, but for the [DONE] that some servers add to all.
  if (overrun_ || done_seen_ || (end_seen_ && !is_done(event))) return;
  if (tells_something(event)) ++signs_;
  switch (event.kind) {
    case http::SseEvent::Kind::Data: return take_data(event, input);
    case http::SseEvent::Kind::Silent:
      if (event.bytes.starts_with(kErrorLine)) return take_error_line(event.bytes, input);
      // A comment before the first event says nothing about an answer; the head is still ours.
      if (mode_ == Mode::Stream && stream_begun_) forward(event.bytes, input);
      return;
    case http::SseEvent::Kind::Fragment: return take_fragment(event, input);
  }
}

// Goes on as it comes, and is read when it is whole. What is behind the last choice's end, or hides
// its data behind something long, is not urgent: it goes on when it has been read.
void AnswerRelay::take_fragment(const http::SseEvent& part, std::string_view input) {
  if (!inside_large_) {
    large_.clear();
    large_lost_ = false;
    large_shown_ = mode_ == Mode::Stream && !all_ended() && (stream_begun_ || !error_seen_) &&
                   begins_data(part.bytes);
    large_error_ = begins_error(part.bytes);
  }
  inside_large_ = !part.ends;
  if (large_.size() + part.bytes.size() <= plan_.assembled_max) large_.append(part.bytes);
  else large_lost_ = true;
  if (large_shown_) {
    stream_begun_ = true;
    forward(part.bytes, input);
  }
  if (part.ends) take_large();
}

void AnswerRelay::take_large() {
  const std::string bytes = std::exchange(large_, {});
  if (large_lost_) {
    unread_ = true;
    overrun_ = !large_shown_ && !all_ended();
    error_seen_ = error_seen_ || large_error_;
    ++tokens_;
    return;
  }
  http::SseScanner whole(bytes.size());
  const auto take_all = [&] {
    while (const auto event = whole.next()) {
      if (!large_shown_) take_event(*event, {});
      else if (event->kind == http::SseEvent::Kind::Data) read_chunk(*event);
    }
  };
  whole.feed(bytes);
  take_all();
  whole.finish();
  take_all();
}

// Older llama.cpp servers put their errors into a field of their own, which clients do not read.
void AnswerRelay::take_error_line(std::string_view line, std::string_view input) {
  line.remove_prefix(kErrorLine.size());
  line = line.substr(0, line.find_first_of("\r\n"));
  while (line.starts_with(' ')) line.remove_prefix(1);
  const bool object = !reader_.read(line).malformed;
  const std::string data = "{\"error\":" + (object ? std::string(line) : json::quote(line)) + "}";
  const std::string bytes = "data: " + data + "\n\n";
  http::SseEvent event;
  event.kind = http::SseEvent::Kind::Data;
  event.bytes = bytes;
  event.data = std::string_view(bytes).substr(6, data.size());
  take_data(event, input);
}

// Same head, same tail, and a text between them without quote, escape or control character: then
// the chunk says what the last one said. Saves reading it.
bool AnswerRelay::like_the_last(std::string_view data) const {
  if (shape_head_.empty() || data.size() <= shape_head_.size() + shape_tail_.size()) return false;
  if (!data.starts_with(shape_head_) || !data.ends_with(shape_tail_)) return false;
  data.remove_prefix(shape_head_.size());
  data.remove_suffix(shape_tail_.size());
  for (const char c : data) {
    if (c == '"' || c == '\\' || static_cast<unsigned char>(c) < 0x20) return false;
  }
  return true;
}

void AnswerRelay::remember_shape(std::string_view data, const json::Chunk& chunk) {
  shape_head_.clear();
  if (mode_ != Mode::Stream || error_seen_ || chunk.contents != 1 || chunk.finishes != 0 ||
      chunk.has_usage || chunk.error || chunk.done || (chunk.model && !plan_.model.empty()) ||
      (chunk.null_usage && plan_.drop_usage)) {
    return;
  }
  constexpr std::string_view kContent = "\"content\":\"";
  const std::size_t at = data.find(kContent);
  if (at == std::string_view::npos) return;
  const std::size_t begin = at + kContent.size();
  const std::size_t end = data.find('"', begin);
  if (end == begin || data.find('\\', begin) < end) return;
  shape_head_.assign(data.substr(0, begin));
  shape_tail_.assign(data.substr(end));
}

// What it says of the answer.
json::Chunk AnswerRelay::read_chunk(const http::SseEvent& event) {
  json::Chunk chunk = reader_.read(event.data);
  chunk.error = chunk.error || is_error(event, plan_.api);
  tokens_ += chunk.contents;
  error_seen_ = error_seen_ || chunk.error;
  if (chunk.done) {
    end_seen_ = true;
    done_seen_ = is_done(event);
  }
  return chunk;
}

void AnswerRelay::take_data(const http::SseEvent& event, std::string_view input) {
  if (event.type.empty() && like_the_last(event.data)) {
    ++tokens_;
    return forward(event.bytes, input);
  }
  const json::Chunk chunk = read_chunk(event);
  remember_shape(event.data, chunk);
  // [DONE] after an error or half an answer would tell clients that it is whole.
  if (chunk.done && (error_seen_ || !all_ended())) return;
  if (chunk.error && (!stream_begun_ || mode_ == Mode::Assemble)) {
    held_ = chunk.malformed ? "{\"error\":" + json::quote(event.data) + "}"
                            : std::string(event.data);
    return;
  }
  if (error_seen_ && !stream_begun_) return;
  stream_begun_ = true;
  if (mode_ == Mode::Assemble) {
    if (error_seen_ || assembler_failed_ || overrun_) return;
    if (assembler_->add(event.data)) return;
    if (assembler_->full()) overrun_ = true;
    else assembler_failed_ = true;
    return;
  }
  if (chunk.usage_only && plan_.drop_usage && !chunk.error) return;
  const bool rename = chunk.model && !plan_.model.empty();
  const bool cut = chunk.null_usage && plan_.drop_usage;
  if ((rename || cut) && inside(event.data, event.bytes)) return forward_edited(event, chunk);
  forward(event.bytes, input);
}

void AnswerRelay::forward(std::string_view bytes, std::string_view input) {
  // What the scanner held from an earlier read lives only until its next input.
  if (inside(bytes, input)) return add_piece(bytes);
  own_.emplace_back(bytes);
  add_piece(own_.back());
}

void AnswerRelay::forward_edited(const http::SseEvent& event, const json::Chunk& chunk) {
  const auto offset = static_cast<std::uint32_t>(event.data.data() - event.bytes.data());
  json::Edits edits(event.bytes);
  const auto shifted = [&](json::Span span) {
    return json::Span{span.begin + offset, span.end + offset};
  };
  if (chunk.model && !plan_.model.empty()) {
    edits.replace(shifted(chunk.model), json::quote(plan_.model));
  }
  if (chunk.null_usage && plan_.drop_usage) edits.replace(shifted(chunk.null_usage), "");
  std::string& text = own_.emplace_back();
  edits.append_to(text);
  add_piece(text);
}

AttemptResult AnswerRelay::end(bool whole) {
  switch (mode_) {
    case Mode::Stream: return end_stream();
    case Mode::Assemble: {
      const AttemptResult result = end_stream();
      if (result == AttemptResult::Ok) {
        held_ = assembler_->finish(plan_.model);
      }
      return result;
    }
    case Mode::Hold: return end_held(whole);
    case Mode::Pass: return end_passed(whole);
  }
  return AttemptResult::Truncated;
}

// A finish reason for every choice asked for; or the API's own end behind some content: with a
// reason for each choice that appeared (an engine may ignore `n`), or, of an engine that gives
// none, without any. An engine that has just failed may send that end too, but never without its
// error before it. A plain answer owes its client a reason, and none is made up.
bool AnswerRelay::all_ended() const {
  if (reader_.first_finished(plan_.choices)) return true;
  if (!end_seen_ || tokens_ == 0) return false;
  if (reader_.finished() > 0 && reader_.finished() == reader_.seen()) return true;
  if (mode_ == Mode::Assemble) return false;
  return unread_ || !json::has_choices(plan_.api) || reader_.finished() == 0;
}

AttemptResult AnswerRelay::end_stream() {
  scanner_.finish();
  while (const auto event = scanner_.next()) take_event(*event, {});
  if (!end_seen_) take_tail();
  usage_ = reader_.usage();
  timings_ = reader_.timings();
  if (overrun_) {
    status_ = 502;
    held_ = json::error_body(plan_.api, 502,
                             mode_ == Mode::Assemble
                                 ? "The answer is larger than this gateway may hold for a plain "
                                   "answer. Ask for it with \"stream\": true."
                                 : "An event of the answer is larger than this gateway may hold.",
                             {}, "answer_too_large");
    return AttemptResult::Overrun;
  }
  if (!error_seen_) {
    if (!all_ended() || assembler_failed_) return AttemptResult::Truncated;
    // All choices have ended: that the body ends without its mark, or breaks, takes nothing from
    // the answer, unless the client has half an event of it.
    if (!between_events()) return AttemptResult::Truncated;
    if (mode_ == Mode::Stream) close_stream();
  }
  if (!error_seen_) return AttemptResult::Ok;
  if (stream_begun_ && mode_ == Mode::Stream) return AttemptResult::StreamError;
  return judge_error();
}

// The API's own end, in the place of the one that did not come.
void AnswerRelay::close_stream() {
  if (end_seen_) return;
  own_.emplace_back(plan_.api == model::Api::Messages
                        ? "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n"
                        : "data: [DONE]\n\n");
  add_piece(own_.back());
}

// A last event without its blank line, which clients drop for want of it; of half an event nothing
// goes on.
void AnswerRelay::take_tail() {
  std::string closed = inside_large_ ? large_ : std::string(scanner_.tail());
  if (closed.empty() || (inside_large_ && large_lost_)) return;
  const std::string_view missing = closed.ends_with('\n') ? "\n" : "\n\n";
  closed += missing;
  http::SseScanner last(closed.size());
  last.feed(closed);
  std::optional<http::SseEvent> event = last.next();
  if (event && event->kind == http::SseEvent::Kind::Silent) event = last.next();
  if (!event || event->kind != http::SseEvent::Kind::Data) return;
  if (!is_done(*event) && json::ChunkReader(plan_.api).read(event->data).malformed) return;
  const bool shown = inside_large_ && large_shown_;
  inside_large_ = false;
  if (!shown) return take_event(*event, {});
  read_chunk(*event);
  own_.emplace_back(missing);
  add_piece(own_.back());
}

AttemptResult AnswerRelay::judge_status() const {
  if (redirects()) return AttemptResult::Unfit;
  if (status_ == 429) return AttemptResult::Throttled;
  // 501: the engine cannot do that at all, which is as little an illness as any other refusal.
  if ((status_ >= 400 && status_ <= 499) || status_ == 501) return AttemptResult::ClientError;
  return AttemptResult::ServerError;
}

// A good status, and no answer but an error: as if it had come with the status that it names.
AttemptResult AnswerRelay::judge_error() {
  status_ = json::error_status(held_);
  return judge_status();
}

AttemptResult AnswerRelay::end_held(bool whole) {
  if (redirects()) return AttemptResult::Unfit;
  if (!whole) return AttemptResult::Truncated;
  if (!good_status()) return judge_status();
  const json::Answer answer = json::read_answer(plan_.api, held_);
  usage_ = answer.usage;
  timings_ = answer.timings;
  if (!answer.valid) return AttemptResult::Truncated;
  if (answer.error) return judge_error();
  if (!answer.complete()) return AttemptResult::Truncated;
  tokens_ = tokens_of(answer);
  rename_held(answer.model);
  return AttemptResult::Ok;
}

// Of an engine that counts nothing: about four bytes of text make a token.
std::int64_t AnswerRelay::tokens_of(const json::Answer& answer) {
  constexpr std::size_t kBytes = 4;
  if (answer.usage.completion_tokens >= 0) return 1;
  return std::max<std::int64_t>(1, static_cast<std::int64_t>(answer.text / kBytes));
}

// The client has had it as it is; what it says of itself still counts.
AttemptResult AnswerRelay::end_passed(bool whole) {
  if (!good_status()) return whole ? judge_status() : AttemptResult::Truncated;
  const json::Answer answer = skeleton_.answer();
  usage_ = answer.usage;
  timings_ = answer.timings;
  if (!whole || !answer.valid) return AttemptResult::Truncated;
  if (answer.error) return AttemptResult::ServerError;
  if (!answer.complete()) return AttemptResult::Truncated;
  tokens_ = std::max<std::int64_t>(tokens_, 1);
  return AttemptResult::Ok;
}

void AnswerRelay::rename_held(json::Span model) {
  if (!model || plan_.model.empty()) return;
  json::Edits edits(held_);
  edits.replace(model, json::quote(plan_.model));
  std::string renamed;
  edits.append_to(renamed);
  held_ = std::move(renamed);
}

}  // namespace signalbox::gateway
