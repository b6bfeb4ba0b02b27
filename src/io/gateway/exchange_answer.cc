// SPDX-License-Identifier: Apache-2.0
// What the client gets: the head, the relayed bytes with our framing, or our own words.
#include <array>

#include "io/gateway/answers.h"
#include "io/gateway/cors.h"
#include "io/gateway/exchange.h"
#include "io/gateway/session.h"
#include "io/gateway/worker.h"
#include "io/http/chars.h"
#include "io/http/writer.h"
#include "io/json/escape.h"

namespace signalbox::gateway {
namespace {

using http::FieldName;

// Fields of an engine's answer that are ours to say.
bool ours(const http::Field& field, model::Api api) {
  switch (field.id) {
    case FieldName::ContentLength:
    case FieldName::TransferEncoding:
    case FieldName::Connection:
    case FieldName::KeepAlive:
    case FieldName::Trailer:
    case FieldName::XRequestId:
    case FieldName::CacheControl: return true;
    case FieldName::Other: {
      const auto begins = [&](std::string_view prefix) {
        return http::equals_ignoring_case(field.name.substr(0, prefix.size()), prefix);
      };
      return begins("access-control-") || begins("x-signalbox-") ||
             http::equals_ignoring_case(field.name, "x-accel-buffering") ||
             (api == model::Api::Messages && http::equals_ignoring_case(field.name, "request-id"));
    }
    default: return false;
  }
}

iovec piece(std::string_view bytes) { return {const_cast<char*>(bytes.data()), bytes.size()}; }

}  // namespace

void Exchange::keep_answer_fields(const http::ResponseHead& head) {
  answer_fields_.clear();
  for (const http::Field field : head.fields) {
    if (ours(field, api_) || http::is_hop_by_hop(head, field)) continue;
    // An assembled answer is JSON, whatever the engine's stream was.
    if (relay_.mode() == AnswerRelay::Mode::Assemble && field.id == FieldName::ContentType) {
      http::append_field(answer_fields_, "content-type", "application/json");
      continue;
    }
    http::append_field(answer_fields_, field);
  }
}

void Exchange::append_answer_fields(std::string& out) const {
  http::append_field(out, "x-request-id", record_.request_id);
  if (api_ == model::Api::Messages) http::append_field(out, "request-id", record_.request_id);
  http::append_field(out, "cache-control", "no-store");
  if (record_.core_knew && endpoint_ != nullptr && published_->decision_headers) {
    http::append_field(out, "x-signalbox-endpoint", endpoint_->label);
    http::append_field(out, "x-signalbox-queue-ms",
                       static_cast<std::uint64_t>(record_.queued / std::chrono::milliseconds(1)));
    http::append_field(out, "x-signalbox-decision", decision_);
  }
  if (head_ != nullptr) append_cors(out, *published_, *head_);
  if (!keep_alive_ || session_.last()) http::append_field(out, "connection", "close");
  else if (http10_) http::append_field(out, "connection", "keep-alive");
}

void Exchange::send_stream_head() {
  http::append_status_line(out_, relay_.status());
  out_ += answer_fields_;
  if (http10_) keep_alive_ = false;  // its end is the connection's
  append_answer_fields(out_);
  http::append_field(out_, "x-accel-buffering", "no");
  if (!http10_) http::append_field(out_, "transfer-encoding", "chunked");
  http::append_end_of_head(out_);
  head_sent_ = true;
  record_.status = relay_.status();
  record_.first_byte = worker_.loop().now();
  const Duration comment = published_->config.gateway.sse.keep_alive_comment;
  if (comment > Duration::zero() && relay_.mode() == AnswerRelay::Mode::Stream) {
    worker_.loop().arm_after(comment_, comment);
  }
}

void Exchange::flush_relay(bool whole) {
  if (phase_ == Phase::Orphan) return relay_.clear_pieces();
  out_.clear();
  const bool any = !relay_.pieces().empty();
  if (!head_sent_ && any) send_stream_head();
  std::vector<iovec>& vector = worker_.scratch_pieces();
  vector.clear();
  // A chunk of nothing would end the body.
  std::optional<http::ChunkHeader> chunk;
  if (!out_.empty()) vector.push_back(piece(out_));
  if (any) {
    if (!http10_) vector.push_back(piece(chunk.emplace(relay_.pieces_size()).text()));
    for (const std::string_view bytes : relay_.pieces()) vector.push_back(piece(bytes));
    if (!http10_) vector.push_back(piece(http::kChunkEnd));
  }
  // The attempt was a success: the end of the body rides on the last write.
  if (whole && head_sent_ && !http10_) vector.push_back(piece(http::kLastChunk));
  if (whole && head_sent_) end_sent_ = true;
  if (!vector.empty()) session_.send(vector);
  last_sent_ = worker_.loop().now();
  relay_.clear_pieces();
}

void Exchange::comment_due() {
  const Duration interval = published_->config.gateway.sse.keep_alive_comment;
  const Duration silent = worker_.loop().now() - last_sent_;
  if (phase_ != Phase::Attempt || !head_sent_ || http10_) return;
  if (silent < interval) return worker_.loop().arm_after(comment_, interval - silent);
  if (relay_.between_events()) {
    session_.send("3\r\n:\n\n\r\n");
    last_sent_ = worker_.loop().now();
  }
  worker_.loop().arm_after(comment_, interval);
}

void Exchange::send_held() {
  const std::string_view body = relay_.held();
  const int status = relay_.status();
  if (relay_.stream_failed() || relay_.overrun()) {
    // The engine's stream was an error, or is too long to assemble; nobody has seen its head yet.
    answer_fields_.clear();
    http::append_field(answer_fields_, "content-type", "application/json");
  }
  out_.clear();
  http::append_status_line(out_, status);
  out_ += answer_fields_;
  append_answer_fields(out_);
  http::append_field(out_, "content-length", body.size());
  http::append_end_of_head(out_);
  record_.status = status;
  record_.first_byte = worker_.loop().now();
  head_sent_ = end_sent_ = true;
  const std::array pieces{piece(out_), piece(head_only_ ? std::string_view{} : body)};
  session_.send(pieces);
}

void Exchange::end_stream_with_error(model::Outcome outcome) {
  if (relay_.mode() != AnswerRelay::Mode::Stream) return session_.fail();
  if (relay_.stream_failed()) {
    // The engine's own error event went out already; only the end is missing.
    if (!http10_) session_.send(http::kLastChunk);
    return;
  }
  std::string event = error_event(api_, own_answer(outcome));
  if (!relay_.between_events()) event.insert(0, "\n\n");
  if (http10_) return session_.send(event);
  const http::ChunkHeader chunk(event.size());
  const std::array pieces{piece(chunk.text()), piece(event), piece(http::kChunkEnd),
                          piece(http::kLastChunk)};
  session_.send(pieces);
}

void Exchange::send_local(int status, std::string_view body, Duration retry_after) {
  if (record_.request_id.empty()) record_.request_id = worker_.request_name({});
  out_.clear();
  http::append_status_line(out_, status);
  http::append_field(out_, "content-type", "application/json");
  if (retry_after >= Duration::zero()) {
    const auto seconds = std::chrono::ceil<std::chrono::seconds>(retry_after).count();
    http::append_field(out_, "retry-after", static_cast<std::uint64_t>(std::max<long>(1, seconds)));
  }
  if (status == 405) {
    const bool reads = answers_itself(record_.path);
    http::append_field(out_, "allow", reads ? "GET, HEAD, OPTIONS" : "POST, OPTIONS");
  }
  append_answer_fields(out_);
  http::append_field(out_, "content-length", body.size());
  http::append_end_of_head(out_);
  record_.status = status;
  record_.first_byte = worker_.loop().now();
  head_sent_ = end_sent_ = true;
  const std::array pieces{piece(out_), piece(head_only_ ? std::string_view{} : body)};
  session_.send(pieces);
  // Before the core knew of it, the exchange ends here; after, conclude() ends it.
  if (!record_.core_knew) finish(model::Outcome::Completed, status < 500);
}

void Exchange::send_local_error(int status, std::string_view message, std::string_view code,
                                Duration retry_after, std::string_view param) {
  if (status == 408 || status == 413) keep_alive_ = false;
  if (code == "model_not_found") param = "model";
  send_local(status, json::error_body(api_, status, message, param, code), retry_after);
}

}  // namespace signalbox::gateway
