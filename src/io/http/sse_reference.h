// SPDX-License-Identifier: Apache-2.0
// For tests and fuzzers: the event stream interpretation of the HTML standard, section 9.2.6, one
// character at a time, over the whole stream. Shares no code with SseScanner.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace signalbox::http {

using Dispatched = std::vector<std::pair<std::string, std::string>>;  // type, data

class SseReference {
 public:
  Dispatched read(std::string text) {
    if (text.starts_with("\xef\xbb\xbf")) text.erase(0, 3);
    std::string line;
    for (std::size_t i = 0; i < text.size(); ++i) {
      if (text[i] != '\r' && text[i] != '\n') {
        line += text[i];
        continue;
      }
      if (text[i] == '\r' && i + 1 < text.size() && text[i + 1] == '\n') ++i;
      take(line);
      line.clear();
    }
    return std::move(out_);
  }

 private:
  void take(const std::string& line) {
    if (line.empty()) {
      if (!data_.empty()) {
        data_.pop_back();
        out_.emplace_back(type_, data_);
      }
      data_.clear();
      type_.clear();
      return;
    }
    const std::size_t colon = line.find(':');
    const std::string name = line.substr(0, colon);
    std::string value = colon == std::string::npos ? "" : line.substr(colon + 1);
    if (value.starts_with(' ')) value.erase(0, 1);
    if (name == "event") type_ = value;
    if (name == "data") data_ += value + '\n';
  }

  Dispatched out_;
  std::string data_, type_;
};

}  // namespace signalbox::http
