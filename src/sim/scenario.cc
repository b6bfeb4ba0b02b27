// SPDX-License-Identifier: Apache-2.0
// What follows from a scenario's values alone.
#include "sim/scenario.h"

namespace signalbox::sim {

truth::StepTable table_of(const Steps& s) {
  return truth::StepTable::formula(s.prefill_ms, s.prefill_token_ms, s.prefill_square_ms,
                                   s.decode_ms, s.decode_sequence_ms, s.decode_token_ms);
}

int endpoints_of(const EngineGroup& group) { return group.pins_ranks ? group.spec.ranks : 1; }

Amount amount_of(Fault::Kind kind) {
  using Kind = Fault::Kind;
  switch (kind) {
    case Kind::Slow:
    case Kind::Delay:
    case Kind::Reprice: return Amount::Factor;
    case Kind::Fail:
    case Kind::Throttle:
    case Kind::Drop:
    case Kind::Cut: return Amount::Share;
    default: return Amount::None;
  }
}

bool is_of_all(Fault::Kind kind) {
  return kind == Fault::Kind::Reprice || kind == Fault::Kind::Drain;
}

bool is_of_a_moment(Fault::Kind kind) {
  return kind == Fault::Kind::Forget || kind == Fault::Kind::Drain;
}

}  // namespace signalbox::sim
