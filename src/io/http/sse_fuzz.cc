// SPDX-License-Identifier: Apache-2.0
// Fuzzes the event scanner. Laws: the events that the standard dispatches, in any pieces; every
// byte passed on once, also when events are too long to hold.
#include "io/http/fuzz_support.h"
#include "io/http/sse_reference.h"
#include "io/http/transcript.h"

namespace {

using namespace signalbox::http;

std::string dispatched(std::string_view input, const std::vector<std::size_t>& sizes) {
  std::string out;
  SseScanner scanner(1 << 20);
  auto drain = [&] {
    while (const auto event = scanner.next()) {
      if (event->kind != SseEvent::Kind::Data) continue;
      out.append(event->type).append(" | ").append(event->data).append("\n");
    }
  };
  for (const std::string& part : transcript::pieces(input, sizes)) {
    scanner.feed(part);
    drain();
  }
  scanner.finish();
  drain();
  return out;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  if (size > fuzz::kInputMax) return 0;
  std::string expected;
  for (const auto& [type, text] : SseReference().read(std::string(input))) {
    expected.append(type).append(" | ").append(text).append("\n");
  }
  fuzz::must_equal("the events of the standard", expected, dispatched(input, {}));
  const auto sizes = fuzz::split_of(input, 2);
  fuzz::must_equal("the events of the standard, in pieces", expected, dispatched(input, sizes));
  std::string forwarded;
  fuzz::must_equal("splits change nothing", transcript::events(input, {}, 1 << 20),
                   transcript::events(input, sizes, 1 << 20, &forwarded));
  fuzz::must_equal("every byte once", std::string(input), forwarded);
  forwarded.clear();
  const std::string seen = transcript::events(input, sizes, size % 32, &forwarded);
  fuzz::must_equal("every byte once, with a small cap", std::string(input), forwarded);
  if (seen.find("carried and direct differ") != std::string::npos &&
      input.find("carried and direct differ") == std::string_view::npos) {
    std::abort();
  }
  return 0;
}
