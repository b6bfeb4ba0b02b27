// SPDX-License-Identifier: Apache-2.0
// AnswerSkeleton: what read_answer() needs of a whole answer that is too large to be held: fed with
// pieces as they pass, it keeps the few values that count and puts 0 in the place of all others.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace signalbox::json {

class AnswerSkeleton {
 public:
  // Takes bytes up to the end of `data`, or up to a border of the value of the outermost `model`
  // when that is a string; returns how many, perhaps none. Whoever writes another name there drops
  // what is fed while in_model() and puts its own in when that ends.
  std::size_t feed(std::string_view data);
  bool in_model() const { return in_model_; }

  // The answer for read_answer(): `choices` with their finish reasons alone, usage, timings, errors
  // and status as they were. Of what was left out only quotes and brackets were checked. Empty when
  // they did not match, or when the values that count are larger than kRoom.
  std::string_view text() const;

  static constexpr std::size_t kRoom = 256 << 10;

 private:
  enum class Fate : std::uint8_t { Open, Keep, Drop };  // Open: what is inside decides

  Fate fate(char first) const;
  void begin(char first);
  void structure(char c);
  std::size_t in_string(std::string_view data);
  void end_string();
  bool dropping() const { return drop_from_ != 0 || drop_atom_; }
  void put(std::string_view bytes);

  std::string text_;
  std::string key_;            // the newest one, cut
  std::string shape_;          // the open brackets
  std::size_t drop_from_ = 0;  // depth of the container that is left out; 0: none
  std::size_t keep_from_ = 0;  // depth of the container that is kept whole; 0: none
  bool drop_atom_ = false;     // the string, number or word here is left out
  bool in_string_ = false;
  bool escaped_ = false;
  bool in_word_ = false;       // a number, true, false, null
  bool awaits_key_ = false;
  bool is_key_ = false;        // the string is one
  bool in_model_ = false;
  bool failed_ = false;
};

}  // namespace signalbox::json
