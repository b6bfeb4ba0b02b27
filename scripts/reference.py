#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes docs/reference/{cli,metrics,admin-api}.md from what a running program says.

usage: reference.py SIGNALBOX [--check]     --check: writes nothing, exits 1 when a page is stale
"""
import difflib
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGES = ROOT / "docs/reference"
AGAIN = "`scripts/reference.py build/dev/signalbox` writes it; a test holds it fresh."

COMMANDS = ["serve", "validate", "explain", "get", "top", "replay", "docs", "engine",
            "sim", "sim run", "sim compare", "sim fuzz", "sim metrics"]

# Path of the admin API: what it is for. The shapes below it are taken from answers.
PATHS = {
    "/livez": "The process runs. For liveness probes.",
    "/readyz": "200 when there are engines to try, declared or found, and the process does not "
               "drain, else 503 and why. "
               "For readiness probes and load balancers.",
    "/metrics": "Prometheus text; see [metrics.md](metrics.md).",
    "/v1/fleet": "Totals, models, pools, and what is known of each endpoint: our load and that of "
                 "others, KV cache, speed against its pool's, health.",
    "/v1/decisions": "The last placements, newest first: predicted and actual. `?limit=N`, at most "
                     "64.",
    "/v1/decisions/{request-id}": "Every placement of one request in full: candidates with inputs "
                                  "and terms, refusals, what would have flipped the choice. "
                                  "`stretch`: how much longer than the chosen place's own steps "
                                  "the answer is expected to take, as earlier ones did that had "
                                  "as many others beside them; `e2e` is with it. "
                                  "`signalbox explain` prints it.",
    "/v1/profiles": "Per pool: what was believed of its speed, the factors that observation put on "
                    "it, how sure they are, and how well predictions did.",
    "/v1/accounts": "The ledger: requests by outcome, tokens, engine time and money; in all and "
                    "per tenant, model, pool and endpoint. Each list adds up to all: what no name "
                    "in it stands for is in `(other)` (no tenant, what was removed), and endpoints "
                    "that left their pool in `(removed from POOL)`. A request may try several "
                    "pools, so `requests` and `outcomes` are told per tenant and model alone; "
                    "nobody's in particular is idle time, so pools and endpoints alone have it.",
    "/v1/config": "The configuration in force as YAML, defaults included. Secrets are not in it.",
}
MAPS = {"tenants", "models", "pools", "endpoints", "outcomes"}   # objects whose keys are names


def cli(program):
    out = ["# Commands", "", f"Generated: {AGAIN}", ""]
    for command in ["", *COMMANDS]:
        text = subprocess.run([program, *command.split(), "--help"], capture_output=True, text=True,
                              check=True).stdout
        text = re.sub(r"Usage: \S+", "Usage: signalbox", text)
        lines = [line.rstrip() for line in text.strip().splitlines()]
        out += [f"## signalbox {command}".rstrip(), "", "```", *lines, "```", ""]
    return "\n".join(out)


class World:
    """Two emulated engines and a gateway on free ports."""

    def __init__(self, program, folder):
        self.folder = pathlib.Path(folder)
        self.processes = []
        try:
            self.begin(program)
        except BaseException:
            self.stop()
            raise

    def begin(self, program):
        engine = self.start("engine", [program, "engine", "--count", "2", "--listen",
                                       "127.0.0.1:0", "--speed", "100"])
        self.engines = self.wait(engine, r"listens on (http://\S+)", 2)
        self.serve = self.start("serve", [program, "serve", *self.engines, "--listen",
                                          "127.0.0.1:0", "--admin", "127.0.0.1:0",
                                          "--access-log", str(self.folder / "access")])
        clients, admin = self.wait(self.serve, r"clients=(\S+) admin=(\S+)", 1)[0]
        self.clients, self.admin = f"http://{clients}", f"http://{admin}"
        self.until(lambda: len(self.fleet()) == 2 and all(e["observed"] for e in self.fleet()))

    def start(self, name, command):
        log = self.folder / name
        self.processes.append(subprocess.Popen(command, stdout=open(log, "w"),
                                               stderr=subprocess.STDOUT))
        return log

    def until(self, holds, seconds=30):
        deadline = time.monotonic() + seconds
        while not holds():
            if time.monotonic() > deadline:
                raise SystemExit("reference.py: the gateway did not come up")
            time.sleep(0.02)

    def wait(self, log, pattern, count):
        self.until(lambda: len(re.findall(pattern, log.read_text())) >= count)
        return re.findall(pattern, log.read_text())

    def fleet(self):
        pools = json.loads(get(self.admin + "/v1/fleet"))["pools"]
        return [endpoint for pool in pools for endpoint in pool["endpoints"]]

    def ask(self, **more):
        body = {"model": "Llama-3.1-8B", "max_tokens": 8,
                "messages": [{"role": "user", "content": "What does a signal box do?"}], **more}
        request = urllib.request.Request(self.clients + "/v1/chat/completions",
                                         json.dumps(body).encode(),
                                         {"Content-Type": "application/json"})
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                answer.read()
                return answer.headers["x-request-id"]
        except urllib.error.HTTPError as error:
            return error.headers["x-request-id"]

    def traffic(self):
        """Something of everything that makes a metric appear. The id of one streamed request."""
        self.ask()
        get(self.clients + "/v1/models")
        self.ask(model="unknown")
        for engine in self.engines:
            fault = urllib.request.Request(engine + "/emulator/fault", b'{"cut_plain":true}')
            urllib.request.urlopen(fault, timeout=5).read()
        self.ask()
        for engine in self.engines:
            fault = urllib.request.Request(engine + "/emulator/fault", b'{"clear":true}')
            urllib.request.urlopen(fault, timeout=5).read()
        return self.ask(stream=True)

    def stop(self):
        for process in self.processes:
            process.terminate()
        for process in self.processes:
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()


def get(url):
    with urllib.request.urlopen(url, timeout=10) as answer:
        return answer.read().decode()


def metrics(world):
    page = get(world.admin + "/metrics")
    rows = {}
    for line in page.splitlines():
        if line.startswith("# HELP "):
            _, _, name, text = line.split(" ", 3)
            rows[name] = {"help": text, "labels": []}
        elif line.startswith("# TYPE "):
            _, _, name, kind = line.split(" ")
            rows[name]["type"] = kind
        elif line:
            name = re.match(r"[a-z_]+", line)[0]
            name = name if name in rows else re.sub(r"_(bucket|sum|count)$", "", name)
            for label in re.findall(r'(\w+)="', line):
                if label != "le" and label not in rows[name]["labels"]:
                    rows[name]["labels"].append(label)
    check_complete(rows)
    out = ["# Metrics", "", f"Generated: {AGAIN}", "",
           "At `/metrics` of the admin listener, in Prometheus text. Label values are bounded",
           "(`Gateway.limits.label_values`); what is beyond counts as `other`.", "",
           "| metric | type | labels | meaning |", "|---|---|---|---|"]
    for name, row in sorted(rows.items()):
        labels = ", ".join(f"`{label}`" for label in row["labels"])
        meaning = row["help"].replace("|", "\\|")
        out.append(f"| `{name}` | {row['type']} | {labels} | {meaning} |")
    return "\n".join(out) + "\n"


def check_complete(rows):
    """Every metric that the sources name has to be on the page."""
    for folder in ("src/io/gateway", "src/io/telemetry", "src/app"):
        for source in (ROOT / folder).glob("*.cc"):
            if source.name.endswith("_test.cc"):
                continue
            for name in re.findall(r'"((?:signalbox|process)_[a-z_]+)"', source.read_text()):
                if name not in rows:
                    raise SystemExit(f"reference.py: no traffic here makes {name} appear "
                                     f"({source.name}); add some to World.traffic")


def shape(value, key="", depth=1):
    """The form of a JSON value: names and kinds, no figures."""
    pad = "  " * depth
    if isinstance(value, dict):
        entries = list(value.items())
        if key in MAPS and entries and not isinstance(entries[0][1], str):
            entries = [("<name>", entries[0][1])]
        lines = [f"{pad}{json.dumps(k)}: {shape(v, k, depth + 1)}" for k, v in entries]
        return "{\n" + ",\n".join(lines) + "\n" + "  " * (depth - 1) + "}" if lines else "{}"
    if isinstance(value, list):
        return "[" + shape(value[0], "", depth) + "]" if value else "[]"
    if isinstance(value, bool):
        return "true or false"
    return "text" if isinstance(value, str) else "number"


def admin_api(world, request):
    out = ["# Admin API", "", f"Generated: {AGAIN}", "",
           "On its own listener, `Gateway.admin.listen` (127.0.0.1:9090). Everything is `GET`.",
           "Beyond loopback every request carries `Authorization: Bearer TOKEN`",
           "(`Gateway.admin.token`), and a Host header has to name the listener or one of",
           "`Gateway.admin.hosts`. Times are seconds unless the name says otherwise.", ""]
    for path, meaning in PATHS.items():
        out += [f"## {path}", "", meaning, ""]
        if path in ("/metrics", "/v1/config"):
            continue
        answer = get(world.admin + path.replace("{request-id}", request))
        out += ["```", shape(json.loads(answer)), "```", ""]
    return "\n".join(out)


def pages_now(program):
    with tempfile.TemporaryDirectory() as folder:
        world = World(program, folder)
        try:
            request = world.traffic()
            return {"cli.md": cli(program), "metrics.md": metrics(world),
                    "admin-api.md": admin_api(world, request)}
        finally:
            world.stop()


def compare(pages):
    """The difference between the pages that are there and those that should be."""
    out = []
    for name, text in pages.items():
        path = PAGES / name
        old = path.read_text() if path.exists() else ""
        if old != text:
            out.append(f"docs/reference/{name} is stale; scripts/reference.py writes it")
            out += list(difflib.unified_diff(old.split("\n"), text.split("\n"), lineterm="", n=0))
    return out


def main():
    program = sys.argv[1]
    if "--check" not in sys.argv[2:]:
        for name, text in pages_now(program).items():
            (PAGES / name).write_text(text)
        return 0
    stale = compare(pages_now(program))
    if stale:
        # A decision without a runner-up has a smaller shape; it is rare, so look once more.
        stale = compare(pages_now(program))
    print("\n".join(stale[:60]))
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
