#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares Signalbox with nginx in front of the same four mock engines, and looks at Signalbox
alone in front of many. Prints one JSON document.

Both gateways have one thread, on a core of their own; engines and load share the other. Rounds are
interleaved and the order within a round alternates. A round that began above a load average of 1.5
is void: it is shown and counts for nothing. CPU is what the kernel accounts to every process of the
gateway's session, over the answers that the load generator counted. Added latency is the probe
through the gateway less the probe straight to an engine a second before, the median of the
windows of a round.

Needs: scripts/setup bench.
"""
import argparse
import datetime
import json
import os
import pathlib
import platform
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
METRICS_PAGE = ROOT / "testdata/recorded/vllm-0.32-metrics.txt"
LOAD_MAX = 1.5
PATIENCE_S = 90          # how long a round waits for the load average to fall
ENGINES = 4
WINDOWS, WINDOW_S = 4, 1  # of the latency probe in one round

# name: (request bodies, connections, pause between events in ms)
CASES = {
    "small": ("small", 32, 0),
    "stream_at_once": ("stream", 32, 0),
    "stream_paced": ("stream", 100, 10),
    "prompt_100k": ("100k", 16, 0),
    "prompt_400k": ("400k", 8, 0),
}

NGINX = """worker_processes 1; daemon off; pid {dir}/nginx.pid; error_log {dir}/nginx.log warn;
events {{ worker_connections 16384; }}
http {{
  access_log off; keepalive_requests 1000000000;
  client_max_body_size 0; client_body_buffer_size 1m;
  client_body_temp_path {dir}/body; proxy_temp_path {dir}/proxy;
  fastcgi_temp_path {dir}/fastcgi; uwsgi_temp_path {dir}/uwsgi; scgi_temp_path {dir}/scgi;
  upstream engines {{ {servers} keepalive 256; keepalive_requests 1000000000; }}
  server {{
    listen 127.0.0.1:{port} backlog=1024;
    location / {{
      proxy_pass http://engines; proxy_http_version 1.1; proxy_set_header Connection "";
      proxy_buffering off; proxy_read_timeout 300s;
    }}
  }}
}}
"""


# --- what is sent ---

WORDS = ("the of and to in is that for it as was with be by on not he his but at are this have "
         "from or had an they which one you were all her she there would their we him been has "
         "when who will no more if out so up said what its about than into them can only "
         "other").split()


def text(rng, size):
    words, length = [], 0
    while length < size:
        words.append(rng.choice(WORDS))
        length += len(words[-1]) + 1
    return " ".join(words)[:size]


def chat(system, user, **more):
    body = {"model": "mock", "messages": [{"role": "system", "content": system},
                                          {"role": "user", "content": user}],
            "max_tokens": 64, "temperature": 0.7, **more}
    return json.dumps(body, separators=(",", ":"))


def write_bodies(folder):
    """Request bodies, one a line; the same on every machine."""
    rng = random.Random(7)
    system, user = text(rng, 300), text(rng, 750)
    many = [text(rng, 4000) for _ in range(64)]
    prefixed = [chat(s, text(rng, 600)) for s in many for _ in range(32)]
    rng.shuffle(prefixed)
    files = {"small": [chat(system, user)], "stream": [chat(system, user, stream=True)],
             "100k": [chat(text(rng, 2000), text(rng, 98000))],
             "400k": [chat(text(rng, 2000), text(rng, 398000))],
             "prefixed": prefixed}
    for name, lines in files.items():
        (folder / name).write_text("\n".join(lines) + "\n")


# --- processes ---

class Bench:
    """Processes of one run and where they live."""

    def __init__(self, options, folder):
        self.options = options
        self.folder = folder
        self.tools_core, self.gateway_core = options.cores.split(",")
        self.running = []
        self.tools = build_tools()

    def favour(self):
        """In a child: be preferred to other work on a shared machine. Needs root; else nothing."""
        if not self.options.favour:
            return
        try:
            pathlib.Path("/proc/self/autogroup").write_text("-10")
        except OSError:
            pass

    def start(self, name, core, command):
        log = open(self.folder / f"{name}.log", "w")
        process = subprocess.Popen(["taskset", "-c", core, *map(str, command)], stdout=log,
                                   stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                                   start_new_session=True, preexec_fn=self.favour)
        self.running.append(process)
        return process

    def stop(self, process):
        for number, patience in ((signal.SIGTERM, 10), (signal.SIGKILL, 5)):
            if process.poll() is None:
                os.killpg(process.pid, number)
            try:
                process.wait(patience)
                break
            except subprocess.TimeoutExpired:
                continue
        self.running.remove(process)

    def stop_all(self):
        for process in list(self.running):
            self.stop(process)

    def tool(self, command, environment=None, realtime=False):
        if realtime and self.options.favour:
            command = ["chrt", "-r", "1", *command]
        done = subprocess.run(["taskset", "-c", self.tools_core, *map(str, command)],
                              capture_output=True, text=True, timeout=300, start_new_session=True,
                              preexec_fn=self.favour, env={**os.environ, **(environment or {})})
        if done.returncode != 0:
            raise SystemExit(f"{command[0]} failed: {done.stderr.strip()}")
        return done.stdout

    # What runs.

    def mock(self, base, count):
        process = self.start("mock", self.tools_core,
                             [self.tools / "mock_engine", base, count, METRICS_PAGE])
        wait_for(f"http://127.0.0.1:{base + count - 1}/v1/models", process)
        return process

    def nginx(self, port, base):
        servers = " ".join(f"server 127.0.0.1:{base + i};" for i in range(ENGINES))
        conf = self.folder / "nginx.conf"
        conf.write_text(NGINX.format(dir=self.folder, servers=servers, port=port))
        process = self.start("nginx", self.gateway_core, ["/usr/sbin/nginx", "-c", conf])
        wait_for(f"http://127.0.0.1:{port}/v1/models", process)
        return process

    def signalbox(self, port, admin, base, count):
        urls = [f"http://127.0.0.1:{base + i}" for i in range(count)]
        return self.start("signalbox", self.gateway_core,
                          [self.options.signalbox, "serve", "--threads", "1",
                           "--listen", f"127.0.0.1:{port}", "--admin", f"127.0.0.1:{admin}", *urls])

    # What is measured.

    def load(self, port, bodies, connections, seconds):
        out = self.tool(["wrk", "-t1", f"-c{connections}", f"-d{seconds}s", "--timeout", "20s",
                         "-s", HERE / "load.lua",
                         f"http://127.0.0.1:{port}/v1/chat/completions"],
                        {"BODIES": str(self.folder / bodies)})
        line = next(line for line in out.splitlines() if line.startswith("JSON "))
        return json.loads(line[5:])

    def cpu_case(self, process, port, bodies, connections):
        self.load(port, bodies, connections, 1)
        before = cpu_seconds(process.pid)
        result = self.load(port, bodies, connections, self.options.seconds)
        used = cpu_seconds(process.pid) - before
        answers = max(1, result["answers"])
        return {"cpu_us": round(used * 1e6 / answers, 2),
                "per_second": round(answers / result["us"] * 1e6), "failures": result["failures"]}

    def latency(self, port):
        return json.loads(self.tool(
            [self.tools / "latency_probe", port, self.options.rate, WINDOW_S,
             self.folder / "small"], realtime=True))


def build_tools():
    """Compiles the mock engine and the probe; quick when nothing changed."""
    folder = ROOT / "build/bench-proxy"
    folder.mkdir(parents=True, exist_ok=True)
    clock = ROOT / "src/io/net/clock.cc"
    for name in ("mock_engine", "latency_probe"):
        source, program = HERE / f"{name}.cc", folder / name
        if program.exists() and program.stat().st_mtime > source.stat().st_mtime:
            continue
        subprocess.run(["g++-12", "-std=c++20", "-O2", "-Wall", "-Wextra", "-I", ROOT / "src",
                        source, clock, "-o", program], check=True)
    return folder


def get(url, timeout=5):
    with urllib.request.urlopen(url, timeout=timeout) as answer:
        return answer.read()


def wait_for(url, process, seconds=60):
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        try:
            return get(url)
        except OSError:
            if process.poll() is not None:
                raise SystemExit(f"{process.args[3]} ended with {process.returncode}; see its log")
            time.sleep(0.02)
    raise SystemExit(f"{url} did not answer within {seconds} s")


def session_processes(session):
    for entry in pathlib.Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            if os.getsid(int(entry.name)) == session:
                yield entry
        except OSError:
            continue


def cpu_seconds(session):
    """CPU time of every thread of the session, by the scheduler's own nanoseconds."""
    nanoseconds = 0
    for process in session_processes(session):
        for task in (process / "task").iterdir():
            nanoseconds += int((task / "schedstat").read_text().split()[0])
    return nanoseconds * 1e-9


