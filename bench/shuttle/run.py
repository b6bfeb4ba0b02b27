#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Where does the shuttle help, and where not?

Sweeps scenarios/shuttle/paper.yaml over engines × load, burstiness, spread of prompt lengths, and
30 % more and less of every step time, each under four rules and several seeds:

  round-robin  over all ranks
  own          round robin over engines, whose ranks are picked by vLLM's rule
  at-once      by predicted cost, sent at once
  shuttle      by predicted cost, sent when passes begin

Load is relative to full chunks on all ranks, so a change of a step time changes the rate with it.
Prints one JSON document; --plots writes SVG files, --table Markdown.

usage: run.py [--signalbox build/release/signalbox] [--seeds 3] [--requests 6000] [--jobs N]
              [--out FILE] [--plots FOLDER] [--table FILE]
       run.py --p90 4     how much load each rule carries with 90 % within 4 s
"""
import argparse
import concurrent.futures
import datetime
import json
import math
import os
import pathlib
import statistics
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
SCENARIO = ROOT / "scenarios/shuttle/paper.yaml"
STEPS = {"prefill_ms": 60.0, "prefill_token_ms": 0.14, "prefill_square_ms": 1e-5}
RANKS, CHUNK, MEAN_PROMPT = 8, 8192, 2000
# Of a full chunk, what attention adds to the linear part: measured once by the scenario's own rate.
FULL_RATE = 27.0  # requests a second and engine at the steps above
RULES = {
    "round-robin": ["policy=round-robin", "fleet[0].dispatch=immediate"],
    "own": ["policy=round-robin", "fleet[0].dispatch=immediate", "fleet[0].pins_ranks=false"],
    "at-once": ["fleet[0].dispatch=immediate"],
    "shuttle": ["fleet[0].dispatch=shuttle"],
}
FIGURES = ("ttft.mean", "ttft.p90", "ttft.p99", "throughput", "completed")
# Student's t, 97.5 %, by degrees of freedom.
T = {1: 12.706, 2: 4.303, 3: 3.182, 4: 2.776, 5: 2.571, 6: 2.447, 7: 2.365, 8: 2.306, 9: 2.262}


def say(*words):
    print(*words, file=sys.stderr, flush=True)


def cell(engines=4, load=0.5, cv=1.0, spread=1.0, **steps):
    return {"engines": engines, "load": load, "cv": cv, "spread": spread, **{**STEPS, **steps}}


def sweeps():
    yield "load", [cell(engines=n, load=l) for n in (2, 4, 8) for l in (0.3, 0.5, 0.7, 0.8)]
    yield "burstiness", [cell(load=l, cv=cv) for cv in (0.3, 2.0, 4.0) for l in (0.3, 0.5, 0.7)]
    yield "lengths", [cell(load=l, spread=s) for s in (0.0, 0.5, 1.5) for l in (0.3, 0.5, 0.7)]
    yield "steps", [cell(**{key: value * factor}) for key, value in STEPS.items()
                    for factor in (0.7, 1.3)]


def settings(c):
    pass_ms = c["prefill_ms"] + CHUNK * c["prefill_token_ms"]
    usual = STEPS["prefill_ms"] + CHUNK * STEPS["prefill_token_ms"]
    rate = FULL_RATE * usual / pass_ms * c["engines"] * c["load"]
    return [f"fleet[0].count={c['engines']}", f"load.sessions_per_second={rate:.4f}",
            f"load.arrivals.cv={c['cv']}", f"load.turn.spread={c['spread']}",
            f"load.turn.median={MEAN_PROMPT / math.exp(c['spread'] ** 2 / 2):.1f}",
            *(f"fleet[0].steps.{key}={c[key]}" for key in STEPS), "expect=[]"]


def run(options, c, rule):
    sets = [f"load.requests={options.requests}", *settings(c), *RULES[rule]]
    command = [options.signalbox, "sim", "run", SCENARIO, "-o", "json", "--seeds",
               str(options.seeds)]
    for value in sets:
        command += ["--set", value]
    done = subprocess.run(command, capture_output=True, text=True)
    if not done.stdout:
        raise RuntimeError(done.stderr)
    runs = json.loads(done.stdout)[0]["runs"]
    return [{name: r["metrics"][name] for name in FIGURES} for r in runs]


def against(runs, others, figure):
    """Mean of the logarithm of the ratio, paired by seed, and half its 95 % interval."""
    logs = [math.log(a[figure] / b[figure]) for a, b in zip(runs, others)]
    middle = statistics.mean(logs)
    half = T[len(logs) - 1] * statistics.stdev(logs) / math.sqrt(len(logs)) if len(logs) > 1 else 0
    return {"percent": round(100 * math.expm1(middle), 1), "interval": round(100 * half, 1)}


def summary(c, by_rule):
    row = {**c, "rules": {}}
    for rule, runs in by_rule.items():
        row["rules"][rule] = {f: round(statistics.mean(r[f] for r in runs), 4) for f in FIGURES}
    for rule in ("round-robin", "own", "at-once"):
        row[f"shuttle_against_{rule}"] = {
            f: against(by_rule["shuttle"], by_rule[rule], f) for f in ("ttft.mean", "ttft.p99")}
    return row


def name_of(sweep, c):
    if sweep == "load":
        return f"{c['engines']} engines, {100 * c['load']:.0f} %"
    if sweep == "burstiness":
        return f"gaps' cv {c['cv']:g}, {100 * c['load']:.0f} %"
    if sweep == "lengths":
        return f"lengths' spread {c['spread']:g}, {100 * c['load']:.0f} %"
    changed = next(key for key, value in STEPS.items() if c[key] != value)
    return f"{changed} {c[changed] / STEPS[changed]:.0%}"


def table(result):
    lines = []
    for sweep, rows in result["sweeps"].items():
        lines += [f"### {sweep}", "",
                  "| | round robin | own balance | at once | shuttle | mean against round robin | "
                  "p99 against round robin | mean against own balance | p99 against own |",
                  "|---|---|---|---|---|---|---|---|---|"]
        for row in rows:
            def times(rule, r=row):
                f = r["rules"][rule]
                return " / ".join(f"{f[k]:.2f}" for k in ("ttft.mean", "ttft.p90", "ttft.p99"))

            def change(rule, figure, r=row):
                a = r[f"shuttle_against_{rule}"][figure]
                return f"{a['percent']:+.0f} % ± {a['interval']:.0f}"
            lines.append("| " + " | ".join(
                [name_of(sweep, row), *(times(rule) for rule in RULES),
                 *(change(rule, f) for rule in ("round-robin", "own")
                   for f in ("ttft.mean", "ttft.p99"))]) + " |")
        lines.append("")
    return "\n".join(lines)


COLOURS = {"round-robin": "#888", "own": "#c60", "at-once": "#06c", "shuttle": "#090"}


def plot(rows, title, label):
    """Mean times to first token by load, a line a rule."""
    width, height, left, bottom = 420, 280, 56, 40
    top = max(row["rules"][rule]["ttft.mean"] for row in rows for rule in RULES) * 1.05
    loads = sorted({row["load"] for row in rows})

    def x(load):
        return left + (width - left - 16) * (load - loads[0]) / (loads[-1] - loads[0])

    def y(seconds):
        return height - bottom - (height - bottom - 30) * seconds / top
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
           'font-family="sans-serif" font-size="11">',
           f'<rect width="{width}" height="{height}" fill="#fff"/>',
           f'<text x="{left}" y="18" font-size="13">{title}</text>']
    for i in range(6):
        value = top * i / 5
        out.append(f'<line x1="{left}" x2="{width - 16}" y1="{y(value):.1f}" y2="{y(value):.1f}" '
                   f'stroke="#ddd"/><text x="{left - 6}" y="{y(value) + 4:.1f}" '
                   f'text-anchor="end">{value:.1f} s</text>')
    for load in loads:
        out.append(f'<text x="{x(load):.1f}" y="{height - bottom + 16}" '
                   f'text-anchor="middle">{100 * load:.0f} %</text>')
    out.append(f'<text x="{(left + width) / 2}" y="{height - 6}" text-anchor="middle">{label}'
               '</text>')
    for i, (rule, colour) in enumerate(COLOURS.items()):
        points = " ".join(f"{x(r['load']):.1f},{y(r['rules'][rule]['ttft.mean']):.1f}"
                          for r in sorted(rows, key=lambda r: r["load"]))
        out.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"/>')
        out.append(f'<text x="{left + 10}" y="{42 + 14 * i}" fill="{colour}">{rule}</text>')
    return "\n".join([*out, "</svg>"]) + "\n"


def highest_load(options, engines, rule, p90):
    """The load, in hundredths, up to which 90 % have their first token within `p90` seconds."""
    low, high = 0.05, 1.0
    while high - low > 0.01:
        load = (low + high) / 2
        runs = run(options, cell(engines=engines, load=load), rule)
        held = statistics.mean(r["ttft.p90"] for r in runs) <= p90
        low, high = (load, high) if held else (low, load)
    return round(low, 2)


def plots(result, folder):
    pathlib.Path(folder).mkdir(parents=True, exist_ok=True)
    groups = {}
    for sweep, key, words in (("load", "engines", "{:g} engines"),
                              ("burstiness", "cv", "4 engines, gaps' cv {:g}"),
                              ("lengths", "spread", "4 engines, lengths' spread {:g}")):
        for row in result["sweeps"][sweep]:
            groups.setdefault((sweep, row[key], words.format(row[key])), []).append(row)
    for (sweep, value, title), rows in groups.items():
        path = pathlib.Path(folder) / f"shuttle-{sweep}-{value:g}.svg"
        path.write_text(plot(rows, "Mean time to first token, " + title, "load"))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--signalbox", default=str(ROOT / "build/release/signalbox"))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--requests", type=int, default=6000)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--p90", type=float, metavar="SECONDS",
                        help="no sweep, but the load that each rule carries within this time")
    parser.add_argument("--out", help="file for the JSON document; default: standard output")
    parser.add_argument("--plots", help="folder for plots")
    parser.add_argument("--table", help="file for tables in Markdown")
    options = parser.parse_args()
    if options.p90:
        with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
            found = {(n, rule): pool.submit(highest_load, options, n, rule, options.p90)
                     for n in (2, 4, 8) for rule in RULES}
            for (n, rule), load in found.items():
                print(f"{n} engines, {rule}: {load.result():.2f}", flush=True)
        return 0
    result = {"bench": "shuttle", "date": datetime.date.today().isoformat(),
              "seeds": options.seeds, "requests": options.requests, "sweeps": {}}
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        jobs = {sweep: [(c, {rule: pool.submit(run, options, c, rule) for rule in RULES})
                        for c in cells] for sweep, cells in sweeps()}
        for sweep, cells in jobs.items():
            rows = result["sweeps"][sweep] = []
            for c, by_rule in cells:
                rows.append(summary(c, {rule: job.result() for rule, job in by_rule.items()}))
                say(sweep, name_of(sweep, c), rows[-1]["shuttle_against_round-robin"]["ttft.mean"])
    document = json.dumps(result, indent=1)
    if options.out:
        pathlib.Path(options.out).write_text(document + "\n")
    else:
        print(document)
    if options.plots:
        plots(result, options.plots)
    if options.table:
        pathlib.Path(options.table).write_text(table(result) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
