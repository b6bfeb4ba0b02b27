// SPDX-License-Identifier: Apache-2.0
// Content of prompts: see prompt_walk.h.
#include "io/json/prompt_walk.h"

namespace signalbox::json {

void PromptWalk::key(const Token& token) {
  c_.repeat(token, e_);
  e_.mark(Mark::KeyEnd);
}

PromptWalk::Media PromptWalk::media_of(std::string_view name, Media around) {
  switch (name.size()) {
    case 3:
      return around == Media::Holder && name == "url" ? Media::Bytes : Media::None;
    case 4:
      if (around == Media::Holder && name == "data") return Media::Bytes;
      return name == "file" ? Media::Holder : Media::None;
    case 6:
      return name == "source" ? Media::Holder : Media::None;
    case 9:
      if (name == "file_data") return Media::Bytes;
      return name == "image_url" || name == "video_url" || name == "audio_url" ? Media::Link
                                                                               : Media::None;
    case 11:
      return name == "input_audio" ? Media::Holder : Media::None;
    default:
      return Media::None;
  }
}

bool PromptWalk::value(int depth, Media media) {
  switch (c_.peek()) {
    case '"':
      return string(media);
    case '{':
      return object(depth + 1, media == Media::Link ? Media::Holder : media);
    case '[': {
      e_.mark(Mark::ArrayBegin);
      if (!c_.array(depth + 1, [&] { return value(depth + 1, Media::None); })) return false;
      e_.mark(Mark::ArrayEnd);
      return true;
    }
    default:
      return scalar(depth);
  }
}

bool PromptWalk::string(Media media) {
  if (media == Media::Link || media == Media::Bytes) {
    TextHash hash;
    if (!c_.string(hash)) return false;
    saw_media_ = true;
    const std::uint64_t folded = hash.value();
    e_.mark(Mark::Folded);
    e_.text(reinterpret_cast<const char*>(&folded), sizeof folded);
    return true;
  }
  if (!c_.string(e_)) return false;
  e_.mark(Mark::StringEnd);
  return true;
}

bool PromptWalk::scalar(int depth) {
  const char* const first = c_.p;
  if (!c_.skip(depth)) return false;
  e_.text(first, static_cast<std::size_t>(c_.p - first));
  e_.mark(Mark::ScalarEnd);
  return true;
}

bool PromptWalk::object(int depth, Media media) {
  bool plain_text = false;
  e_.mark(Mark::ObjectBegin);
  const auto member = [&](const Token& token) {
    return members(token, depth, media, plain_text);
  };
  if (!c_.object(depth, member)) return false;
  e_.mark(Mark::ObjectEnd);
  return true;
}

// One member of an object. `plain_text` remembers that a source said it holds text.
bool PromptWalk::members(const Token& token, int depth, Media around, bool& plain_text) {
  const std::string_view name = c_.name(token);
  if (name == "cache_control") return c_.skip(depth);
  const Media media = plain_text ? Media::None : media_of(name, around);
  const bool is_type = name == "type";
  key(token);
  if (!is_type || c_.peek() != '"') return value(depth, media);
  Token type;
  if (!c_.string(e_, &type)) return false;
  e_.mark(Mark::StringEnd);
  const std::string_view kind = c_.name(type);
  plain_text = around == Media::Holder && kind == "text";
  saw_media_ = saw_media_ || kind == "image" || kind == "input_image" || kind == "image_url";
  return true;
}

bool PromptWalk::content(int depth) {
  if (c_.peek() != '[') return value(depth, Media::None);
  const auto element = [&] {
    return c_.peek() == '{' ? part(depth + 2) : value(depth + 1, Media::None);
  };
  return c_.array(depth + 1, element);
}

// A part that starts {"type":"text" is encoded as its text alone, with other keys behind it.
bool PromptWalk::part(int depth) {
  bool first = true, is_text = false, others = false, plain_text = false;
  const auto member = [&](const Token& token) {
    const bool opening = first;
    first = false;
    const char* const at = c_.p;
    if (opening && c_.name(token) == "type" && c_.peek() == '"') {
      Token type;
      if (!c_.string(type)) return false;
      if (c_.name(type) == "text") return is_text = true;
      c_.p = at;
    }
    const std::string_view name = c_.name(token);
    if (is_text && name == "text" && c_.peek() == '"') return string(Media::None);
    if (name == "cache_control") return c_.skip(depth);
    if (!others) e_.mark(Mark::ObjectBegin);
    others = true;
    return members(token, depth, Media::None, plain_text);
  };
  if (!c_.object(depth, member)) return false;
  if (others) e_.mark(Mark::ObjectEnd);
  return true;
}

}  // namespace signalbox::json
