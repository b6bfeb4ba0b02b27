// SPDX-License-Identifier: Apache-2.0
// Makes command-line options of the emulator's described fields.
#include "app/engine_command.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <type_traits>

#include "app/natural.h"
#include "emulator/emulator.h"

namespace signalbox::app {
namespace {

class OptionAdder {
 public:
  explicit OptionAdder(CLI::App& command) : command_(command) {}

  template <typename Value>
  void operator()(Value& value, std::string_view name, std::string_view meaning,
                  const Range& range = {}) {
    std::string flag = "--" + std::string(name);
    std::replace(flag.begin(), flag.end(), '_', '-');
    if constexpr (std::is_same_v<Value, Bytes>) {
      command_.add_option(flag, value.value, std::string(meaning))
          ->check(CLI::Range(range.low, range.high));
    } else if constexpr (std::is_arithmetic_v<Value> && !std::is_same_v<Value, bool>) {
      CLI::Option* option =
          command_.add_option(flag, value, std::string(meaning))->capture_default_str();
      if constexpr (std::is_unsigned_v<Value>) option->check(natural);
      if (range.low > -1e300) option->check(CLI::Range(range.low, range.high));
    } else {
      command_.add_option(flag, value, std::string(meaning))->capture_default_str();
    }
  }

 private:
  CLI::App& command_;
};

}  // namespace

void EngineCommand::add(CLI::App& app) {
  CLI::App* c = app.add_subcommand("engine", "Emulate an engine: real protocols, no accelerator");
  c->footer("Example: signalbox engine --model Llama-3.1-70B --profile h100x4/fp8 "
            "--listen 127.0.0.1:8000 --count 8 --speed 10");
  c->add_option("--dialect", dialect_, "vllm or llamacpp")
      ->check(CLI::IsMember({"vllm", "llamacpp"}))
      ->capture_default_str();
  OptionAdder adder(*c);
  describe(adder, options_);
}

int EngineCommand::run() {
  options_.dialect =
      dialect_ == "llamacpp" ? emulator::Dialect::LlamaCpp : emulator::Dialect::Vllm;
  const auto code = emulator::run(options_);
  if (code) return *code;
  std::fprintf(stderr, "signalbox engine: %s\n", code.error().message.c_str());
  // A profile that does not exist is as wrong an argument as one that cannot be read.
  return code.error().code == Code::InvalidArgument ? 2 : 1;
}

}  // namespace signalbox::app
