// SPDX-License-Identifier: Apache-2.0
// Finds out what stands behind an address, in one to three GETs. Sans I/O: next() says what to ask,
// feed() takes the answer. One per address and attempt, used by one thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/model/fleet.h"
#include "io/engine/facts.h"

namespace signalbox::engine {

// An HTTP answer, as far as it tells engines apart.
struct Answer {
  int status = 0;
  std::string_view server;  // the Server header; empty: none
  std::string_view body;
};

struct Discovery {
  model::EngineKind kind = model::EngineKind::OpenAi;
  Facts facts;
  bool ready = true;        // false: it answers and does not serve yet (loading); ask again later
  bool needs_key = false;   // it refused to list its models without a key
  std::string note;         // a sentence for the operator when something looks wrong; else empty

  bool operator==(const Discovery&) const = default;
};

class Detector {
 public:
  // `declared` other than Auto is believed; what contradicts it goes into Discovery::note.
  explicit Detector(model::EngineKind declared = model::EngineKind::Auto);

  // The path to GET next; empty: concluded.
  std::string_view next() const { return path_; }
  void feed(const Answer& answer);

  const Discovery& result() const { return result_; }

 private:
  void models(const Answer& answer);
  void metrics(const Answer& answer);
  void details(const Answer& answer);
  void ask_details();
  void settle(model::EngineKind seen);

  model::EngineKind declared_;
  std::string_view path_;
  Discovery result_;
};

}  // namespace signalbox::engine