def rss_mib(session):
    """Resident memory; pages shared between nginx's processes count once each."""
    pages = sum(int((p / "statm").read_text().split()[1]) for p in session_processes(session))
    return round(pages * os.sysconf("SC_PAGE_SIZE") / 2**20, 1)


def set_realtime(processes, on):
    for process in processes:
        for entry in session_processes(process.pid):
            for task in (entry / "task").iterdir():
                try:
                    os.sched_setscheduler(int(task.name), os.SCHED_RR if on else os.SCHED_OTHER,
                                          os.sched_param(1 if on else 0))
                except OSError:
                    pass


# --- the comparison ---

def calm(options):
    """The load average to note for a round; waits a while for a quiet machine."""
    deadline = time.monotonic() + PATIENCE_S
    while not options.allow_load and os.getloadavg()[0] > LOAD_MAX:
        if time.monotonic() > deadline:
            break
        time.sleep(5)
    return round(os.getloadavg()[0], 2)


def measure_round(bench, number, base, mock, gateways):
    load = calm(bench.options)
    row = {"round": number, "load": load,
           "void": load > LOAD_MAX and not bench.options.allow_load}
    names = list(gateways) if number % 2 else list(reversed(gateways))
    for name in names:
        row[name] = {}
    for case, (bodies, connections, gap) in CASES.items():
        get(f"http://127.0.0.1:{base}/control?gap_ms={gap}")
        for name in names:
            process, port = gateways[name]
            row[name][case] = bench.cpu_case(process, port, bodies, connections)
    get(f"http://127.0.0.1:{base}/control?gap_ms=0")
    processes = [mock, *(process for process, _ in gateways.values())]
    set_realtime(processes, bench.options.favour)
    try:
        windows = measure_latency(bench, base, {name: gateways[name][1] for name in names})
    finally:
        set_realtime(processes, False)
    for name in names:
        row[name]["latency"] = windows[name]
        row[name]["rss_mib"] = rss_mib(gateways[name][0].pid)
    return row


