# SPDX-License-Identifier: Apache-2.0
"""Two genuine llama.cpp servers with a small real model behind the gateway.

Nothing is mocked: answers at temperature 0 are compared with those of the engine itself, cached
tokens and token counts with the engine's own figures. scripts/setup llamacpp fetches both.
"""
import json
import os
import pathlib
import signal
import threading
import time
import unittest

from client import Connection, call, request_bytes
from processes import PATIENCE, ROOT, Process, free_port, wait_for
from world import CHAT, Gateway, check_invariants

CACHE = pathlib.Path(os.environ.get("SIGNALBOX_CACHE", ROOT / ".cache")) / "llamacpp"
MODEL = CACHE / "SmolLM2-135M-Instruct.Q4_1.gguf"
NAME = "smollm2-135m"
SLOTS = 2


def chat(content, **more):
    messages = content if isinstance(content, list) else [{"role": "user", "content": content}]
    return {"model": NAME, "messages": messages, "max_tokens": 24, "temperature": 0, **more}


class Engine:
    def __init__(self):
        self.port = free_port()
        self.address = f"127.0.0.1:{self.port}"
        self.url = f"http://{self.address}"
        self.start()

    def start(self):
        self.process = Process("llamacpp", [
            CACHE / "venv/bin/python", ROOT / "scripts/llamacpp-engine", MODEL, self.port, SLOTS,
            4096, 1], env={"OMP_WAIT_POLICY": "passive"})

    def wait(self):
        self.process.find("READY", 90)

    def get(self, path):
        return call(self.address, "GET", path, timeout=30)

    def post(self, path, body):
        return call(self.address, "POST", path, body, timeout=60)

    def busy(self):
        return sum(slot["is_processing"] for slot in self.get("/slots").json())

    def metric(self, name):
        for line in self.get("/metrics").text.splitlines():
            if line.startswith(f"llamacpp:{name} "):
                return float(line.split()[1])
        return None

    def kill(self):
        self.process.stop(signal.SIGKILL)


