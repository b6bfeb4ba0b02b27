// SPDX-License-Identifier: Apache-2.0
// The gate of one instance: whether a pass is under way there that whoever departs now would have
// to wait for. Passes are not seen; their first tokens are. Pure; under the core's lock.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/time.h"
#include "core/dispatch/pass.h"
#include "core/model/ids.h"

namespace signalbox::dispatch {

class Gate {
 public:
  struct Aboard {
    model::RequestId request;
    model::AttemptId attempt;
    std::uint32_t rank = 0;
    double tokens = 0;     // to compute, >= 0
    double context = 0;    // of its prompt before those
    bool silent = false;   // nobody will see when its prompt has been computed
    std::uint64_t first_pass = 0; // set by depart()
    std::uint64_t last_pass = 0;  // set by depart(): the one that computes the end of its prompt
    double room_taken = 0;        // scratch
  };

  // These depart for the next pass, which takes them besides whoever is left of earlier ones; or
  // for the one that was announced and has not begun yet. `length` of all of it as predicted.
  void depart(Instant now, Duration length, double chunk_tokens, std::span<const Aboard> boarded);

  // The prompt of one aboard has been computed. When that ends the pass: how long it took.
  std::optional<Duration> computed(model::RequestId request, model::AttemptId attempt, Instant now);
  // One aboard has ended in another way.
  void left(model::RequestId request, model::AttemptId attempt);

  // Whether no pass is known to be under way.
  bool over() const { return over_; }
  bool open(Instant now) const { return now < begins_ || now >= opens_at(); }
  // When it opens if nobody tells sooner. A pass whose end nobody will see is over as predicted;
  // one that starts into the next by itself, because of prompts longer than a chunk, some time
  // before, so that who departs is there in time though the prediction is wrong; from then until
  // the predicted start of the next pass it is open. The others only when they are far too late.
  Instant opens_at() const;
  // For how long the pass under way should still take, as predicted.
  Duration busy(Instant now) const;
  // Whether the next pass, which begins by itself, has been given passengers already.
  bool announced(Instant now) const { return !over_ && now < begins_; }
  // How many passes, the next that can be boarded first, are full of those aboard already.
  int passes_to_come(Instant now) const;
  // Until the next pass that can still be boarded, as predicted. A pass that is late is expected to
  // take as long again as it is late (docs/decisions/0008): nobody knows that it ever ends.
  Duration begins_in(Instant now) const;

  // Adds to each rank what it computes in the next pass of those who go on and who boarded for it.
  void add_left_over(const Instance& instance, Instant now) const;
  bool goes_on() const;  // whether there is any

 private:
  void compute_a_pass(std::vector<Aboard>& aboard) const;

  std::vector<Aboard> aboard_;
  std::uint64_t pass_ = 0;
  bool over_ = true;
  Instant begins_{};      // the pass under way, as predicted if that is still to come
  Duration length_{};
  double chunk_tokens_ = 1;
};

}  // namespace signalbox::dispatch