def measure_latency(bench, base, ports):
    """Short windows in turn: a machine that stands still for some milliseconds spoils one of them,
    and the median leaves it out."""
    seen = {name: {"added_p50_us": [], "added_p99_us": [], "failures": 0} for name in ports}
    for _ in range(WINDOWS):
        direct = bench.latency(base)
        for name, port in ports.items():
            through = bench.latency(port)
            for key in ("p50", "p99"):
                seen[name][f"added_{key}_us"].append(round(through[key] - direct[key], 1))
            seen[name]["failures"] += through["errors"] + through["sent"] - through["ok"]
    return seen


def figures(row, gateway):
    """The comparable figures of a gateway in one round, by name."""
    out = {case: row[gateway][case]["cpu_us"] for case in CASES}
    for key in ("added_p50_us", "added_p99_us"):
        out[key] = statistics.median(row[gateway]["latency"][key])
    out["rss_mib"] = row[gateway]["rss_mib"]
    return out


def medians(rows, gateway):
    columns = [figures(row, gateway) for row in rows]
    return {key: round(statistics.median(c[key] for c in columns), 2) for key in columns[0]}


def ratios(rows):
    """The median of the rounds' own ratios: within a round both gateways had the same machine."""
    pairs = [(figures(row, "signalbox"), figures(row, "nginx")) for row in rows]
    out = {}
    for key in pairs[0][0]:
        of_rounds = [ours[key] / theirs[key] for ours, theirs in pairs if theirs[key] > 0]
        out[key] = round(statistics.median(of_rounds), 2) if of_rounds else None
    return out


def compare(bench):
    base = bench.options.port
    ports, admin = {"nginx": base - 1, "signalbox": base - 2}, base - 3
    mock = bench.mock(base, ENGINES)
    gateways = {
        "nginx": (bench.nginx(ports["nginx"], base), ports["nginx"]),
        "signalbox": (bench.signalbox(ports["signalbox"], admin, base, ENGINES),
                      ports["signalbox"])}
    wait_for(f"http://127.0.0.1:{admin}/readyz", gateways["signalbox"][0])
    rows = []
    for number in range(1, bench.options.rounds + 1):
        rows.append(measure_round(bench, number, base, mock, gateways))
        say(f"round {number}: {json.dumps(rows[-1])}")
    bench.stop_all()
    valid = [row for row in rows if not row["void"]]
    out = {"rounds": rows, "rounds_valid": len(valid)}
    if valid:
        out["medians"] = {name: medians(valid, name) for name in ("signalbox", "nginx")}
        out["ratios"] = ratios(valid)
    return out


# --- Signalbox alone, in front of many engines ---

def known(admin):
    """How many endpoints have told their load at least once."""
    fleet = json.loads(get(f"http://127.0.0.1:{admin}/v1/fleet"))
    return sum(endpoint["observed"] for pool in fleet["pools"] for endpoint in pool["endpoints"])


