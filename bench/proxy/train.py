#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Loads a gateway that counts what runs, so that the next build can be laid out by it.

usage: bench/proxy/train.py GATEWAY     (scripts/profile builds one and calls this)
"""
import argparse
import os
import pathlib
import sys
import tempfile

import run

CASES = (*run.CASES.values(), ("prefixed", 32, 0))


def main():
    gateway, = sys.argv[1:]
    options = argparse.Namespace(signalbox=os.path.abspath(gateway), cores="0,1", favour=False,
                                 seconds=2, rate=1000)
    with tempfile.TemporaryDirectory(prefix="signalbox-train-") as name:
        run.write_bodies(pathlib.Path(name))
        bench = run.Bench(options, pathlib.Path(name))
        try:
            base, port, admin = 19100, 19098, 19097
            bench.mock(base, run.ENGINES)
            process = bench.signalbox(port, admin, base, run.ENGINES)
            run.wait_for(f"http://127.0.0.1:{admin}/readyz", process)
            for bodies, connections, gap in CASES:
                run.get(f"http://127.0.0.1:{base}/control?gap_ms={gap}")
                print(bodies, bench.load(port, bodies, connections, options.seconds), flush=True)
            bench.latency(port)
            bench.stop(process)  # the counts are written when it ends by itself
        finally:
            bench.stop_all()


if __name__ == "__main__":
    main()
