# SPDX-License-Identifier: Apache-2.0
"""Many clients, some of whom leave, and engines that die and come back. Whatever happens, every
client gets the whole answer, an error that says so, or had left; and the books balance."""
import collections
import json
import os
import random
import signal
import threading
import time

from client import Closed, request_bytes
from processes import BINARY, Process, free_port, wait_for
from world import CHAT, Case, Fleet, Gateway, chat, check_invariants

SEED = int(os.environ.get("SIGNALBOX_E2E_SEED", "7"))


class KilledEngine:
    """An emulated engine in a process of its own, so that it can die by kill -9."""

    def __init__(self, **options):
        self.port = free_port()
        self.options = [x for k, v in options.items() for x in (f"--{k.replace('_', '-')}", v)]
        self.url = f"http://127.0.0.1:{self.port}"
        self.start()

    def start(self):
        self.process = Process("mortal", [BINARY, "engine", "--listen", f"127.0.0.1:{self.port}",
                                          "--served-model", "m", *self.options])
        self.process.find("listens on")

    def kill(self):
        self.process.stop(signal.SIGKILL)


def run_all(functions):
    threads = [threading.Thread(target=f) for f in functions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


class Churn(Case):
    """200 streams at once, a third of whose readers leave, one engine of three killed under them
    and started again."""

    exact = False

    @classmethod
    def start(cls):
        cls.fleet = Fleet(2, speed=1, fixed_itl_ms=15)
        cls.mortal = KilledEngine(speed=1, fixed_itl_ms=15)
        cls.gateway = Gateway([*cls.fleet.urls, cls.mortal.url])
        wait_for("three engines are known", lambda: len(cls.gateway.endpoints()) == 3)

    @classmethod
    def tearDownClass(cls):
        try:
            super().tearDownClass()
        finally:
            cls.mortal.kill()

    def one_client(self, number, rng, tell):
        """Runs one request; tells (end, text)."""
        stream = number % 8 != 0
        body = chat(f"Client {number} asks.", stream=stream, max_tokens=rng.randint(20, 120),
                    ignore_eos=True)
        leaves = rng.random() < 0.33
        try:
            with self.gateway.connect(timeout=60) as c:
                c.send(request_bytes(c.host, "POST", CHAT, body))
                if leaves:
                    time.sleep(rng.random() * 0.8)
                    if rng.random() < 0.5:
                        c.reset()
                    return tell(number, body, "left", "")
                answer = c.read_answer()
        except (OSError, Closed) as error:
            return tell(number, body, f"silence: {error!r}", "")
        if not stream:
            end = "whole" if answer.status == 200 else "refused"
            text = (answer.json()["choices"][0]["message"]["content"] if end == "whole" else "")
        elif answer.status != 200:
            end, text = "refused", ""
        else:
            last = answer.events()[-1]
            end = "whole" if last == "[DONE]" else "error" if "error" in json.loads(last) else "?"
            text = answer.deltas()
            if answer.end != "chunked":
                end = f"silence: {answer.end}"
        return tell(number, body, end, text)

    def test_every_client_gets_an_end_and_the_books_balance(self):
        print(f"[seed {SEED}]", end=" ", flush=True)
        rng = random.Random(SEED)
        before = self.gateway.totals()["arrived"]
        files = len(os.listdir(f"/proc/{self.gateway.process.pid}/fd"))
        ends, lock = [], threading.Lock()

        def tell(number, body, end, text):
            with lock:
                ends.append((number, body, end, text))
        seeds = [random.Random(rng.random()) for _ in range(200)]
        clients = [threading.Thread(target=self.one_client, args=(i, seeds[i], tell))
                   for i in range(200)]
        for client in clients:
            client.start()
        wait_for("the mortal engine works", lambda: any(
            e["ours"] > 5 for e in self.gateway.endpoints()
            if e["address"] == f"127.0.0.1:{self.mortal.port}"))
        self.mortal.kill()
        time.sleep(0.4)
        self.mortal.start()
        for client in clients:
            client.join()
        count = collections.Counter(end for _, _, end, _ in ends)
        print(dict(count), end=" ")
        self.assertEqual(set(count) - {"whole", "error", "left", "refused"}, set())
        for number, body, end, text in ends:
            expected = self.fleet.expect(body)["text"]
            if end == "whole":
                self.assertEqual(text, expected, number)
            elif end == "error":
                self.assertTrue(expected.startswith(text), number)
        check_invariants(self, self.gateway, [self.fleet], exact=False, within=20)
        totals = self.gateway.totals()
        arrived = totals["arrived"] - before
        print(self.gateway.outcomes(), end=" ")
        self.assertLessEqual(arrived, 200)
        self.assertGreaterEqual(arrived, 200 - count["left"])
        done = totals["outcomes"]["completed"]
        self.assertLessEqual(count["whole"], done)
        self.assertLessEqual(done, count["whole"] + count["left"])
        self.assertLessEqual(count["error"], totals["outcomes"]["truncated"])

        def as_before():
            return len(os.listdir(f"/proc/{self.gateway.process.pid}/fd")) <= files + 8
        wait_for("sockets are given back", as_before, 20)

    def test_the_restarted_engine_gets_work_again(self):
        self.mortal.kill()
        for i in range(10):
            self.assertEqual(self.gateway.chat(chat(f"a{i}", max_tokens=2)).status, 200)
        self.mortal.start()

        # One request after the other may all be best served by the same engine; many at once not.
        def works():
            answers = []
            run_all([lambda i=i: answers.append(
                self.gateway.chat(chat(f"{i} {time.monotonic()}", max_tokens=20)))
                for i in range(24)])
            self.assertEqual([a.status for a in answers], [200] * 24)
            return any(a["x-signalbox-endpoint"] == f"127.0.0.1:{self.mortal.port}"
                       for a in answers)
        wait_for("it serves again", works, 60)


class Thousands(Case):
    """Five thousand mixed requests; the replay at the end decides them all again."""

    REQUESTS = int(os.environ.get("SIGNALBOX_E2E_REQUESTS", "5000"))

    @classmethod
    def start(cls):
        cls.fleet = Fleet(4, speed=200)
        cls.gateway = Gateway(cls.fleet.urls)

    def test_each_gets_its_own_answer(self):
        failures, lock = [], threading.Lock()
        prefixes = [f"Document {i}. " + f"Line of document {i}. " * (10 * i) for i in range(12)]

        def worker(index):
            rng = random.Random(SEED * 1000 + index)
            with self.gateway.connect(timeout=60) as c:
                for i in range(self.REQUESTS // 16):
                    body = chat(rng.choice(prefixes) + f"Question {index}.{i}",
                                stream=rng.random() < 0.3, max_tokens=rng.randint(1, 12))
                    answer = c.request("POST", CHAT, body)
                    if answer.status != 200 or (body["stream"] and "[DONE]" not in answer.text):
                        with lock:
                            failures.append(answer)
                    if i % 50 == 0:
                        text = (answer.deltas() if body["stream"] else
                                answer.json()["choices"][0]["message"]["content"])
                        if text != self.fleet.expect(body)["text"]:
                            with lock:
                                failures.append((body, answer))
        begun, cpu = time.monotonic(), self.gateway.process.cpu()
        run_all([lambda i=i: worker(i) for i in range(16)])
        took, cpu = time.monotonic() - begun, self.gateway.process.cpu() - cpu
        print(f"[{self.REQUESTS / took:.0f} requests/s, {cpu / self.REQUESTS * 1e6:.0f} us each]",
              end=" ")
        self.assertEqual(failures[:3], [])
        self.assertEqual(self.gateway.outcomes(), {"completed": self.REQUESTS // 16 * 16})
