# SPDX-License-Identifier: Apache-2.0
# The goals that people and CI call. Each is complete on a fresh Debian 12 with root or sudo.
.DEFAULT_GOAL := build
.PHONY: build test demo fuzz bench soak e2e-clients e2e-vllm

build:        ## the release binary at build/release/signalbox
	scripts/setup build
	scripts/build release signalbox

test:         ## one build, every unit, law, house and end-to-end test
	scripts/test

demo:         ## two real engines behind a gateway; ENGINE=emulated: eight emulated ones
	scripts/demo

fuzz:         ## every fuzzer for FUZZ_SECONDS (60)
	scripts/setup sanitize
	scripts/fuzz $${FUZZ_SECONDS:-60}

bench:        ## micro-benchmarks and the comparison with nginx
	scripts/setup bench
	scripts/bench

soak:         ## minutes of churn, disconnects and engine kills; memory must stay flat
	scripts/setup build test
	scripts/build release signalbox
	SIGNALBOX=build/release/signalbox e2e/soak

e2e-clients:  ## official SDKs and load generators through the gateway
	scripts/setup build test llamacpp
	scripts/build release signalbox
	SIGNALBOX=build/release/signalbox e2e/clients/run

e2e-vllm:     ## the real vLLM on CPU behind the gateway
	scripts/setup build test
	scripts/build release signalbox
	SIGNALBOX=build/release/signalbox e2e/vllm/run
