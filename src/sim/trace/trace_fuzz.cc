// SPDX-License-Identifier: Apache-2.0
// Fuzzes the readers of traces. Law: what is read keeps the promises of trace.h, and what is
// refused says where. The first byte chooses the format; a form feed parts two texts.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "sim/trace/agentic.h"
#include "sim/trace/azure.h"
#include "sim/trace/mooncake.h"
#include "sim/trace/operations.h"
#include "sim/trace/servegen.h"
#include "sim/trace/tidal.h"

namespace {

using namespace signalbox;

constexpr std::size_t kInputMax = 1 << 16;

void judge(const Result<trace::Trace>& read) {
  if (!read) {
    if (read.error().message.empty()) std::abort();
    return;
  }
  if (trace::fault_of(*read)) std::abort();
  const Duration part = read->lasts / 3;
  if (trace::fault_of(trace::slice(*read, part, part + Duration(1)))) std::abort();
  if (read->calls.size() > 100) return;
  if (trace::fault_of(trace::splice(*read, read->lasts * 2))) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0 || size > kInputMax) return 0;
  const std::string_view input(reinterpret_cast<const char*>(data) + 1, size - 1);
  const std::size_t part = std::min(input.find('\f'), input.size());
  const std::string_view first = input.substr(0, part);
  const std::string_view second = input.substr(std::min(part + 1, input.size()));
  switch (data[0] % 6) {
    case 0: judge(trace::read_mooncake(input)); break;
    case 1: judge(trace::read_azure(input)); break;
    case 2: judge(trace::read_agentic(first, second)); break;
    case 3: {
      const auto servegen = trace::read_servegen("m", first, second);
      trace::ServeGenDraw wanted;
      wanted.calls_max = 1000;
      if (servegen) judge(trace::draw(*servegen, wanted, 1));
      break;
    }
    case 4: (void)trace::read_tidal(input); break;
    default: (void)trace::read_servegen_rates("m", input); break;
  }
  return 0;
}
