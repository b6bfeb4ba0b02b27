#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Our placement beside every peer's rule, on recorded traffic, cell by cell.

A cell is a trace, a fleet and a load; each is `signalbox sim compare` over the same seeds for all
policies. Every finished cell is a line of the output file, so that a run that was interrupted goes
on where it stopped.

usage: bench/routing/run.py [--out FILE] [--traces DIR] [--seeds 5] [--only TEXT] [--table]
"""
import argparse
import json
import math
import pathlib
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
TRACES = {
    "mooncake": ["--format", "mooncake", "--trace", "mooncake-conversation.jsonl.gz"],
    "azure": ["--format", "azure", "--trace", "azure-2023-code.csv.gz"],
    "agentic": ["--format", "agentic", "--trace", "agentic-coding-calls.csv.gz",
                "--sessions", "agentic-coding-sessions.csv"],
    "servegen": ["--format", "servegen", "--trace", "servegen-client-rates.csv.gz",
                 "--lengths", "servegen-lengths.csv.gz", "--clients", "m-large",
                 "--set", "load.trace.start=36000s", "--set", "load.trace.length=20m"],
}
LOADS = {"eight": [0.6, 0.8, 0.95, 1.1], "mixed": [0.6, 0.8, 0.95, 1.1],
         "sixty-four": [0.8, 0.95]}
BEST = "signalbox,lmetric,smg-cache-aware,llmd-sticky,mooncake,preble,llmd-blend"
OURS = "signalbox"
WITH_PREFIXES = {"mooncake", "agentic"}


def cells():
    for fleet, loads in LOADS.items():
        for trace in TRACES:
            for load in loads:
                yield {"trace": trace, "fleet": fleet, "load": load}


def name(cell):
    return f"{cell['trace']} {cell['fleet']} {cell['load']:g}"


def run(cell, args):
    command = [str(args.signalbox), "sim", "compare", "--load", str(cell["load"]),
               "--fleet", str(HERE / "fleets" / f"{cell['fleet']}.yaml"),
               "--policies", BEST if cell["fleet"] == "sixty-four" else "all",
               "--seeds", str(args.seeds), "--warm-up", str(args.warm_up),
               "--measure", str(args.measure), "-o", "json"]
    for word in TRACES[cell["trace"]]:
        file = args.traces / word
        command.append(str(file) if word.endswith((".gz", ".csv")) else word)
    begun = time.monotonic()
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    if done.returncode != 0:
        sys.exit(f"bench/routing: {name(cell)}: exit code {done.returncode}")
    return {**json.loads(done.stdout), **cell, "took_s": round(time.monotonic() - begun, 1)}


def summary(cells_done):
    """A line per cell: ours, the best peer by mean E2E, and where it matters who is ahead."""
    lines = [f"{'cell':28}{'ours':>8}{'best':>8}  {'peer':18}{'E2E':>8}{'±':>6}{'TTFT':>8}"
             f"{'good':>8}{'p99 TTFT':>10}"]
    ahead = count = prefixes_ahead = prefixes = 0
    for cell in cells_done:
        by = {p["policy"]: p for p in cell["policies"]}
        ours = by.pop(OURS)
        best = min(by.values(), key=lambda p: p["e2e_mean_s"])
        good = max(p["goodput"] for p in by.values())
        ttft = min(p["ttft_mean_s"] for p in by.values())
        tail = min(p["ttft_p99_s"] for p in by.values())
        clear = best["log_e2e_against_ours"] - best["interval"] > 0
        if cell["load"] <= 1:
            count += 1
            ahead += clear
            if cell["trace"] in WITH_PREFIXES or cell["fleet"] == "mixed":
                prefixes += 1
                prefixes_ahead += clear
        lines.append(
            f"{name(cell):28}{ours['e2e_mean_s']:8.2f}{best['e2e_mean_s']:8.2f}  "
            f"{best['policy']:18}{math.expm1(best['log_e2e_against_ours']) * 100:+7.1f}%"
            f"{best['interval'] * 100:6.1f}{(ours['ttft_mean_s'] / ttft - 1) * 100:+7.0f}%"
            f"{(ours['goodput'] - good) * 100:+8.1f}{ours['ttft_p99_s'] / tail:9.2f}x")
    lines.append(f"\nmean E2E clearly better than every peer in {ahead} of {count} cells up to "
                 f"capacity; of those with prefixes or mixed hardware, {prefixes_ahead} of "
                 f"{prefixes}")
    return "\n".join(lines)


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--signalbox", type=pathlib.Path, default=ROOT / "build/release/signalbox")
    p.add_argument("--traces", type=pathlib.Path, default=ROOT.parent / "shared/data/traces")
    p.add_argument("--out", type=pathlib.Path,
                   default=ROOT / "build/bench-results/routing.jsonl")
    p.add_argument("--seeds", type=int, default=5)
    p.add_argument("--warm-up", type=float, default=300, help="virtual seconds")
    p.add_argument("--measure", type=float, default=1200, help="virtual seconds")
    p.add_argument("--only", default="", help="cells whose name has this text")
    p.add_argument("--table", action="store_true", help="of what is there; run nothing")
    args = p.parse_args()
    args.out.parent.mkdir(parents=True, exist_ok=True)
    lines = args.out.read_text().splitlines() if args.out.exists() else []
    done = {name(cell): cell for cell in map(json.loads, lines)}
    for cell in () if args.table else cells():
        if args.only not in name(cell) or name(cell) in done:
            continue
        result = run(cell, args)
        done[name(cell)] = result
        with args.out.open("a") as out:
            out.write(json.dumps(result) + "\n")
        print(f"{name(cell)}: {result['took_s']:.0f} s", file=sys.stderr)
    print(summary(done.values()))


if __name__ == "__main__":
    main()
