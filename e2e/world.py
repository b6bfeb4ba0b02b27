# SPDX-License-Identifier: Apache-2.0
"""Gateways and fleets of emulated engines, and the laws that hold when the dust has settled.

`check_invariants` is a checker outside what it checks: it compares what clients got, what engines
counted and what the admin API says. Numbers are those of design section "Invariants".
"""
import json
import pathlib
import re
import signal
import subprocess
import unittest

from client import Connection, call, encode
from processes import BINARY, PATIENCE, ROOT, Process, folder, wait_for

CHAT = "/v1/chat/completions"


def chat(content="Tell me something.", **more):
    messages = content if isinstance(content, list) else [{"role": "user", "content": content}]
    return {"model": "m", "messages": messages, "max_tokens": 16, **more}


def resource(kind, name, **spec):
    return {"apiVersion": "signalbox.dev/v1alpha1", "kind": kind, "metadata": {"name": name},
            "spec": spec}


def documents(*resources):
    """A configuration file: YAML takes JSON as it is."""
    return "\n---\n".join(json.dumps(r, indent=1) for r in resources) + "\n"


def configuration(urls, gateway=None, pool=None, model=None, more=()):
    """One model `m` in one pool; `more` are further resources."""
    return documents(resource("Gateway", "main", **(gateway or {})),
                     resource("Model", "m", **(model or {})),
                     resource("Pool", "p", **{"model": "m", "endpoints": list(urls),
                                              **(pool or {})}), *more)


class Fleet:
    """One emulator process with `count` engines."""

    def __init__(self, count=1, dialect="vllm", speed=20, model="m", **options):
        self.command = [BINARY, "engine", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0",
                        "--count", count, "--dialect", dialect, "--speed", speed,
                        "--served-model", model]
        for name, value in options.items():
            self.command += [f"--{name.replace('_', '-')}", value]
        self.process = Process("engines", self.command)
        self.engines = wait_for("all engines listen", self._listening, 15)[:count]
        self.count = count

    def _listening(self):
        found = re.findall(r"engine \d+ listens on http://(\S+)\n", self.process.log())
        assert self.process.alive(), self.process.log()
        wanted = int(self.command[self.command.index("--count") + 1])
        return found if len(found) >= wanted else None

    @property
    def urls(self):
        return [f"http://{engine}" for engine in self.engines]

    def _admin(self, method, engine, path, body=None):
        # Any engine that listens answers for any other.
        last = None
        query = ("&" if "?" in path else "?") + f"engine={engine}"
        for address in self.engines:
            try:
                answer = call(address, method, path + query, body)
                assert answer.status == 200, answer
                return answer.json()
            except (OSError, ConnectionError) as error:
                last = error
        raise AssertionError(f"no engine of the fleet listens: {last}")

    def stats(self, engine=0):
        return self._admin("GET", engine, "/emulator/stats")

    def all_stats(self):
        return [self.stats(i) for i in range(self.count)]

    def total(self, key):
        return sum(s[key] for s in self.all_stats())

    def records(self, engine=0, limit=100000):
        return self._admin("GET", engine, f"/emulator/records?limit={limit}")["records"]

    def all_records(self):
        return [r for i in range(self.count) for r in self.records(i)]

    def fault(self, engine=0, **what):
        """engine=None: all of them."""
        for i in range(self.count) if engine is None else [engine]:
            self._admin("POST", i, "/emulator/fault", what)

    def heal(self):
        for i in range(self.count):
            self._admin("POST", i, "/emulator/fault", {"clear": True, "refuse": False, "slow": 1})

    def expect(self, body, path=CHAT):
        """What any engine answers to this body: text, tokens, finish_reason, choices."""
        return self._admin("POST", 0, f"/emulator/expect?path={path}", encode(body))

    def calls(self):
        """Generation requests that reached engines, however they were answered."""
        return [s["requests"] + s["spoilt"] + s["refused"] for s in self.all_stats()]

    def stop(self):
        self.process.stop(signal.SIGKILL)


