#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Does the shuttle win where the clock is real?

Emulated engines at speed 1, eight ranks each behind one barrier, with the step times of
scenarios/shuttle/paper.yaml; the same requests (arrivals and lengths, by seed) under every rule:

  round-robin  straight to the engines, over all ranks in turn
  own          straight to the engines in turn, whose ranks are picked by vLLM's rule
  at-once      through the gateway, `dispatch: immediate`
  shuttle      through the gateway, `dispatch: shuttle`
  auto         through the gateway, `dispatch: auto`

Prints one JSON document: times to first token in seconds, after a tenth of the requests.

usage: live.py [--signalbox build/release/signalbox] [--engines 4] [--load 0.5] [--spread 1]
               [--requests 2000] [--seed 1] [--gather-ms 5]
"""
import argparse
import asyncio
import json
import math
import pathlib
import random
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[2]
RANKS, MEAN_PROMPT, MOST, FULL_RATE = 8, 2000, 32000, 27.0
STEPS = "60,0.14,1.0e-5,20,0.13,3.3e-5"
TOKEN_BYTES = 4
MODES = {"at-once": "immediate", "shuttle": "shuttle", "auto": "auto"}
RULES = ("round-robin", "own", *MODES)


def trace(options):
    """(seconds from the start, body) of every request."""
    rng = random.Random(options.seed)
    rate = FULL_RATE * options.engines * options.load
    median = MEAN_PROMPT / math.exp(options.spread ** 2 / 2)
    at, out = 0.0, []
    for number in range(options.requests):
        at += rng.expovariate(rate)
        tokens = min(MOST, max(8, round(median * math.exp(options.spread * rng.gauss(0, 1)))))
        text = f"{number:08d}" + "".join(rng.choices("abcdefgh ", k=64))
        text = (text * (tokens * TOKEN_BYTES // len(text) + 1))[:tokens * TOKEN_BYTES]
        out.append((at, json.dumps({"model": "m", "stream": True, "max_tokens": 1,
                                    "messages": [{"role": "user", "content": text}]}).encode()))
    return out


async def ask(address, body, fields, due, answers, number):
    """Seconds from `due` to the first event with data."""
    host, port = address.rsplit(":", 1)
    reader, writer = await asyncio.open_connection(host, int(port))
    head = (f"POST /v1/chat/completions HTTP/1.1\r\nhost: {address}\r\n"
            f"content-type: application/json\r\ncontent-length: {len(body)}\r\n"
            f"connection: close\r\n{fields}\r\n").encode()
    writer.write(head + body)
    first, everything = None, b""
    while piece := await reader.read(65536):
        everything += piece
        if first is None and b'"content":"' in everything.replace(b'"content":""', b""):
            first = time.monotonic() - due
    writer.close()
    if b"[DONE]" not in everything or first is None:
        raise RuntimeError(everything[-400:])
    answers[number] = first


async def play(requests, target):
    """target(number): the address and more header fields."""
    answers, tasks = [None] * len(requests), []
    begin = time.monotonic() + 0.2
    for number, (at, body) in enumerate(requests):
        due = begin + at
        if (wait := due - time.monotonic()) > 0:
            await asyncio.sleep(wait)
        address, fields = target(number)
        tasks.append(asyncio.create_task(ask(address, body, fields, due, answers, number)))
    await asyncio.gather(*tasks)
    return answers


def wait_for(url):
    for _ in range(200):
        try:
            return urllib.request.urlopen(url, timeout=2).read()
        except OSError:
            time.sleep(0.05)
    raise RuntimeError(f"{url} does not answer")


def run(options, rule, requests, base):
    engines = [f"127.0.0.1:{base + i}" for i in range(options.engines)]
    gateway, admin = f"127.0.0.1:{base + 50}", f"127.0.0.1:{base + 51}"
    with tempfile.TemporaryDirectory() as folder:
        processes = [subprocess.Popen(
            [options.signalbox, "engine", "--listen", engines[0], "--count", str(options.engines),
             "--served-model", "m", "--ranks", str(RANKS), "--steps", STEPS, "--distortion", "0",
             "--kv-tokens", "400000", "--context-tokens", "40000", "--slots", "1024",
             "--gather-ms", str(options.gather_ms)], stdout=subprocess.DEVNULL)]
        try:
            wait_for(f"http://{engines[-1]}/v1/models")
            if rule in MODES:
                config = pathlib.Path(folder) / "gateway.yaml"
                documents = [
                    {"kind": "Gateway", "metadata": {"name": "g"},
                     "spec": {"listen": gateway, "admin": {"listen": admin}}},
                    {"kind": "Model", "metadata": {"name": "m"}, "spec": {}},
                    {"kind": "Pool", "metadata": {"name": "p"},
                     "spec": {"model": "m", "engine": "vllm", "ranks": RANKS,
                              "dispatch": MODES[rule],
                              "endpoints": [f"http://{e}" for e in engines]}}]
                config.write_text("\n---\n".join(
                    json.dumps({"apiVersion": "signalbox.dev/v1alpha1", **d}) for d in documents))
                processes.append(subprocess.Popen([options.signalbox, "serve", "-c", str(config)],
                                                  stderr=sys.stderr))
                wait_for(f"http://{gateway}/v1/models")
                time.sleep(1)

            def target(number):
                if rule == "round-robin":
                    place = number % (options.engines * RANKS)
                    return engines[place // RANKS], f"x-data-parallel-rank: {place % RANKS}\r\n"
                return (engines[number % options.engines], "") if rule == "own" else (gateway, "")

            answers = asyncio.run(play(requests, target))
        finally:
            for process in processes:
                process.terminate()
            for process in processes:
                process.wait(30)
    judged = sorted(answers[len(answers) // 10:])
    return {"rule": rule, "mean": round(statistics.mean(judged), 3),
            **{f"p{q}": round(judged[int(len(judged) * q / 100)], 3) for q in (50, 90, 99)}}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--signalbox", default=ROOT / "build/release/signalbox")
    parser.add_argument("--engines", type=int, default=4)
    parser.add_argument("--load", type=float, default=0.5)
    parser.add_argument("--spread", type=float, default=1.0)
    parser.add_argument("--requests", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--gather-ms", type=float, default=5)
    parser.add_argument("--port", type=int, default=26400)
    parser.add_argument("--rules", default=",".join(RULES))
    options = parser.parse_args()
    requests = trace(options)
    rows = []
    for i, rule in enumerate(options.rules.split(",")):
        rows.append(run(options, rule, requests, options.port + 100 * i))
        print(rows[-1], file=sys.stderr, flush=True)
    print(json.dumps({"engines": options.engines, "load": options.load, "spread": options.spread,
                      "requests": options.requests, "seed": options.seed,
                      "gather_ms": options.gather_ms, "rows": rows}, indent=1))


if __name__ == "__main__":
    main()
