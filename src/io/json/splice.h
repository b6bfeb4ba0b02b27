// SPDX-License-Identifier: Apache-2.0
// Splice: the permitted changes of a scanned request body. Everything that is not named in a call
// stays byte for byte, and the result is valid JSON whose top-level keys are as unique as before.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "io/json/edits.h"
#include "io/json/request_scan.h"

namespace signalbox::json {

class Splice {
 public:
  // Both must outlive this object; `scan` is the scan of `body`.
  Splice(std::string_view body, const RequestScan& scan) : body_(body), scan_(scan) {
    changes_.reserve(4);
  }

  // Each call decides its key anew; the last one counts.
  void set_model(std::string_view name);
  void set_stream(bool on);
  void set_cache_salt(std::string_view salt);
  void set_priority(std::int64_t priority);
  // Sets any key that the scan reads to a JSON value, or takes it out.
  void set(Key key, std::string_view json);
  void remove(Key key);
  // Asks for usage at the end of a stream, whatever form `stream_options` has.
  void include_usage();
  // Adds a top-level key. A key that the scan reads is set instead; of any other the caller knows
  // that the body does not have it.
  void add(std::string_view key, std::string_view json);

  bool empty() const;
  Edits edits() const;

 private:
  struct Change {
    Key key;
    bool remove = false;
    std::string json;
  };
  Change& change(Key key);
  void remove_members(Edits& edits, int& remaining) const;
  std::uint32_t next_comma(const Member& member) const;

  std::string_view body_;
  const RequestScan& scan_;
  std::vector<Change> changes_;
  std::vector<std::string> additions_;  // `"key":value`
  bool include_usage_ = false;
};

}  // namespace signalbox::json
