#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How soon do predictions come near the truth, on a real engine and on emulated ones?

real:      genuine llama.cpp with a small real model. First the noise floor: one request, asked
           again and again straight from the engine. Then requests of mixed lengths through a
           gateway that was told nothing but the engine's address; predicted against actual.
emulated:  engines whose speed is distorted by up to 30 % in ways that nobody is told; from a
           catalogue row as prior, and from the wide guess of a gateway that was told nothing.

Prints one JSON document; a table for people goes to stderr.

usage: run.py [real] [emulated] [--signalbox build/release/signalbox] [--out FILE] [--seeds 5]
"""
import argparse
import asyncio
import contextlib
import datetime
import json
import math
import os
import pathlib
import platform
import random
import re
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[2]
CACHE = pathlib.Path(os.environ.get("SIGNALBOX_CACHE", ROOT / ".cache")) / "llamacpp"
GGUF = CACHE / "SmolLM2-135M-Instruct.Q4_1.gguf"
WORDS = ("the of and to in is that for it as was with be by on not he his but at are this have "
         "from or had an they which one you were all her she there would their we him "
         "been has").split()
SPANS = [("1-20", 0, 20), ("21-50", 20, 50), ("51-100", 50, 100)]
ALLOWED_POINTS = 15


def say(*words):
    print(*words, file=sys.stderr, flush=True)


def free_port(count=1):
    """The first of `count` ports in a row that nobody listens on."""
    for _ in range(200):
        with contextlib.ExitStack() as stack:
            try:
                first = stack.enter_context(socket.socket())
                first.bind(("127.0.0.1", 0))
                base = first.getsockname()[1]
                for i in range(1, count):
                    stack.enter_context(socket.socket()).bind(("127.0.0.1", base + i))
                return base
            except (OSError, OverflowError):
                continue
    raise OSError("no free ports")


def get(port, path):
    return json.loads(urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=20).read())


class World:
    """Processes that end with it."""

    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix="signalbox-calibration-")
        self.children = []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for child in reversed(self.children):
            if child.poll() is None:
                os.killpg(child.pid, signal.SIGKILL)
            child.wait()

    def start(self, *command, **env):
        log = open(f"{self.folder}/{len(self.children)}.log", "w")
        child = subprocess.Popen([str(c) for c in command], stdout=log, stderr=log,
                                 start_new_session=True, env={**os.environ, **env})
        self.children.append(child)
        return child, log.name

    def until(self, what, seconds, test):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            with contextlib.suppress(OSError, ValueError, KeyError):
                if test():
                    return
            for child in self.children:
                if child.poll() is not None:
                    raise RuntimeError(f"a process ended early; logs are in {self.folder}")
            time.sleep(0.05)
        raise RuntimeError(f"{what} did not happen; logs are in {self.folder}")

    def gateway(self, binary, arguments):
        listen, admin = free_port(), free_port()
        self.start(binary, "serve", *arguments, "--listen", f"127.0.0.1:{listen}", "--admin",
                   f"127.0.0.1:{admin}", "--seed", "1", "--log-level", "warn", "--threads", "1")
        self.until("the gateway is ready", 60, lambda: get(admin, "/readyz")["status"] == "ok")
        self.until("all engines are known", 60, lambda: all(
            e["observed"] for p in get(admin, "/v1/fleet")["pools"] for e in p["endpoints"]))
        return listen, admin


async def stream(port, body):
    """One streamed request: (request id or None, seconds to the first text, seconds in all)."""
    begun = time.monotonic()
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 22)
    try:
        data = json.dumps({**body, "stream": True}).encode()
        writer.write(b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
                     b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n%s"
                     % (len(data), data))
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        if " 200 " not in head.split("\r\n")[0]:
            raise RuntimeError(f"{head.splitlines()[0]}: {(await reader.read(500)).decode()}")
        found = re.search(r"(?im)^x-request-id: *(\S+)", head)
        first = None
        while line := await reader.readline():
            if line.startswith(b"data: {") and first is None:
                choices = json.loads(line[6:]).get("choices") or [{}]
                if choices[0].get("delta", {}).get("content"):
                    first = time.monotonic() - begun
        return found and found.group(1), first, time.monotonic() - begun
    finally:
        writer.close()


def text(rng, words):
    return " ".join(rng.choice(WORDS) for _ in range(words))


def requests_of(rng, count, model, words_max, outputs, limits=(8, 30)):
    """Prompts of every length, evenly over its logarithm; half share one of four prefixes."""
    prefixes = [text(rng, words_max // 2) for _ in range(4)]
    for _ in range(count):
        words = round(math.exp(rng.uniform(math.log(limits[0]), math.log(words_max))))
        if rng.random() < 0.5:
            own = text(rng, max(limits[0], words // 4))
            messages = [{"role": "system", "content": rng.choice(prefixes)},
                        {"role": "user", "content": own}]
        else:
            messages = [{"role": "user", "content": text(rng, words)}]
        yield {"model": model, "messages": messages, "max_tokens": rng.choice(outputs),
               "temperature": 0}


async def play(port, bodies, parallel_max):
    """Ids in the order of sending: ten alone, then ten at up to `parallel_max` together, ..."""
    ids = []
    for at in range(0, len(bodies), 10):
        limit = asyncio.Semaphore(1 if at // 10 % 2 == 0 else parallel_max)
        rng = random.Random(at)

        async def one(body, delay, gate=limit):
            await asyncio.sleep(delay)
            async with gate:
                return (await stream(port, body))[0]

        batch = bodies[at:at + 10]
        say(f"  {at} answered")
        ids += await asyncio.gather(*(one(b, i * 1e-3 * rng.random()) for i, b in enumerate(batch)))
    return ids


def pairs(admin, ids):
    """Predicted against actual of each request, in order of placement."""
    found = []
    for request in ids:
        for d in get(admin, f"/v1/decisions/{request}")["decisions"]:
            if d["actual"].get("result") != "ok" or "ttft" not in d["actual"]:
                continue
            chosen = d["candidates"][d["chosen_index"]]["inputs"]
            found.append({"decision": d["decision"], "in_flight": chosen["in_flight"],
                          "predicted": d["predicted"], "actual": d["actual"]})
    return sorted(found, key=lambda p: p["decision"])


def error(pair, what):
    return abs(pair["predicted"][what] - pair["actual"][what]) / pair["actual"][what]


def summary(found):
    if not found:
        return None
    row = {"requests": len(found)}
    for what in ("ttft", "e2e"):
        errors = [error(p, what) for p in found]
        row[what] = {"median_error": round(statistics.median(errors), 3),
                     "p90_error": round(sorted(errors)[len(errors) * 9 // 10], 3),
                     "bias": round(statistics.median(math.log(p["actual"][what] /
                                                              p["predicted"][what])
                                                     for p in found), 3)}
    return row


def quartiles(values):
    low, middle, high = statistics.quantiles(values, n=4)
    return {"median": round(middle, 5), "low": round(low, 5), "high": round(high, 5)}


def deviation(values):
    middle = statistics.median(values)
    return {"seconds": round(middle, 5),
            "relative_deviation": quartiles([abs(v / middle - 1) for v in values])}


def floor(port, model, repeats):
    """Scatter of one request, its prompt new each time so that nothing of it is cached."""
    async def ask():
        rows = []
        for i in range(repeats + 2):
            rng = random.Random(7)
            question = f"{i:04d} " + text(rng, 150)
            _, first, whole = await stream(port, {
                "model": model, "messages": [{"role": "user", "content": question}],
                "max_tokens": 32, "temperature": 0})
            rows.append((first, whole))
        return rows[2:]
    rows = asyncio.run(ask())
    return {"repeats": repeats, "ttft": deviation([r[0] for r in rows]),
            "e2e": deviation([r[1] for r in rows])}


def table(title, rows):
    say(f"\n{title}\n{'requests':>12} {'TTFT':>8} {'p90':>8} {'bias':>8} {'E2E':>8} {'p90':>8} "
        f"{'bias':>8}")
    for name, row in rows.items():
        if row:
            say(f"{name:>12} " + " ".join(
                f"{100 * row[w][k]:7.1f}%" for w in ("ttft", "e2e")
                for k in ("median_error", "p90_error", "bias")))


def real(options):
    with World() as world:
        port = free_port()
        _, log = world.start(CACHE / "venv/bin/python", ROOT / "scripts/llamacpp-engine", GGUF,
                             port, options.slots, 2048 * options.slots, 1, "smollm2-135m",
                             OMP_WAIT_POLICY="passive")
        world.until("llama.cpp answers", 120, lambda: get(port, "/health")["status"] == "ok")
        say("noise floor of the engine itself")
        noise = floor(port, "smollm2-135m", options.repeats)
        listen, admin = world.gateway(options.signalbox, [f"http://127.0.0.1:{port}"])
        say(f"{options.requests} requests through the gateway")
        bodies = list(requests_of(random.Random(options.seed), options.requests, "smollm2-135m",
                                  600, [8, 16, 32, 64, 96]))
        found = pairs(admin, asyncio.run(play(listen, bodies, options.slots)))
        rows = {name: summary(found[a:b]) for name, a, b in SPANS}
        last = found[-50:]
        rows["last 50"] = summary(last)
        verdict = {"requests": len(last), "points_allowed": ALLOWED_POINTS}
        for what in ("ttft", "e2e"):
            base = noise[what]["relative_deviation"]["median"]
            verdict[what] = {"floor": base, "median_error": rows["last 50"][what]["median_error"],
                             "passes": rows["last 50"][what]["median_error"]
                             <= base + ALLOWED_POINTS / 100}
        verdict["passes"] = verdict["ttft"]["passes"] and verdict["e2e"]["passes"]
        result = {"noise_floor": noise, "learning": rows, "verdict": verdict,
                  "alone": summary([p for p in last if p["in_flight"] == 0]),
                  "together": summary([p for p in last if p["in_flight"] > 0]),
                  "profiles": get(admin, "/v1/profiles")}
        if options.pairs:
            result["pairs"] = found
        say(f"\nnoise floor: TTFT {noise['ttft']}, E2E {noise['e2e']}")
        table("llama.cpp, from a wide guess: median relative error", rows)
        table("of the last 50", {"alone": result["alone"], "together": result["together"]})
        say("verdict: " + ("within" if verdict["passes"] else "NOT within") +
            f" the floor + {ALLOWED_POINTS} points")
        return result


def configuration(urls, prior):
    """The same engines, with what is known of them (a catalogue row) or without."""
    def resource(kind, name, **spec):
        return {"apiVersion": "signalbox.dev/v1alpha1", "kind": kind, "metadata": {"name": name},
                "spec": spec}
    known = prior == "catalogue"
    model = {"profile": "Llama-3.1-8B"} if known else {}
    pool = {"accelerator": "H100"} if known else {}
    return "\n---\n".join(json.dumps(r) for r in (
        resource("Gateway", "main"), resource("Model", "m", **model),
        resource("Pool", "p", model="m", endpoints=urls, **pool))) + "\n"


async def open_loop(port, bodies, rng, rate, in_flight_max):
    gate = asyncio.Semaphore(in_flight_max)

    async def one(body):
        async with gate:
            return (await stream(port, body))[0]
    tasks = []
    for body in bodies:
        tasks.append(asyncio.create_task(one(body)))
        await asyncio.sleep(rng.expovariate(rate))
    return await asyncio.gather(*tasks)


def emulated_run(options, prior, seed):
    with World() as world:
        base = free_port(options.engines)
        world.start(options.signalbox, "engine", "--model", "Llama-3.1-8B", "--profile", "h100",
                    "--served-model", "m", "--count", options.engines, "--speed", options.speed,
                    "--seed", 100 * seed, "--listen", f"127.0.0.1:{base}")
        world.until("the engines answer", 20,
                    lambda: get(base + options.engines - 1, "/v1/models")["data"])
        path = f"{world.folder}/signalbox.yaml"
        with open(path, "w") as file:
            file.write(configuration([f"http://127.0.0.1:{base + i}"
                                      for i in range(options.engines)], prior))
        listen, admin = world.gateway(options.signalbox, ["-c", path])
        rng = random.Random(seed)
        found = []
        # The gateway remembers a bounded number of decisions: collect as it goes.
        bodies = list(requests_of(rng, options.emulated_requests, "m", 6000, [8, 32, 64, 128],
                                  (16, 0)))
        for at in range(0, len(bodies), 200):
            ids = asyncio.run(open_loop(listen, bodies[at:at + 200], rng,
                                        options.rate * options.speed, 16 * options.engines))
            found += pairs(admin, ids)
        return found, get(admin, "/v1/profiles")


def emulated(options):
    result = {"speed": options.speed, "engines": options.engines, "distortion": 0.3,
              "requests_a_second": options.rate * options.speed}
    spans = [(f"{a + 1}-{b}", a, b) for a, b in
             ((0, 10), (10, 50), (50, 200), (200, 1000)) if a < options.emulated_requests]
    after = [n for n in (50, 200, 1000) if n <= options.emulated_requests]
    for prior in ("catalogue", "wide"):
        runs = []
        for seed in range(1, options.seeds + 1):
            say(f"emulated engines, {prior} prior, seed {seed}")
            found, profiles = emulated_run(options, prior, seed)
            runs.append({"seed": seed, "found": found, "profiles": profiles})
        # "after n": the fifth of n requests that end there, at least 20.
        rows = {name: summary([p for r in runs for p in r["found"][a:b]]) for name, a, b in spans}
        for n in after:
            width = max(20, n // 5)
            rows[f"after {n}"] = summary([p for r in runs for p in r["found"][n - width:n]])
        result[prior] = {
            "learning": rows,
            "by_seed": [{"seed": r["seed"],
                         **{f"after {n}": summary(r["found"][n - max(20, n // 5):n])
                            for n in after},
                         "profiles": r["profiles"]} for r in runs]}
        table(f"emulated engines, {prior} prior, {options.seeds} seeds: median relative error",
              rows)
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("what", nargs="*", metavar="real|emulated")
    parser.add_argument("--signalbox", default=str(ROOT / "build/release/signalbox"))
    parser.add_argument("--out", help="file for the JSON document; default: standard output")
    parser.add_argument("--seed", type=int, default=11, help="of the requests to llama.cpp")
    parser.add_argument("--requests", type=int, default=100)
    parser.add_argument("--repeats", type=int, default=20, help="for the noise floor")
    parser.add_argument("--slots", type=int, default=4)
    parser.add_argument("--pairs", action="store_true", help="print every pair as well")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--emulated-requests", type=int, default=1000)
    parser.add_argument("--engines", type=int, default=4)
    parser.add_argument("--speed", type=float, default=1,
                        help="of emulated engines; a catalogue row is right at 1 alone")
    parser.add_argument("--rate", type=float, default=12, help="requests a second at speed 1")
    options = parser.parse_args()
    unknown = set(options.what) - {"real", "emulated"}
    if unknown:
        parser.error(f"what is {', '.join(sorted(unknown))}?")
    options.signalbox = os.path.abspath(options.signalbox)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: sys.exit(143))  # and the processes end with it
    load = os.getloadavg()[0]
    report = {"bench": "calibration", "date": datetime.date.today().isoformat(),
              "machine": f"{platform.machine()}, {os.cpu_count()} cores", "load_at_start": load}
    if load > 1.5:
        say(f"load is {load:.1f}: the noise floor will be high")
    if not options.what or "real" in options.what:
        if not GGUF.exists():
            sys.exit("run scripts/setup llamacpp first")
        report["llamacpp"] = real(options)
    if not options.what or "emulated" in options.what:
        report["emulated"] = emulated(options)
    document = json.dumps(report, indent=1)
    if options.out:
        pathlib.Path(options.out).write_text(document + "\n")
    else:
        print(document)
    return 0


if __name__ == "__main__":
    sys.exit(main())
