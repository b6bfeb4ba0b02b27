#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Does `dispatch: auto` find out by itself where holding wins?

Runs engines with a barrier that prefill, such that decode as well, ranks without a barrier, and
plain tensor parallelism, each sent at once, by shuttle, and by `auto`, which is told nothing.
Paired by seed. Prints a table in Markdown.

usage: auto.py [--signalbox build/release/signalbox] [--seeds 3] [--jobs N]
"""
import argparse
import concurrent.futures
import json
import os
import statistics
import subprocess
import sys

from run import ROOT, against

MODES = ("immediate", "shuttle", "auto")
FIGURES = ("ttft.mean", "ttft.p99", "e2e.mean")
# Where, scenario, engines or none to leave them, sessions a second, further settings.
CASES = [
    *(("barrier, prefill", "shuttle/auto", n, 27 * n * load, ["load.warm_up=60s"])
      for n in (2, 4, 8) for load in (0.05, 0.1, 0.3, 0.5, 0.7)),
    *(("barrier, decode beside", "engines/expert-parallel", None, rate, ["load.requests=3000"])
      for rate in (5, 10, 20)),
    *(("ranks without a barrier", "shuttle/plain-ranks", None, rate, []) for rate in (12, 54, 76)),
    *(("tensor parallelism", "routing/shared-prefixes", None, rate, []) for rate in (8, 16)),
]


def run(options, case, mode):
    _, scenario, engines, rate, sets = case
    requests = [f"load.requests={int(240 * rate)}"] if engines else []
    sets = [f"fleet[0].dispatch={mode}", f"load.sessions_per_second={rate:.4f}", *requests, *sets,
            *([f"fleet[0].count={engines}"] if engines else []), "expect=[]"]
    command = [options.signalbox, "sim", "run", ROOT / f"scenarios/{scenario}.yaml", "-o", "json",
               "--seeds", str(options.seeds)]
    for value in sets:
        command += ["--set", value]
    done = subprocess.run(command, capture_output=True, text=True)
    if not done.stdout:
        raise RuntimeError(done.stderr)
    return [{name: r["metrics"][name] for name in FIGURES}
            for r in json.loads(done.stdout)[0]["runs"]]


def line(case, by_mode):
    where, _, engines, rate, _ = case

    def times(runs):
        return " / ".join(f"{statistics.mean(r[f] for r in runs):.2f}" for f in FIGURES)

    def change(other, figure):
        a = against(by_mode["auto"], by_mode[other], figure)
        return f"{a['percent']:+.1f} % ± {a['interval']:.1f}"
    name = f"{where}, {engines} engines, {100 * rate / 27 / engines:.0f} %" if engines \
        else f"{where}, {rate:g}/s"
    return "| " + " | ".join(
        [name, *(times(by_mode[mode]) for mode in MODES),
         *(change(other, figure) for other in ("immediate", "shuttle")
           for figure in ("ttft.mean", "e2e.mean"))]) + " |"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--signalbox", default=str(ROOT / "build/release/signalbox"))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    options = parser.parse_args()
    print("| | at once | shuttle | auto | auto against at once: first token | end to end | "
          "auto against shuttle: first token | end to end |\n|---|---|---|---|---|---|---|---|")
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        jobs = [(case, {mode: pool.submit(run, options, case, mode) for mode in MODES})
                for case in CASES]
        for case, by_mode in jobs:
            print(line(case, {mode: job.result() for mode, job in by_mode.items()}), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
