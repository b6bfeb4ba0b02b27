// SPDX-License-Identifier: Apache-2.0
// The encoder and the decoder as visitors over codec_fields.h.
#include "core/model/codec.h"

#include <bit>
#include <type_traits>
#include <utility>

#include "core/model/codec_fields.h"

namespace signalbox::model {
namespace {

template <class T> struct IsVector : std::false_type {};
template <class T> struct IsVector<std::vector<T>> : std::true_type {};
template <class T> struct IsId : std::false_type {};
template <class T, class R> struct IsId<Id<T, R>> : std::true_type {};

class Encoder {
 public:
  explicit Encoder(std::string& out) : out_(out) {}

  template <class... T> void operator()(T&... values) { (put(values), ...); }

  void varint(std::uint64_t value) {
    while (value >= 0x80) {
      out_.push_back(static_cast<char>(value | 0x80));
      value >>= 7;
    }
    out_.push_back(static_cast<char>(value));
  }

 private:
  template <class T> void put(T& value) {
    if constexpr (std::is_same_v<T, double>) {
      fixed(std::bit_cast<std::uint64_t>(value));
    } else if constexpr (std::is_same_v<T, Duration>) {
      zigzag(value.count());
    } else if constexpr (std::is_enum_v<T>) {
      varint(static_cast<std::uint64_t>(value));
    } else if constexpr (IsId<T>::value) {
      varint(value.value());
    } else if constexpr (std::is_same_v<T, std::string>) {
      varint(value.size());
      out_.append(value);
    } else if constexpr (IsVector<T>::value) {
      varint(value.size());
      for (auto& element : value) put(element);
    } else if constexpr (std::is_integral_v<T>) {
      std::is_signed_v<T> ? zigzag(static_cast<std::int64_t>(value))
                          : varint(static_cast<std::uint64_t>(value));
    } else {
      fields(*this, value);
    }
  }

  void zigzag(std::int64_t value) {
    varint((static_cast<std::uint64_t>(value) << 1) ^ static_cast<std::uint64_t>(value >> 63));
  }
  void fixed(std::uint64_t value) {
    for (int i = 0; i < 8; ++i) out_.push_back(static_cast<char>(value >> (8 * i)));
  }

  std::string& out_;
};

class Decoder {
 public:
  explicit Decoder(std::string_view bytes) : bytes_(bytes) {}

  template <class... T> void operator()(T&... values) { (get(values), ...); }

  std::uint64_t varint() {
    std::uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      if (bytes_.empty()) break;
      const auto byte = static_cast<unsigned char>(bytes_.front());
      bytes_.remove_prefix(1);
      value |= static_cast<std::uint64_t>(byte & 0x7F) << shift;
      if (byte < 0x80) return value;
    }
    failed_ = true;
    return 0;
  }

  // Everything was read and nothing is left.
  bool complete() const { return !failed_ && bytes_.empty(); }
  bool failed() const { return failed_; }

 private:
  template <class T> void get(T& value) {
    if (failed_) return;
    if constexpr (std::is_same_v<T, double>) {
      value = std::bit_cast<double>(fixed());
    } else if constexpr (std::is_same_v<T, Duration>) {
      value = Duration(zigzag());
    } else if constexpr (std::is_enum_v<T>) {
      const std::uint64_t raw = varint();
      if (raw > static_cast<std::uint64_t>(last(T{}))) {
        failed_ = true;
        return;
      }
      value = static_cast<T>(raw);
    } else if constexpr (IsId<T>::value) {
      value = T(static_cast<typename T::Value>(varint()));
    } else if constexpr (std::is_same_v<T, std::string>) {
      const std::uint64_t size = varint();
      if (size > bytes_.size()) {
        failed_ = true;
        return;
      }
      value.assign(bytes_.substr(0, size));
      bytes_.remove_prefix(size);
    } else if constexpr (IsVector<T>::value) {
      list(value);
    } else if constexpr (std::is_integral_v<T>) {
      if constexpr (std::is_signed_v<T>) {
        value = static_cast<T>(zigzag());
      } else {
        value = static_cast<T>(varint());
      }
    } else {
      fields(*this, value);
    }
  }

  // Each element takes at least a byte, which bounds what a forged size can allocate.
  template <class T> void list(std::vector<T>& values) {
    const std::uint64_t size = varint();
    if (size > bytes_.size()) {
      failed_ = true;
      return;
    }
    values.resize(size);
    for (auto& element : values) get(element);
  }

  std::int64_t zigzag() {
    const std::uint64_t raw = varint();
    return static_cast<std::int64_t>((raw >> 1) ^ (0 - (raw & 1)));
  }
  std::uint64_t fixed() {
    if (bytes_.size() < 8) {
      failed_ = true;
      return 0;
    }
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < 8; ++i) {
      value |= static_cast<std::uint64_t>(static_cast<unsigned char>(bytes_[i])) << (8 * i);
    }
    bytes_.remove_prefix(8);
    return value;
  }

  std::string_view bytes_;
  bool failed_ = false;
};

// Calls `f` with a default-made alternative number `index`; false if there is none.
template <class Variant, std::size_t... I, class F>
bool with_alternative(std::size_t index, F&& f, std::index_sequence<I...>) {
  return ((index == I && (f(std::variant_alternative_t<I, Variant>{}), true)) || ...);
}

// The visitors take references to non-const since the decoder writes; the encoder only reads.
template <class T> T& mutable_view(const T& value) { return const_cast<T&>(value); }

template <class Variant> void encode_variant(Encoder& encoder, const Variant& value) {
  encoder.varint(value.index());
  std::visit([&](const auto& alternative) { fields(encoder, mutable_view(alternative)); }, value);
}

Error broken(const char* what) {
  return invalid(std::string("The event log holds a broken ") + what +
                 "; it was cut or written by another version.");
}

}  // namespace

void encode(const Event& event, std::string& out) {
  Encoder encoder(out);
  encode_variant(encoder, event);
}

void encode(const OwnedAction& action, std::string& out) {
  Encoder encoder(out);
  encoder.varint(action.owner);
  encode_variant(encoder, action.action);
}

void encode(const Fleet& fleet, std::string& out) {
  Encoder encoder(out);
  fields(encoder, mutable_view(fleet));
}

Result<Event> decode_event(std::string_view bytes) {
  Decoder decoder(bytes);
  const std::uint64_t index = decoder.varint();
  Event event;
  const bool known = with_alternative<Event>(
      index,
      [&](auto alternative) {
        fields(decoder, alternative);
        event = std::move(alternative);
      },
      std::make_index_sequence<std::variant_size_v<Event>>{});
  if (!known || !decoder.complete()) return broken("event");
  return event;
}

Result<Fleet> decode_fleet(std::string_view bytes) {
  Decoder decoder(bytes);
  Fleet fleet;
  fields(decoder, fleet);
  if (!decoder.complete()) return broken("fleet");
  return fleet;
}

}  // namespace signalbox::model