class Gateway:
    """One `signalbox serve` with event log and access log."""

    def __init__(self, urls=(), config=None, extra=(), env=None, wait=True, events=True,
                 threads=2, tls=None, name="gateway"):
        self.folder = pathlib.Path(folder()) / f"{name}-{Process.count + 1:03d}"
        self.folder.mkdir()
        self.event_log = self.folder / "events.log" if events else None
        self.access_log = self.folder / "access.jsonl"
        self.tls = tls
        command = [BINARY, "serve", *urls, "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0",
                   "--access-log", self.access_log, "--threads", threads, *extra]
        self.config_path = None
        if config is not None:
            self.config_path = self.folder / "signalbox.yaml"
            self.config_path.write_text(config)
            command += ["-c", self.config_path]
        if events:
            command += ["--event-log", self.event_log]
        self.process = Process(name, command, env)
        match = self.process.find(r"listening clients=(\S+) admin=(\S+)")[0]
        self.address, self.admin_address = match
        if wait:
            self.wait_ready()

    def wait_ready(self):
        wait_for("the gateway is ready", lambda: self.admin("/readyz").status == 200)

    def connect(self, **options):
        return Connection(self.address, tls=self.tls, **options)

    def call(self, method, path, body=None, headers=None, timeout=20.0):
        return call(self.address, method, path, body, headers, timeout, tls=self.tls)

    def post(self, path, body, headers=None, timeout=20.0):
        return self.call("POST", path, body, headers, timeout)

    def chat(self, body=None, headers=None, timeout=20.0):
        return self.post(CHAT, chat() if body is None else body, headers, timeout)

    def admin(self, path, headers=None, method="GET"):
        return call(self.admin_address, method, path, headers=headers)

    def admin_json(self, path):
        answer = self.admin(path)
        assert answer.status == 200, answer
        return answer.json()

    def fleet(self):
        return self.admin_json("/v1/fleet")

    def totals(self):
        return self.fleet()["totals"]

    def outcomes(self):
        return {k: v for k, v in self.totals()["outcomes"].items() if v}

    def endpoints(self):
        return [e for pool in self.fleet()["pools"] for e in pool["endpoints"]]

    def endpoint(self, address):
        return next(e for e in self.endpoints() if e["address"] == address)

    def metrics(self):
        """Samples of /metrics by their whole name with labels."""
        samples = {}
        for line in self.admin("/metrics").text.splitlines():
            if line and not line.startswith("#"):
                name, value = line.rsplit(" ", 1)
                samples[name] = float(value)
        return samples

    def access_records(self):
        """Of whole lines: the last may be on its way to the file."""
        text = self.access_log.read_text()
        return [json.loads(line) for line in text[:text.rfind("\n") + 1].splitlines()]

    def run(self, *arguments, **options):
        """A command of the same binary against this gateway's admin API."""
        return subprocess.run([BINARY, *arguments, "--admin", self.admin_address],
                              capture_output=True, text=True, timeout=30 * PATIENCE, **options)

    def settle(self, within=10.0):
        wait_for("requests in flight end", lambda: self.totals()["in_flight"] == 0, within)

    def stop(self):
        """Exit code after SIGTERM."""
        return self.process.stop(signal.SIGTERM, grace=40)

    def replay(self):
        """What `signalbox replay` says of the event log of a stopped gateway."""
        done = subprocess.run([BINARY, "replay", str(self.event_log)], capture_output=True,
                              text=True, timeout=300 * PATIENCE)
        return done.returncode, done.stdout + done.stderr


def close(a, b):
    return abs(a - b) <= 1e-6 + 1e-6 * max(abs(a), abs(b))


def check_invariants(test, gateway, fleets=(), exact=True, within=10.0, whole=True):
    """INV 1, 2, 3, 4 and 8 as far as outside eyes see them. `exact`: no other client calls the
    engines and none of them was restarted, so that their counters are all ours. `whole`: no
    endpoint left the configuration, so that the admin API still tells of all."""
    gateway.settle(within)
    for fleet in fleets:
        wait_for("engines are idle", lambda: fleet.total("active") == 0, within)
    fleet_view = gateway.fleet()
    totals, accounts = fleet_view["totals"], gateway.admin_json("/v1/accounts")
    endpoints = [e for pool in fleet_view["pools"] for e in pool["endpoints"]]

    # INV-1: arrived = outcomes + in flight, in the core, the ledger and the metrics alike.
    test.assertEqual(totals["arrived"], sum(totals["outcomes"].values()), totals)
    test.assertEqual(totals["illegal_events"], 0, totals)
    test.assertEqual(accounts["arrived"], totals["arrived"])
    test.assertEqual(accounts["all"]["requests"], totals["arrived"])
    test.assertEqual(accounts["all"]["outcomes"],
                     {k: v for k, v in totals["outcomes"].items() if v})
    wait_for("metrics tell all ends", lambda: sum(
        v for k, v in gateway.metrics().items() if k.startswith("signalbox_requests_total{"))
        == totals["arrived"])

    # INV-3: nothing is held any more.
    test.assertEqual((totals["waiting"], accounts["in_flight"]), (0, 0))
    for e in endpoints:
        test.assertEqual((e["ours"], e["queued"]), (0, 0), e)
    # What others hold is known from the last look, so it takes the next one to go; there is none
    # for an engine that is gone.
    wait_for("no claim on KV is left", lambda: all(
        e["kv_tokens"] == 0 or e["unreachable"] for e in gateway.endpoints()), within)
    test.assertEqual(accounts["open"]["seconds"], 0)

    # INV-4: the ledger's sums.
    every = accounts["all"]
    for key in ("models", "endpoints", "pools") if whole else ():
        parts = accounts[key].values()
        for figure in ("attempts", "prompt_tokens", "completion_tokens", "cached_tokens"):
            test.assertEqual(sum(p[figure] for p in parts), every[figure], f"{key}.{figure}")
        test.assertTrue(close(sum(p["busy_seconds"] for p in parts), every["busy_seconds"]),
                        f"{key}: {parts} {every}")
    if accounts["tenants"]:
        test.assertEqual(sum(t["requests"] for t in accounts["tenants"].values()),
                         every["requests"])
    if exact and fleets:
        check_engine_counters(test, gateway, fleets, every)
    check_one_engine_each(test, fleets)
    check_access_log(test, gateway, totals)


