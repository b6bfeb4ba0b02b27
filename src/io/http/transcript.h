// SPDX-License-Identifier: Apache-2.0
// For tests and fuzzers: reads the bytes of a connection in given pieces, as a caller would, and
// writes down what was understood. Two ways to split the same bytes must give the same transcript.
// Every piece lives in memory of its own, so that a view into an older buffer is found by ASan.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "io/http/body_decoder.h"
#include "io/http/head_parser.h"
#include "io/http/limits.h"
#include "io/http/sse_scanner.h"

namespace signalbox::http::transcript {

// Pieces of the given sizes, the last size repeated; one piece when there are no sizes.
inline std::vector<std::string> pieces(std::string_view bytes,
                                       const std::vector<std::size_t>& sizes) {
  std::vector<std::string> out;
  for (std::size_t i = 0; !bytes.empty(); ++i) {
    std::size_t size = bytes.size();
    if (!sizes.empty()) size = std::max<std::size_t>(1, sizes[std::min(i, sizes.size() - 1)]);
    out.emplace_back(bytes.substr(0, size));
    bytes.remove_prefix(out.back().size());
  }
  return out;
}

inline std::string describe_framing(const Framing& framing) {
  switch (framing.kind) {
    case Framing::Kind::None: return "none";
    case Framing::Kind::Length: return "length " + std::to_string(framing.length);
    case Framing::Kind::Chunked: return "chunked";
    case Framing::Kind::UntilClose: return "until-close";
  }
  return "?";
}

inline std::string describe_head(const MessageHead& head) {
  std::string out = " 1." + std::to_string(head.minor_version) + " " +
                    describe_framing(head.framing) + (head.keep_alive ? " keep" : " close");
  for (const Field& f : head.fields) {
    out += "\n  " + std::string(f.name) + ": " + std::string(f.value);
    if (is_hop_by_hop(head, f)) out += " (hop)";
  }
  return out;
}

inline std::string describe_head(const RequestHead& head) {
  std::string out(head.method_text());
  out.append(" ").append(head.target()).append(" path=").append(head.path());
  out.append(" query=").append(head.query()).append(" host=").append(head.host());
  if (head.expect_continue) out += " expects";
  return out + describe_head(static_cast<const MessageHead&>(head));
}

inline std::string describe_head(const ResponseHead& head) {
  return std::to_string(head.status) + " " + std::string(head.reason()) +
         describe_head(static_cast<const MessageHead&>(head));
}

inline std::string describe(const Reject& reject) {
  return "refused " + std::to_string(reject.status) + ": " + std::string(reject.reason) + "\n";
}

// A connection whose buffer moves with every read.
class Wire {
 public:
  explicit Wire(std::vector<std::string> parts) : parts_(std::move(parts)) {}
  bool read_more() {
    if (next_ == parts_.size()) return false;
    buffer_ = std::make_unique<std::string>(*buffer_ + parts_[next_++]);
    return true;
  }
  std::string_view buffer() const { return *buffer_; }
  void drop(std::size_t bytes) { buffer_ = std::make_unique<std::string>(buffer_->substr(bytes)); }

 private:
  std::vector<std::string> parts_;
  std::size_t next_ = 0;
  std::unique_ptr<std::string> buffer_ = std::make_unique<std::string>();
};

template <typename Parser>
Progress read_head(Parser& parser, Wire& wire) {
  for (;;) {
    const Progress progress = parser.parse(wire.buffer());
    if (progress != Progress::NeedMore || !wire.read_more()) return progress;
  }
}

// Appends the decoded body and how it ended.
inline BodyState read_body(BodyDecoder& decoder, Wire& wire, std::string& out) {
  out += "\n  body=";
  for (;;) {
    while (decoder.state() == BodyState::Open && !wire.buffer().empty()) {
      const BodyStep step = decoder.next(wire.buffer());
      out += step.data;
      wire.drop(step.consumed);
      if (step.consumed == 0 && step.state == BodyState::Open) return BodyState::Error;  // stuck
    }
    if (decoder.state() != BodyState::Open) break;
    if (!wire.read_more()) {
      if (decoder.end_of_input() == BodyState::Error) out += "...";
      break;
    }
  }
  out += '\n';
  if (decoder.state() == BodyState::Error) out += describe(decoder.error());
  return decoder.state();
}

// What a server understands of a client's bytes, request by request.
inline std::string requests(std::string_view bytes, const std::vector<std::size_t>& sizes,
                            const Limits& limits = {}) {
  std::string out;
  Wire wire(pieces(bytes, sizes));
  RequestParser parser(limits);
  for (;;) {
    const Progress progress = read_head(parser, wire);
    if (progress == Progress::Error) return out + describe(parser.error());
    if (progress == Progress::NeedMore) return out + (wire.buffer().empty() ? "" : "unfinished\n");
    out += describe_head(parser.head());
    BodyDecoder decoder(parser.head().framing, limits, Side::Request,
                        static_cast<std::uint64_t>(limits.body_bytes_max.value));
    wire.drop(parser.head_length());
    if (read_body(decoder, wire, out) == BodyState::Error) return out;
    parser.reset();
  }
}

// What a client understands of a server's bytes: answers to requests of one kind.
inline std::string responses(std::string_view bytes, const std::vector<std::size_t>& sizes,
                             const Limits& limits = {}, AnswerTo request = AnswerTo::Other) {
  std::string out;
  Wire wire(pieces(bytes, sizes));
  ResponseParser parser(limits, request);
  for (;;) {
    const Progress progress = read_head(parser, wire);
    if (progress == Progress::Error) return out + describe(parser.error());
    if (progress == Progress::NeedMore) return out + (wire.buffer().empty() ? "" : "unfinished\n");
    out += describe_head(parser.head());
    const bool interim = parser.head().interim();
    BodyDecoder decoder(parser.head().framing, limits, Side::Response, BodyDecoder::kNoCap);
    wire.drop(parser.head_length());
    if (read_body(decoder, wire, out) == BodyState::Error) return out;
    if (interim) {
      parser.skip_interim();
    } else {
      parser.reset(request);
    }
  }
}

// The events of a stream, one line each, then what never became one. `forwarded` gets every byte
// that a relay would have written.
inline std::string events(std::string_view bytes, const std::vector<std::size_t>& sizes,
                          std::size_t tail_bytes_max, std::string* forwarded = nullptr) {
  std::string out;
  SseScanner scanner(tail_bytes_max);
  auto drain = [&] {
    std::string of_events;
    while (const auto event = scanner.next()) {
      const bool fragment = event->kind == SseEvent::Kind::Fragment;
      of_events += event->bytes;
      out += fragment ? "fragment" : event->kind == SseEvent::Kind::Data ? "data" : "silent";
      out += " [" + std::string(event->bytes) + "] type=" + std::string(event->type) +
             " data=" + std::string(event->data) + (event->ends ? "\n" : " more\n");
    }
    const std::string written = std::string(scanner.carried()) + std::string(scanner.direct());
    if (written != of_events) out += "carried and direct differ from the events\n";
    if (forwarded != nullptr) *forwarded += written;
  };
  for (const std::string& part : pieces(bytes, sizes)) {
    scanner.feed(part);
    drain();
  }
  scanner.finish();
  drain();
  if (forwarded != nullptr) *forwarded += scanner.tail();
  return out + "tail [" + std::string(scanner.tail()) + "]\n";
}

}  // namespace signalbox::http::transcript
