// SPDX-License-Identifier: Apache-2.0
// Whether the ranks of a pool's engines begin their passes together, and how long those who come
// wait for one to begin. Passes are not seen; first tokens are: behind a barrier those of several
// ranks come at one moment, however far apart their ranks alone would have shown them. Pure; under
// the core's lock.
#pragma once

#include <cstdint>
#include <vector>

#include "base/time.h"

namespace signalbox::dispatch {

enum class Barrier : std::uint8_t { Unknown, Yes, No };

class GateWatch {
 public:
  // A first token at `now` of a prompt on `rank` of `instance`. `came`: when the request came to
  // us, or its attempt was sent if others had failed it. `alone`: when the token was due if its
  // rank were an engine of its own, as foreseen at departure.
  void first_token(std::uint32_t instance, std::uint32_t rank, Instant came, Instant alone,
                   Instant now);

  Barrier barrier() const;
  // Passes since the beginning, or the last begin_anew().
  int passes() const { return passes_; }
  // Decayed means over them, s: from coming until a pass begins that takes one, and the pass.
  double wait() const { return wait_; }
  double pass() const { return pass_; }
  // Share of the time in which a pass is under way in an engine, 0..1.
  double busy() const { return cycle_ > 0 ? pass_ / cycle_ : 0; }

  // Numbers of instances mean others now, or requests depart in another way: what was seen is no
  // evidence any more.
  void begin_anew() { *this = {}; }

 private:
  struct Token {
    Instant at{};
    Instant came{};
    Instant alone{};
    std::uint32_t rank = 0;
  };
  // First tokens that came at one moment: a pass has ended.
  struct Engine {
    std::vector<Token> together;
    Instant ended{};         // the pass before theirs
    std::vector<Token> last; // some of those before
    bool begun = false;
  };

  void compare(const Engine& engine, const Token& token);
  void close(Engine& engine);

  std::vector<Engine> engines_;
  double near_ = 0;  // pairs of tokens of two ranks, due far apart, that came at one moment
  double far_ = 0;   // those that came a little apart
  int passes_ = 0;
  double wait_ = 0;
  double pass_ = 0;
  double cycle_ = 0;  // s, from the end of one pass of an engine to the next
};

}  // namespace signalbox::dispatch
