#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Is the simulator's engine true? Simulates measured runs of real engines and compares.

Every row of the table of measured runs (model, GPU, tensor parallelism, prompt and answer length,
closed-loop concurrency) that the truth model has step times for is simulated as it was measured:
so many users who each ask again as soon as they are answered. Its step times are sums of measured
kernels and know nothing of these runs, so the time per token is judged on all of them. What the
tables cannot know of a first token is how many prompt tokens an engine puts into one step and how
long its front end takes: for each engine (vLLM, SGLang, TensorRT-LLM) a step budget and one factor,
chosen on half of the (model, GPU) pairs and judged on the other half. A pair is never split.

Prints one JSON document; a table for people goes to stderr.

usage: run.py [--measured FILE] [--signalbox build/release/signalbox] [--out FILE] [--jobs N]
"""
import argparse
import collections
import concurrent.futures
import csv
import gzip
import json
import os
import pathlib
import random
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
MEASURED = ROOT.parent / "shared/data/serving-measured.csv.gz"
CALLS = ("session,subagent,call,t_s,think_s,api_s,ttft_s,input_tokens,output_tokens,blocks,"
         "prefix_of_call,shared_blocks,input_types,stop,model")
SESSIONS = ("session,calls,subagents,tool_tokens,system_tokens,duration_s,input_tokens,"
            "output_tokens")
# Lengths of the public benchmark are drawn from this share of the nominal ones to all of them.
LEAST_SHARE = {"inferencex": 0.8, "vendor-run": 1.0}
QUEUE_LIMITED = 0.5  # a first token that takes this share of an answer's decoding was waited for
BUDGETS = (2048, 8192)  # defaults of engines
ALLOWED = {"tpot": 0.10, "ttft": 0.25}  # median relative error


def say(*words):
    print(*words, file=sys.stderr, flush=True)


def profiles():
    rows = csv.DictReader((ROOT / "data/truth/profiles.csv").open())
    return {(r["model"], r["gpu"], r["tp"], r["precision"]) for r in rows}


def plain_name(model):
    return model.split("/")[-1].removesuffix("-FP8").removesuffix("-Instruct")


def covered(path):
    """Runs of one aggregated engine without data or pipeline parallelism."""
    known = profiles()
    for number, r in enumerate(csv.DictReader(gzip.open(path, "rt"))):
        key = (plain_name(r["model"]), r["gpu"], r["tp"], r["precision"])
        alone = r["attention_dp"] in ("", "1") and r["pp"] in ("", "1")
        if r["mode"] == "agg" and alone and key in known:
            yield {"row": number, "model": key[0], "gpu": r["gpu"], "tp": int(r["tp"]),
                   "precision": r["precision"], "engine": r["engine"], "origin": r["origin"],
                   "isl": int(r["isl"]), "osl": int(r["osl"]),
                   "concurrency": int(r["concurrency"]), "ttft": float(r["ttft_ms"]) / 1e3,
                   "tpot": float(r["tpot_ms"]) / 1e3}


def write_load(folder, run):
    """One session a user, each with as many calls as the load of the benchmark has."""
    rng = random.Random(run["row"])
    users, least = run["concurrency"], LEAST_SHARE[run["origin"]]
    calls = max(4, min(10, 1500 // users))
    with open(f"{folder}/calls.csv", "w") as c, open(f"{folder}/sessions.csv", "w") as s:
        print(CALLS, file=c)
        print(SESSIONS, file=s)
        for user in range(1, users + 1):
            for call in range(calls):
                isl = round(run["isl"] * rng.uniform(least, 1))
                osl = max(2, round(run["osl"] * rng.uniform(least, 1)))
                print(f"{user},,{call},0,0,1,,{isl},{osl},{max(1, isl // 64)},-1,0,t,end,m",
                      file=c)
            print(f"{user},{calls},0,0,0,1,1,1", file=s)
    return users * calls


def simulate(binary, run, budget):
    """What users of the simulated engine see, in seconds."""
    with tempfile.TemporaryDirectory(prefix="signalbox-truth-") as folder:
        requests = write_load(folder, run)
        scenario = {
            "policy": "round-robin",
            "fleet": [{"model": run["model"], "count": 1,
                       "profile": f"{run['gpu']}x{run['tp']}/{run['precision']}",
                       "concurrency_max": run["concurrency"],
                       "engine": {"distortion": 0, "noise": 0, "sequences_max": 1024,
                                  "step_tokens_max": budget}}],
            "load": {"requests": requests, "sessions_at_once": run["concurrency"], "ramp": "0s",
                     "leavers": 0, "plain": 0, "capped": 0, "sdk": {"retries_max": 0},
                     "trace": {"format": "agentic", "file": f"{folder}/calls.csv",
                               "sessions_file": f"{folder}/sessions.csv"}},
            "gateway": {"timeouts": {"first_token": "1h", "event_idle": "1h"}},
            "world": {"replay": False, "check": False}}
        path = f"{folder}/scenario.yaml"
        pathlib.Path(path).write_text(json.dumps(scenario))
        done = subprocess.run([binary, "sim", "run", path, "-o", "json"], capture_output=True,
                              text=True)
        if not done.stdout:
            raise RuntimeError(f"row {run['row']}: {done.stderr}")
        metrics = json.loads(done.stdout)[0]["runs"][0]["metrics"]
        if metrics["completed"] < 1:
            return None  # it waits for longer than any client does
        return {"ttft": metrics["ttft.mean"], "tpot": metrics["tpot.mean"]}


def queue_limited(run):
    return run["ttft"] > QUEUE_LIMITED * run["osl"] * run["tpot"]


def errors(runs, what, factor=None):
    """Relative errors; `factor` by engine is how much longer than simulated it takes."""
    return [abs(r["simulated"][b][what] * f / r[what] - 1) for r in runs
            for b, f in [(factor or {}).get(r["engine"], (BUDGETS[-1], 1))]]


def median(values):
    return round(statistics.median(values), 3) if values else None


def fit(tuned):
    """For each engine the budget and the factor with the least median error."""
    chosen = {}
    for engine in sorted({r["engine"] for r in tuned}):
        runs = [r for r in tuned if r["engine"] == engine]
        options = []
        for budget in BUDGETS:
            factor = statistics.median(r["ttft"] / r["simulated"][budget]["ttft"] for r in runs)
            error = statistics.median(errors(runs, "ttft", {engine: (budget, factor)}))
            options.append((error, budget, factor))
        chosen[engine] = min(options)[1:]
    return chosen


def table(runs, what, factor, key):
    groups = collections.defaultdict(list)
    for r in runs:
        groups[key(r)].append(r)
    rows = []
    for name, members in sorted(groups.items()):
        ratios = [statistics.median(r["simulated"][b][what] * f / r[what] for r in members)
                  for b, f in [factor.get(members[0]["engine"], (BUDGETS[-1], 1))]]
        rows.append({"group": name, "runs": len(members),
                     "median_error": median(errors(members, what, factor)),
                     "simulated_over_measured": round(ratios[0], 3)})
    return rows


def judge(runs):
    pairs = sorted({(r["model"], r["gpu"]) for r in runs})
    tuned_pairs = set(pairs[::2])
    plain = [r for r in runs if not queue_limited(r)]
    waited = [r for r in runs if queue_limited(r)]
    tuned = [r for r in plain if (r["model"], r["gpu"]) in tuned_pairs]
    judged = [r for r in plain if (r["model"], r["gpu"]) not in tuned_pairs]
    factor = fit(tuned)
    # The budget moves the time per token as well: the same one for both.
    budget_only = {engine: (budget, 1) for engine, (budget, _) in factor.items()}
    def group(r):
        return f"{r['model']} {r['gpu']} {r['precision']} {r['engine']}"
    def worst(what, members, factors):
        found = sorted(zip(errors(members, what, factors), (r["row"] for r in members)))[-5:]
        return [{"error": round(e, 2), **{k: v for k, v in next(
            r for r in members if r["row"] == row).items() if k != "simulated"}}
            for e, row in reversed(found)]
    result = {"runs": len(runs), "queue_limited": len(waited),
              "tuned_pairs": sorted(" ".join(p) for p in tuned_pairs),
              "engines": {e: {"step_tokens": b, "ttft_factor": round(f, 3)}
                          for e, (b, f) in factor.items()}}
    for what, factors, members in (("tpot", budget_only, plain), ("ttft", factor, judged)):
        error = median(errors(members, what, factors))
        result[what] = {
            "judged": len(members), "median_error": error, "allowed": ALLOWED[what],
            "passes": error <= ALLOWED[what],
            "halves": {"tuned": median(errors(tuned, what, factors)),
                       "other": median(errors(judged, what, factors))},
            "queue_limited": median(errors(waited, what, factors)),
            "groups": table(plain, what, factors, group),
            "worst": worst(what, members, factors)}
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--measured", default=MEASURED, help="table of measured runs")
    parser.add_argument("--signalbox", default=str(ROOT / "build/release/signalbox"))
    parser.add_argument("--out", help="file for the JSON document; default: standard output")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    options = parser.parse_args()
    runs = list(covered(options.measured))
    say(f"{len(runs)} measured runs that the truth model has step times for")
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for budget in BUDGETS:
            got = pool.map(lambda r, b=budget: simulate(options.signalbox, r, b), runs)
            for run, answer in zip(runs, got):
                run.setdefault("simulated", {})[budget] = answer
            say(f"with {budget} tokens a step: done")
    endless = [r["row"] for r in runs if None in r["simulated"].values()]
    result = judge([r for r in runs if r["row"] not in endless])
    result["not_answered"] = endless
    for what in ("tpot", "ttft"):
        r = result[what]
        say(f"\n{what}: median error {100 * r['median_error']:.1f} % of {r['judged']} judged runs "
            f"(allowed {100 * r['allowed']:.0f} %); {100 * r['halves']['tuned']:.1f} % on the "
            f"tuned half, {100 * r['halves']['other']:.1f} % on the other, "
            f"{100 * r['queue_limited']:.1f} % where queue-limited")
        for g in r["groups"]:
            say(f"  {g['group']:52} {g['runs']:4} {100 * g['median_error']:6.1f} %  "
                f"simulated/measured {g['simulated_over_measured']:.2f}")
    document = json.dumps(result, indent=1)
    if options.out:
        pathlib.Path(options.out).write_text(document + "\n")
    else:
        print(document)
    return 0


if __name__ == "__main__":
    sys.exit(main())
