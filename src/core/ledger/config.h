// SPDX-License-Identifier: Apache-2.0
// Settings of the ledger.
#pragma once

#include "base/describe.h"

namespace signalbox::ledger {

struct Config {
  int keys_max = 10'000;
};

template <typename Visitor>
void describe(Visitor& v, Config& c) {
  v(c.keys_max, "keys_max",
    "Tenants, models and pools with totals of their own; later ones are summed together.",
    Range{1, 1e6});
}

}  // namespace signalbox::ledger