def measure_size(bench, count):
    base, port, admin = bench.options.port + 1000, bench.options.port - 2, bench.options.port - 3
    bench.mock(base, count)
    begun = time.monotonic()
    process = bench.signalbox(port, admin, base, count)
    wait_for(f"http://127.0.0.1:{admin}/readyz", process)
    row = {"engines": count, "load": round(os.getloadavg()[0], 2),
           "ready_seconds": round(time.monotonic() - begun, 2)}
    while known(admin) < count:
        if time.monotonic() - begun > 120:
            raise SystemExit(f"only {known(admin)} of {count} engines are known after 120 s")
        time.sleep(0.05)
    row["all_known_seconds"] = round(time.monotonic() - begun, 2)
    time.sleep(2)
    before, at = cpu_seconds(process.pid), time.monotonic()
    time.sleep(8)
    row["watching_cores"] = round((cpu_seconds(process.pid) - before) / (time.monotonic() - at), 4)
    watching = row["watching_cores"] * bench.options.seconds
    result = bench.cpu_case(process, port, "prefixed", 32)
    row["cpu_us"] = result["cpu_us"]
    row["cpu_us_without_watching"] = round(
        result["cpu_us"] - watching * 1e6 / max(1, result["per_second"] * bench.options.seconds), 2)
    row["failures"] = result["failures"]
    row["rss_mib"] = rss_mib(process.pid)
    bench.stop_all()
    return row


def say(line):
    print(line, file=sys.stderr, flush=True)


def machine():
    model = next((line.split(":")[1].strip() for line in open("/proc/cpuinfo")
                  if line.startswith("model name")), platform.machine())
    return {"cpu": model, "cores": os.cpu_count(), "kernel": platform.release(),
            "load_at_start": round(os.getloadavg()[0], 2)}


def versions(options):
    nginx = subprocess.run(["/usr/sbin/nginx", "-v"], capture_output=True, text=True).stderr
    ours = subprocess.run([options.signalbox, "--version"], capture_output=True, text=True).stdout
    commit = subprocess.run(["git", "-C", ROOT, "describe", "--always"], capture_output=True,
                            text=True).stdout
    return {"nginx": nginx.strip().rsplit("/", 1)[-1], "signalbox": ours.strip(),
            "commit": commit.strip()}


def parse():
    a = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="example: bench/proxy/run.py --rounds 9 --out result.json")
    a.add_argument("--rounds", type=int, default=9, help="interleaved rounds (9)")
    a.add_argument("--seconds", type=int, default=2, help="of load per case and gateway (2)")
    a.add_argument("--rate", type=int, default=1000, help="requests per second of the probe (1000)")
    a.add_argument("--sizes", default="10,100,1000", help="fleets of Signalbox alone; '' for none")
    a.add_argument("--signalbox", default=str(ROOT / "build/release/signalbox"))
    a.add_argument("--cores", default="0,1", help="core of engines and load, core of the gateway")
    a.add_argument("--port", type=int, default=19000, help="first port of the mock engines (19000)")
    a.add_argument("--allow-load", action="store_true", help="no round is void")
    a.add_argument("--favour", action="store_true",
                   help="as root: be preferred to other work on a shared machine")
    a.add_argument("--out", help="write the JSON there too")
    return a.parse_args()


def main():
    options = parse()
    if not os.access(options.signalbox, os.X_OK):
        raise SystemExit(f"{options.signalbox} is missing: make build")
    out = {"date": datetime.date.today().isoformat(), "machine": machine(),
           "versions": versions(options), "allow_load": options.allow_load,
           "favour": options.favour}
    with tempfile.TemporaryDirectory(prefix="signalbox-bench-") as name:
        os.chmod(name, 0o755)
        write_bodies(pathlib.Path(name))
        bench = Bench(options, pathlib.Path(name))
        try:
            if options.rounds > 0:
                out.update(compare(bench))
            out["fleets"] = []
            for count in (int(size) for size in options.sizes.split(",") if size):
                out["fleets"].append(measure_size(bench, count))
                say(f"fleet: {json.dumps(out['fleets'][-1])}")
        finally:
            bench.stop_all()
    print(json.dumps(out, indent=1))
    if options.out:
        pathlib.Path(options.out).write_text(json.dumps(out, indent=1) + "\n")
    if options.rounds > 0 and out["rounds_valid"] == 0:
        raise SystemExit("every round is void: the machine is busy (--allow-load takes it anyway)")


if __name__ == "__main__":
    main()