def check_engine_counters(test, gateway, fleets, every):
    """INV-4: the engines' own counters agree with the ledger."""
    stats = [s for fleet in fleets for s in fleet.all_stats()]
    test.assertEqual(sum(s["requests"] + s["spoilt"] + s["refused"] for s in stats),
                     every["attempts"], "attempts of the ledger and calls at the engines")
    if set(every["outcomes"]) <= {"completed"} and not any(s["faulted"] for s in stats):
        test.assertEqual(sum(s["ended_generated_tokens"] for s in stats),
                         every["completion_tokens"], "generated tokens")
        test.assertEqual(sum(s["ended_prompt_tokens"] for s in stats), every["prompt_tokens"])
        test.assertEqual(sum(s["ended_cached_tokens"] for s in stats), every["cached_tokens"])


def check_one_engine_each(test, fleets):
    """INV-2: no request was generated to its end by two engines."""
    finished = {}
    for fleet in fleets:
        for record in fleet.all_records():
            if record["outcome"] == "finished" and record["request_id"]:
                finished.setdefault(record["request_id"], []).append(record)
    for request, records in finished.items():
        test.assertEqual(len({r["id"] for r in records}), 1, f"{request}: {records}")


def check_access_log(test, gateway, totals):
    """One line for each request that the core knew, with the outcome it had there, and one for
    each that the gateway refused before."""
    counts, expected = {}, {}

    def told():
        counts.clear()
        for record in gateway.access_records():
            # Without an attempt, `completed` is an answer that needed no engine.
            if record.get("attempts") or record["outcome"] != "completed":
                counts[record["outcome"]] = counts.get(record["outcome"], 0) + 1
        expected.clear()
        expected.update({k: v for k, v in totals["outcomes"].items() if v})
        refused = sum(v for k, v in gateway.metrics().items()
                      if k.startswith("signalbox_requests_refused_total{"))
        if refused:
            expected["refused"] = refused
        return sum(counts.values()) >= sum(expected.values())
    wait_for("the access log tells all requests", told)
    test.assertEqual(counts, expected, "outcomes by access log and by core")


class Case(unittest.TestCase):
    """A test class with one fleet and one gateway, checked after each test and replayed at the
    end. Subclasses say what to start in `start`."""

    exact = True
    maxDiff = None

    @classmethod
    def start(cls):
        cls.fleet = Fleet(2)
        cls.gateway = Gateway(cls.fleet.urls)

    @classmethod
    def setUpClass(cls):
        cls.fleet = cls.gateway = None
        cls.start()

    @classmethod
    def tearDownClass(cls):
        try:
            if cls.gateway is not None:
                alive = cls.gateway.process.alive()
                code = cls.gateway.stop()
                assert code == 0 or not alive, f"the gateway ended with {code}"
                assert alive, "the gateway died:\n" + cls.gateway.process.log()[-3000:]
                if cls.gateway.event_log is not None:
                    status, said = cls.gateway.replay()
                    assert status == 0 and said.startswith("identical"), said
        finally:
            if cls.fleet is not None:
                cls.fleet.stop()

    def tearDown(self):
        if self.fleet is not None:
            self.fleet.heal()
        if self.gateway is not None and self.gateway.process.alive():
            check_invariants(self, self.gateway, [self.fleet] if self.fleet else [], self.exact)