class LlamaCpp(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        if not MODEL.exists():
            raise AssertionError("run scripts/setup llamacpp first")
        cls.engines = [Engine(), Engine()]
        for engine in cls.engines:
            engine.wait()
        cls.gateway = Gateway([e.url for e in cls.engines])
        wait_for("both engines are known", lambda: len(cls.gateway.endpoints()) == 2, 20)

    @classmethod
    def tearDownClass(cls):
        try:
            if hasattr(cls, "gateway"):
                assert cls.gateway.stop() == 0, cls.gateway.process.log()
                status, said = cls.gateway.replay()
                assert status == 0 and said.startswith("identical"), said
        finally:
            for engine in cls.engines:
                engine.kill()

    def tearDown(self):
        check_invariants(self, self.gateway, exact=False, within=60)

    def ask(self, body, path=CHAT, **headers):
        return self.gateway.post(path, body, headers or None, timeout=60)

    def idle(self, within=120):
        # The engine looks for clients that left only between its own results: ask it seldom.
        wait_for("both engines are idle",
                 lambda: all(e.busy() == 0 for e in self.engines), within, every=3)

    def test_it_is_known_for_what_it_is(self):
        for e in self.gateway.endpoints():
            self.assertEqual((e["kind"], e["limit"], e["observed"]), ("llamacpp", SLOTS, True), e)
        self.assertEqual(self.gateway.call("GET", "/v1/models").json()["data"][0]["id"], NAME)

    def test_plain_and_streamed_answers_are_the_engines(self):
        body = chat("What is gravity? Answer in one sentence.")
        own = self.engines[0].post(CHAT, body).json()
        text = own["choices"][0]["message"]["content"]
        plain = self.ask(body)
        self.assertEqual(plain.status, 200, plain)
        through = plain.json()
        self.assertEqual(through["choices"][0]["message"]["content"], text)
        self.assertEqual(through["choices"][0]["finish_reason"], own["choices"][0]["finish_reason"])
        self.assertEqual(through["model"], NAME)
        for key in ("prompt_tokens", "completion_tokens", "total_tokens"):
            self.assertEqual(through["usage"][key], own["usage"][key])
        self.assertEqual(through["object"], "chat.completion")
        streamed = self.ask({**body, "stream": True})
        self.assertEqual((streamed.status, streamed.deltas()), (200, text))
        self.assertEqual(streamed.events()[-1], "[DONE]")
        self.assertIsNone(streamed.usage())
        print(f"[{text[:60]}...]", end=" ")

    def test_usage_for_those_who_ask(self):
        streamed = self.ask(chat("Name three colors.", stream=True,
                                 stream_options={"include_usage": True}))
        self.assertGreater(streamed.usage()["prompt_tokens"], 20)

    def test_completions(self):
        body = {"model": NAME, "prompt": "One, two, three,", "max_tokens": 8, "temperature": 0}
        own = self.engines[1].post("/v1/completions", body).json()["choices"][0]["text"]
        self.assertEqual(self.ask(body, "/v1/completions").json()["choices"][0]["text"], own)
        streamed = self.ask({**body, "stream": True}, "/v1/completions")
        self.assertEqual(streamed.deltas(), own)

    def test_the_second_turn_finds_its_cache(self):
        for number in range(2):
            messages = [{"role": "system", "content": f"You are helper {number}. "
                         + "Answer briefly and kindly. " * 12},
                        {"role": "user", "content": "List three fruits."}]
            first = self.ask(chat(messages))
            messages += [first.json()["choices"][0]["message"],
                         {"role": "user", "content": "And three more."}]
            second = self.ask(chat(messages))
            self.assertEqual(second["x-signalbox-endpoint"], first["x-signalbox-endpoint"])
            usage = second.json()["usage"]
            cached = usage["prompt_tokens_details"]["cached_tokens"]
            self.assertGreater(cached, usage["prompt_tokens"] // 2, usage)
            print(f"[{cached} of {usage['prompt_tokens']} tokens cached]", end=" ")

    def test_two_choices(self):
        answer = self.ask(chat("Say hello.", n=2, max_tokens=6))
        self.assertEqual(answer.status, 200, answer)
        self.assertEqual([c["index"] for c in answer.json()["choices"]], [0, 1])

    def test_a_schema_is_enforced(self):
        answer = self.ask(chat("Give a color.", max_tokens=60, response_format={
            "type": "json_schema", "json_schema": {"name": "c", "schema": {
                "type": "object", "properties": {"color": {"enum": ["red", "blue"]}},
                "required": ["color"]}}}))
        self.assertIn(json.loads(answer.json()["choices"][0]["message"]["content"])["color"],
                      ("red", "blue"))

    def test_messages_and_responses_are_relayed(self):
        messages = {"model": NAME, "max_tokens": 12, "temperature": 0,
                    "messages": [{"role": "user", "content": "Name a color."}]}
        own = self.engines[0].post("/v1/messages", messages).json()
        plain = self.ask(messages, "/v1/messages")
        self.assertEqual(plain.status, 200, plain)
        self.assertEqual(plain.json()["content"], own["content"])
        streamed = self.ask({**messages, "stream": True}, "/v1/messages")
        self.assertEqual(json.loads(streamed.events()[-1])["type"], "message_stop", streamed)
        counted = self.ask(messages, "/v1/messages/count_tokens")
        self.assertGreater(counted.json()["input_tokens"], 10)
        responses = {"model": NAME, "max_output_tokens": 12, "temperature": 0,
                     "input": "Name a color."}
        plain = self.ask(responses, "/v1/responses")
        self.assertEqual((plain.status, plain.json()["object"]), (200, "response"), plain)
        streamed = self.ask({**responses, "stream": True}, "/v1/responses")
        self.assertEqual(json.loads(streamed.events()[-1])["type"], "response.completed")

    def test_errors_have_the_shape_that_sdks_read(self):
        unknown = self.ask({**chat("Hi"), "model": "gpt-4"})
        self.assertEqual((unknown.status, unknown.json()["error"]["code"]),
                         (404, "model_not_found"))
        for stream in (False, True):
            long = self.ask(chat("word " * 3000, stream=stream))
            self.assertEqual(long.status, 400, long)
            self.assertIn("exceed", long.json()["error"]["message"])
        bad = self.ask(chat("Hi", max_tokens=-5))
        self.assertEqual(bad.status, 400, bad)
        self.assertTrue(bad.json()["error"]["message"])
        embeddings = self.ask({"model": NAME, "input": "x"}, "/v1/embeddings")
        self.assertEqual(embeddings.status, 501, embeddings)

    def test_a_leaving_client_frees_its_slot(self):
        # While tokens flow, during prefill, streamed and plain.
        prompt = "Write a very long story about the sea. "
        for name, stream, content, until in (
                ("tokens", True, prompt, b'"content":"'),
                ("prefill", True, prompt * 20, b""),
                ("plain", False, prompt, b"")):
            body = chat(content, stream=stream, max_tokens=1200, ignore_eos=True)
            with self.gateway.connect(timeout=60) as c:
                c.send(request_bytes(c.host, "POST", CHAT, body))
                if until:
                    c.read_until(until)
                else:
                    wait_for("it was placed", lambda: any(
                        e["ours"] for e in self.gateway.endpoints()))
                    time.sleep(0.3)
            begun = time.monotonic()
            self.gateway.settle(2)
            ours = time.monotonic() - begun
            self.idle()
            print(f"[{name}: ours {ours * 1e3:.0f} ms, slot {time.monotonic() - begun:.1f} s]",
                  end=" ")

    def test_a_conversation_id_does_not_outlive_its_client(self):
        body = chat("Write a very long story.", stream=True, max_tokens=1200, ignore_eos=True)
        with self.gateway.connect(timeout=60) as c:
            c.send(request_bytes(c.host, "POST", CHAT, body, {"x-conversation-id": "c1"}))
            c.read_until(b'"content":"')
        self.idle()

    def test_more_requests_than_slots_wait_here_and_not_there(self):
        deferred, answers = [], []

        def ask(i):
            answers.append(self.ask(chat(f"Count from {i}.", max_tokens=12)).status)
        threads = [threading.Thread(target=ask, args=(i,)) for i in range(10)]
        for thread in threads:
            thread.start()
        while any(thread.is_alive() for thread in threads):
            deferred += [e.metric("requests_deferred") for e in self.engines]
            time.sleep(0.5)
        self.assertEqual(answers, [200] * 10)
        self.assertEqual(max(deferred), 0)

    def test_counters_of_the_engine_agree_with_the_ledger(self):
        def engine_figures():
            return (sum(e.metric("prompt_tokens_total") for e in self.engines),
                    sum(e.metric("tokens_predicted_total") for e in self.engines))
        self.idle()
        before, books = engine_figures(), self.gateway.admin_json("/v1/accounts")["all"]
        for i in range(4):
            self.assertEqual(self.ask(chat(f"Tell me about {i} cats.", max_tokens=10,
                                           stream=i % 2 == 1)).status, 200)
        self.idle()
        after, now = engine_figures(), self.gateway.admin_json("/v1/accounts")["all"]
        prompt = now["prompt_tokens"] - books["prompt_tokens"]
        cached = now["cached_tokens"] - books["cached_tokens"]
        generated = now["completion_tokens"] - books["completion_tokens"]
        self.assertEqual(after[1] - before[1], generated)
        self.assertEqual(after[0] - before[0], prompt - cached)

    def test_predictions_learn_from_its_timings(self):
        for i in range(3):
            self.ask(chat(f"Say {i}.", max_tokens=8))
        profile = self.gateway.admin_json("/v1/profiles")["profiles"][0]
        self.assertGreater(profile["prefill_observations"], 0, profile)
        self.assertGreater(profile["decode_observations"], 0, profile)

    def test_zz_a_killed_engine_ends_its_stream_with_an_error_and_the_other_serves(self):
        body = chat("Write a very long story.", stream=True, max_tokens=600, ignore_eos=True)
        with self.gateway.connect(timeout=60) as c:
            c.send(request_bytes(c.host, "POST", CHAT, body))
            c.read_until(b'"content":"')
            victim = next(e for e in self.engines if self.gateway.endpoint(e.address)["ours"])
            victim.kill()
            rest = c.read_until(b"0\r\n\r\n")
        self.assertIn(b'"error"', rest[-2000:])
        self.assertNotIn(b"[DONE]", rest)
        for i in range(3):
            self.assertEqual(self.ask(chat(f"Still {i}?", max_tokens=4)).status, 200)
