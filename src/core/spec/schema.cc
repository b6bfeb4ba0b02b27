// SPDX-License-Identifier: Apache-2.0
// The kinds as data.
#include "core/spec/schema.h"

#include <cmath>

#include "core/spec/config.h"
#include "core/spec/field_lister.h"

namespace signalbox::spec {

std::string range_text(const Range& range, std::string (*print)(double), std::string_view noun) {
  const bool low = std::isfinite(range.low), high = std::isfinite(range.high);
  if (!low && !high) return {};
  std::string text = !high ? "at least " + print(range.low)
                     : !low ? "at most " + print(range.high)
                            : print(range.low) + " to " + print(range.high);
  return text + std::string(noun);
}

std::string plural(const TypeInfo& type) {
  if (type.form == TypeInfo::Form::Block) return "blocks";
  if (type.form == TypeInfo::Form::Enum) return "names: " + type.name;
  return type.name == "text" ? "texts" : type.name + "s";
}

std::vector<KindInfo> kinds() {
  return {
      {Kind::Gateway, "How the gateway listens, what it accepts, how it decides. At most one.",
       fields_of<Gateway>()},
      {Kind::Model, "Weights that clients can ask for, whoever serves them.", fields_of<Model>()},
      {Kind::Pool, "Engines that serve one Model in one way at one price.", fields_of<Pool>()},
      {Kind::Tenant,
       "Somebody who pays. When one is declared, every request needs a tenant's key.",
       fields_of<Tenant>()},
      {Kind::Objective, "What a good answer time is, and what speed is worth.",
       fields_of<Objective>()},
      {Kind::Route,
       "A public model name: alias, split between Models, fallback. A Model without a Route of its"
       " name gets one to itself.",
       fields_of<Route>()},
  };
}

}  // namespace signalbox::spec
