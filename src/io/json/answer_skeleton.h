// SPDX-License-Identifier: Apache-2.0
// AnswerSkeleton: what read_answer() needs of a whole answer that is too large to be held: fed with
// pieces as they pass, it keeps the few values that count, puts 0 in the place of all others and
// counts the choices.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "core/model/event.h"
#include "io/json/answer_reader.h"

namespace signalbox::json {

class AnswerSkeleton {
 public:
  explicit AnswerSkeleton(model::Api api) : api_(api) {}

  // Takes bytes up to the end of `data`, or up to a border of the value of the outermost `model`
  // when that is a string; returns how many, perhaps none. Whoever writes another name there drops
  // what is fed while in_model() and puts its own in when that ends.
  std::size_t feed(std::string_view data);
  bool in_model() const { return in_model_; }

  // What read_answer() says of the whole answer, but for its spans, which mean nothing here. Of
  // what was left out only quotes and brackets were checked. When what counts is larger than
  // kRoom, an answer whose brackets match is valid and complete as far as its choices tell, and
  // says nothing of usage, timings and errors.
  Answer answer() const;

  static constexpr std::size_t kRoom = 256 << 10;

 private:
  bool counts(char first);
  void begin(char first);
  void begin_in_choices(char first);
  void structure(char c);
  std::size_t in_string(std::string_view data);
  void end_string();
  bool dropping() const { return drop_from_ != 0 || drop_atom_; }
  void put(std::string_view bytes);

  model::Api api_;
  std::string text_;           // the answer with its choices and other large values left out
  std::string key_;            // the newest one, cut
  std::string shape_;          // the open brackets
  std::size_t drop_from_ = 0;  // depth of the container that is left out; 0: none
  bool drop_atom_ = false;     // the string, number or word here is left out
  bool in_string_ = false;
  bool escaped_ = false;
  bool in_word_ = false;       // a number, true, false, null
  bool awaits_key_ = false;
  bool is_key_ = false;        // the string is one
  bool in_model_ = false;
  ChoiceCounts counted_;
  bool in_choices_ = false;    // the container that is left out is a list of choices
  bool is_reason_ = false;     // the string that begins is a finish reason
  bool finished_ = false;      // the newest choice has a finish reason
  bool full_ = false;
  bool failed_ = false;
};

}  // namespace signalbox::json
