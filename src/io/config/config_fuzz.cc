// SPDX-License-Identifier: Apache-2.0
// Any bytes are either a configuration that survives being written and read again, or an error.
#include <cstddef>
#include <cstdint>
#include <string>

#include "base/check.h"
#include "core/spec/compile.h"
#include "io/config/load.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace signalbox;
  if (size > 1 << 16) return 0;
  const std::string text(reinterpret_cast<const char*>(data), size);
  spec::Report report;
  const auto documents = config::read_yaml("fuzz.yaml", text, {}, report);
  const spec::Config config = spec::parse(documents, report);
  if (!report.clean()) {
    CHECK(!report.error().message.empty());
    return 0;
  }
  spec::Report again;
  const auto written = config::read_yaml("again.yaml", spec::to_yaml(config), {}, again);
  CHECK(spec::parse(written, again) == config);
  CHECK(again.clean());
  spec::Directory directory;
  spec::compile(config, directory, {});
  return 0;
}
