#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Mixed traffic over emulated engines, and two placements taken apart.

Starts engines and a gateway, plays sessions with shared prefixes among single questions, then
picks one decision that chose a loaded engine which held the prefix over an idle one that did not,
and one that did the opposite. The stated change is applied to the recorded inputs, and the score
is reckoned here anew: the choice must flip. Also: predicted against actual by hundreds of
requests, and replay.

usage: run.py [--requests 2000] [--engines 4] [--speed 20] [--signalbox build/release/signalbox]
"""
import argparse
import asyncio
import json
import math
import os
import random
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request

WORDS = ("the of and to in is that for it as was with be by on not he his but at are this have "
         "from or had an they which one you were all her she there would their we him "
         "been has").split()


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def text(rng, words):
    return " ".join(rng.choice(WORDS) for _ in range(words))


async def call(port, body, path="/v1/chat/completions"):
    """One request on its own connection: (status, headers, body, seconds)."""
    begun = time.monotonic()
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    data = json.dumps(body).encode()
    writer.write(f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
                 f"Connection: close\r\nContent-Length: {len(data)}\r\n\r\n".encode() + data)
    answer = await reader.read()
    while not reader.at_eof():
        answer += await reader.read()
    writer.close()
    head, _, rest = answer.partition(b"\r\n\r\n")
    lines = head.decode().split("\r\n")
    headers = {k.lower(): v.strip() for k, _, v in (line.partition(":") for line in lines[1:])}
    return int(lines[0].split()[1]), headers, rest, time.monotonic() - begun


async def session(port, rng, systems, turns, results, limit):
    messages = [{"role": "system", "content": rng.choice(systems)}]
    for _ in range(turns):
        messages.append({"role": "user", "content": text(rng, rng.randint(20, 400))})
        async with limit:
            status, headers, body, seconds = await call(
                port, {"model": "m", "messages": messages, "stream": False,
                       "max_tokens": rng.choice([8, 32, 64, 128])})
        results.append((status, headers.get("x-request-id", ""), seconds))
        if status != 200:
            return
        answer = json.loads(body)["choices"][0]["message"]["content"]
        messages.append({"role": "assistant", "content": answer})
        await asyncio.sleep(rng.expovariate(20))


async def play(port, requests, seed):
    rng = random.Random(seed)
    systems = [text(rng, rng.choice([200, 1500, 6000])) for _ in range(24)]
    results, limit = [], asyncio.Semaphore(24)
    while len(results) < requests:
        batch = [session(port, random.Random(rng.random()), systems, rng.choice([1, 1, 2, 4, 6]),
                         results, limit) for _ in range(60)]
        await asyncio.gather(*batch)
    return results


def score(ask, i):
    """The sum of src/core/routing/score.h, written again."""
    fresh = max(1.0, ask["prompt"] - i["cached"])
    prefill = i["b"] * fresh + i["c"] * fresh * (i["cached"] + fresh / 2)
    passes = math.ceil((i["queued"] + fresh) / max(1.0, i["chunk"] - i["decoding"]))
    ttft = (i["reach"] + i["wait"] + prefill + passes * i["pass"] + i["pass_wait"]
            + i["kv_wait"])

    def step(batch, kv):
        return (i["d"] + i["e1"] * min(batch, i["batch_break"])
                + i["e2"] * max(0.0, batch - i["batch_break"]) + i["f"] * kv)

    tokens = ask["prompt"] + ask["output"] / 2
    own_step = step(i["in_flight"] + 1, i["kv"] + tokens)
    more = own_step - step(i["in_flight"], i["kv"])
    w = ask["latency_weight"]
    mean = ask["mean_b"] * fresh + ask["mean_c"] * fresh * (i["cached"] + fresh / 2)
    money = ask["seconds_per_usd"] * i["usd_per_second"] * (prefill + ask["output"] * more)
    return (w * ttft + ask["output"] * own_step + prefill * i["in_flight"]
            + w * prefill * i["arrivals"] * ttft + more * i["overlap"] / 2 + ask["shadow"] * mean
            + money)


def flips(decision):
    """Whether the stated change makes the runner-up win by this file's reckoning."""
    flip = decision["flip"]
    inputs = {c["id"]: dict(c["inputs"]) for c in decision["candidates"]}
    chosen = decision["candidates"][decision["chosen_index"]]["id"]
    second = decision["candidates"][decision["runner_up_index"]]["id"]
    before = score(decision["ask"], inputs[chosen]) - score(decision["ask"], inputs[second])
    inputs[flip["id"]][flip["field"]] = flip["to"]
    after = score(decision["ask"], inputs[chosen]) - score(decision["ask"], inputs[second])
    return before, after, after > 0


def get(port, path):
    return json.loads(urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=10).read())


def pick(admin, ids):
    """(a holder under load over an idle stranger, the opposite, decisions looked at)"""
    affine = spread = None
    looked = wrong = 0
    for request in reversed(ids):
        try:
            decision = get(admin, f"/v1/decisions/{request}")["decisions"][0]
        except OSError:
            continue
        if len(decision["candidates"]) < 2 or "flip" not in decision:
            continue
        looked += 1
        won = decision["candidates"][decision["chosen_index"]]["inputs"]
        lost = decision["candidates"][decision["runner_up_index"]]["inputs"]
        before, after, flipped = flips(decision)
        wrong += not flipped
        more = won["in_flight"] - lost["in_flight"]
        if not affine and won["cached"] > lost["cached"] + 100 and more > 0:
            affine = decision
        if not spread and won["cached"] + 100 < lost["cached"] and more < 0:
            spread = decision
        if affine and spread and looked > 200:
            break
    return affine, spread, looked, wrong


def errors(admin, ids, step=250):
    """Median |log(actual/predicted)| of the end-to-end time, by hundreds of requests in order."""
    rows = []
    for at in range(0, len(ids), step):
        logs = []
        for request in ids[at:at + step]:
            try:
                decision = get(admin, f"/v1/decisions/{request}")["decisions"][-1]
            except OSError:
                continue
            if "e2e" in decision["actual"] and decision["predicted"]["e2e"] > 0:
                logs.append(abs(math.log(decision["actual"]["e2e"] / decision["predicted"]["e2e"])))
        if logs:
            rows.append({"requests": f"{at}-{at + step}",
                         "median_error": round(statistics.median(logs), 3)})
    return rows


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--requests", type=int, default=2000)
    parser.add_argument("--engines", type=int, default=4)
    parser.add_argument("--speed", type=float, default=20)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--signalbox", default="build/release/signalbox")
    options = parser.parse_args()
    binary = os.path.abspath(options.signalbox)
    folder = tempfile.mkdtemp(prefix="signalbox-mixed-")
    base, listen, admin = 23000 + os.getpid() % 5000, free_port(), free_port()
    children = []

    def start(*command):
        log = open(f"{folder}/{len(children)}.log", "w")
        children.append(subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True))

    try:
        start(binary, "engine", "--model", "Llama-3.1-8B", "--profile", "h100",
              "--served-model", "m", "--count", str(options.engines), "--speed",
              str(options.speed), "--listen", f"127.0.0.1:{base}", "--slots", "32")
        urls = [f"http://127.0.0.1:{base + i}" for i in range(options.engines)]
        start(binary, "serve", *urls, "--listen", f"127.0.0.1:{listen}", "--admin",
              f"127.0.0.1:{admin}", "--event-log", f"{folder}/events", "--seed", "1",
              "--log-level", "warn", "--threads", "1")
        for _ in range(100):
            try:
                if get(admin, "/readyz")["status"] == "ok":
                    break
            except OSError:
                time.sleep(0.1)
        results = asyncio.run(play(listen, options.requests, options.seed))
        ids = [r[1] for r in results if r[0] == 200]
        affine, spread, looked, wrong = pick(admin, ids)
        report = {"requests": len(results), "completed": len(ids),
                  "decisions_checked": looked, "flips_that_did_not": wrong,
                  "learning": errors(admin, ids), "profiles": get(admin, "/v1/profiles"),
                  "fleet": get(admin, "/v1/fleet")["totals"]}
        print(json.dumps(report, indent=1))
        for name, decision in (("a loaded holder over an idle stranger", affine),
                               ("an idle stranger over a loaded holder", spread)):
            print(f"\n== {name}")
            if not decision:
                print("none found")
                continue
            before, after, flipped = flips(decision)
            print(subprocess.run([binary, "explain", "--admin", f"127.0.0.1:{admin}",
                                  decision["request"]], capture_output=True, text=True).stdout)
            print(f"chosen - runner-up: {before:.4f} s; after the change: {after:.4f} s; "
                  f"flipped: {flipped}")
        os.kill(children[1].pid, signal.SIGTERM)
        children[1].wait(20)
        print(subprocess.run([binary, "replay", f"{folder}/events"], capture_output=True,
                             text=True).stdout)
    finally:
        for child in children:
            if child.poll() is None:
                os.killpg(child.pid, signal.SIGKILL)
    return 0


if __name__ == "__main__":
    sys.exit(main())
