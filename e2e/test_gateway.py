# SPDX-License-Identifier: Apache-2.0
"""What clients of a healthy fleet get: every API, plain and streamed, byte for byte.

The emulated engines know every byte of their answers (/emulator/expect), so each test compares
what came through the gateway with what an engine must have said.
"""
import fcntl
import json
import os
import pty
import re
import signal
import struct
import subprocess
import termios
import threading
import time

from client import Connection
from fake_engine import DONE, FakeEngine, chunked, event, http
from processes import BINARY, PATIENCE, wait_for
from world import CHAT, Case, Fleet, Gateway, chat, configuration, documents, resource

MESSAGES = {"model": "m", "max_tokens": 12, "messages": [{"role": "user", "content": "Hi there."}]}
RESPONSES = {"model": "m", "max_output_tokens": 12, "input": "Say something."}


class Apis(Case):
    """Two vLLM engines, no configuration."""

    def test_a_plain_chat_is_the_engines_answer(self):
        body = chat("How are you?")
        answer = self.gateway.chat(body)
        self.assertEqual((answer.status, answer.end), (200, "length"), answer)
        expected = self.fleet.expect(body)
        choice = answer.json()["choices"][0]
        self.assertEqual(choice["message"]["content"], expected["text"])
        self.assertEqual(choice["finish_reason"], expected["finish_reason"])
        self.assertEqual(answer.json()["usage"]["completion_tokens"], expected["tokens"])
        self.assertEqual(answer.json()["usage"]["prompt_tokens"], expected["prompt_tokens"])
        self.assertEqual(answer["cache-control"], "no-store")
        self.assertTrue(answer["x-request-id"])
        self.assertIn(answer["x-signalbox-endpoint"], self.fleet.engines)
        self.assertEqual(answer["x-signalbox-queue-ms"], "0")
        self.assertTrue(int(answer["x-signalbox-decision"]) > 0)

    def test_a_streamed_chat_has_every_token_and_one_end(self):
        body = chat("Count to ten.", stream=True, max_tokens=40)
        answer = self.gateway.chat(body)
        self.assertEqual((answer.status, answer.end), (200, "chunked"), answer)
        self.assertTrue(answer["content-type"].startswith("text/event-stream"))
        self.assertEqual(answer.deltas(), self.fleet.expect(body)["text"])
        self.assertEqual(answer.events()[-1], "[DONE]")
        self.assertEqual(answer.text.count("[DONE]"), 1)
        self.assertIsNone(answer.usage(), "usage that the client did not ask for")
        self.assertNotIn('"usage"', answer.text)

    def test_no_chunk_ends_inside_an_event(self):
        answer = self.gateway.chat(chat("Whole events.", stream=True, max_tokens=60))
        for chunk in answer.chunks:
            self.assertTrue(chunk.endswith(b"\n\n"), chunk)

    def test_usage_reaches_the_client_that_asks_for_it(self):
        body = chat("Use it.", stream=True, stream_options={"include_usage": True})
        answer = self.gateway.chat(body)
        self.assertEqual(answer.usage()["completion_tokens"], self.fleet.expect(body)["tokens"])

    def test_two_choices_both_come_to_their_end(self):
        for stream in (False, True):
            body = chat("Twice.", n=2, stream=stream, max_tokens=8)
            answer, expected = self.gateway.chat(body), self.fleet.expect(body)
            for i in (0, 1):
                text = (answer.deltas(i) if stream
                        else answer.json()["choices"][i]["message"]["content"])
                self.assertEqual(text, expected["choices"][i]["text"])

    def test_completions_plain_and_streamed(self):
        path = "/v1/completions"
        for stream in (False, True):
            body = {"model": "m", "prompt": "Once upon a time", "max_tokens": 20, "stream": stream}
            answer, expected = self.gateway.post(path, body), self.fleet.expect(body, path)
            self.assertEqual(answer.status, 200, answer)
            text = answer.deltas() if stream else answer.json()["choices"][0]["text"]
            self.assertEqual(text, expected["text"])

    def test_messages_plain_and_streamed(self):
        path = "/v1/messages"
        expected = self.fleet.expect(MESSAGES, path)
        plain = self.gateway.post(path, MESSAGES)
        self.assertEqual(plain.status, 200, plain)
        self.assertEqual(plain.json()["content"][0]["text"], expected["text"])
        self.assertEqual(plain.json()["usage"]["output_tokens"], expected["tokens"])
        streamed = self.gateway.post(path, {**MESSAGES, "stream": True})
        self.assertEqual(streamed.status, 200, streamed)
        events = [json.loads(e) for e in streamed.events()]
        self.assertEqual(events[-1]["type"], "message_stop")
        text = "".join(e["delta"].get("text", "") for e in events
                       if e["type"] == "content_block_delta")
        self.assertEqual(text, expected["text"])

    def test_messages_with_a_query_and_a_version_header(self):
        answer = self.gateway.post("/v1/messages?beta=true", MESSAGES,
                                   {"anthropic-version": "2023-06-01", "x-api-key": "any"})
        self.assertEqual(answer.status, 200, answer)

    def test_responses_plain_and_streamed(self):
        path = "/v1/responses"
        expected = self.fleet.expect(RESPONSES, path)
        plain = self.gateway.post(path, RESPONSES)
        self.assertEqual(plain.status, 200, plain)
        self.assertIn(expected["text"], plain.text)
        streamed = self.gateway.post(path, {**RESPONSES, "stream": True})
        events = [json.loads(e) for e in streamed.events()]
        self.assertEqual(events[-1]["type"], "response.completed")
        text = "".join(e["delta"] for e in events if e["type"] == "response.output_text.delta")
        self.assertEqual(text, expected["text"])

    def test_models_page_lists_and_names_one(self):
        page = self.gateway.call("GET", "/v1/models").json()
        self.assertEqual([m["id"] for m in page["data"]], ["m"])
        one = self.gateway.call("GET", "/v1/models/m")
        self.assertEqual((one.status, one.json()["id"]), (200, "m"))
        none = self.gateway.call("GET", "/v1/models/n")
        self.assertEqual(none.status, 404)
        self.assertIn("m", none.json()["error"]["message"])

    def test_head_has_the_fields_of_get_and_no_body(self):
        with self.gateway.connect() as c:
            head, get = c.request("HEAD", "/v1/models"), c.request("GET", "/v1/models")
            self.assertEqual(head.status, 200)
            self.assertEqual(head["content-length"], get["content-length"])

    def test_an_unknown_model_is_404_and_names_those_there_are(self):
        answer = self.gateway.chat({**chat(), "model": "mm"})
        self.assertEqual(answer.status, 404, answer)
        error = answer.json()["error"]
        self.assertEqual((error["code"], error["param"]), ("model_not_found", "model"))
        self.assertIn("m", error["message"])

    def test_malformed_json_is_400_and_reaches_no_engine(self):
        before = self.fleet.calls()
        for body in (b'{"model":"m","messages":[', b"", b"nonsense", b'{"model":"m"}{}',
                     b'{"model":"m","messages":[],"model":"m"}', b'[1]', b'{"model":7}',
                     b'{"model":"m","messages":[{"role":"user","content":"\xff"}]}'):
            answer = self.gateway.post(CHAT, body)
            self.assertEqual(answer.status, 400, (body, answer))
            self.assertEqual(answer.json()["error"]["type"], "invalid_request_error", answer)
        self.assertEqual(self.fleet.calls(), before)

    def test_the_anthropic_error_shape_on_its_endpoint(self):
        answer = self.gateway.post("/v1/messages", {**MESSAGES, "model": "mm"})
        self.assertEqual(answer.status, 404)
        self.assertEqual(answer.json()["type"], "error")
        self.assertEqual(answer.json()["error"]["type"], "not_found_error")

    def test_errors_of_the_engine_pass_as_they_are(self):
        answer = self.gateway.chat(chat(temperature=-1))
        self.assertEqual(answer.status, 400, answer)
        self.assertIn("temperature must be non-negative", answer.json()["error"]["message"])

    def test_unknown_paths_methods_and_codings(self):
        nothing = self.gateway.post("/v1/nothing", {})
        self.assertEqual((nothing.status, nothing.json()["error"]["code"]), (404, "unknown_url"))
        get = self.gateway.call("GET", CHAT)
        self.assertEqual((get.status, get["allow"]), (405, "POST, OPTIONS"))
        gzip = self.gateway.post(CHAT, b"\x1f\x8b", {"content-encoding": "gzip"})
        self.assertEqual(gzip.status, 415)
        for path in ("/v1/models", "/v1/models/m", "/health"):
            answer = self.gateway.call("DELETE", path)
            self.assertEqual((answer.status, answer["allow"]), (405, "GET, HEAD, OPTIONS"))

    def test_the_clients_request_id_is_kept(self):
        answer = self.gateway.chat(headers={"x-request-id": "mine-1"})
        self.assertEqual(answer["x-request-id"], "mine-1")
        shown = self.gateway.admin_json("/v1/decisions/mine-1")["decisions"]
        self.assertEqual(len(shown), 1)
        self.assertTrue(shown[0]["candidates"])
        # Names of clients are theirs: two may take one. Engines get a name that is unique.
        self.gateway.chat(headers={"x-request-id": "mine-1"})
        shown = self.gateway.admin_json("/v1/decisions/mine-1")["decisions"]
        self.assertEqual([d["request"] for d in shown], ["mine-1"] * 2)
        theirs = {d["engine_request"] for d in shown}
        self.assertEqual(len(theirs), 2)
        seen = {r["request_id"] for r in self.fleet.all_records()}
        self.assertLessEqual(theirs, seen)
        self.assertNotIn("mine-1", seen)
        self.assertEqual(self.gateway.admin_json(
            f"/v1/decisions/{shown[1]['engine_request']}")["decisions"], shown[1:])
        logged = [r for r in self.gateway.access_records() if r["request_id"] == "mine-1"]
        self.assertLessEqual({r["engine_request_id"] for r in logged}, theirs)
        # Nobody takes a name that another request has or will get.
        taken = self.gateway.chat(headers={"x-request-id": shown[0]["engine_request"]})
        self.assertNotEqual(taken["x-request-id"], shown[0]["engine_request"])

    def test_limits_of_numbers_are_held(self):
        for more in ({"n": 17}, {"max_tokens": 10**9}, {"stop": ["x"] * 17}, {"top_logprobs": 21}):
            self.assertEqual(self.gateway.chat(chat(**more)).status, 400, more)

    def test_a_deep_body_is_refused(self):
        deep = b'{"model":"m","messages":' + b"[" * 5000 + b"]" * 5000 + b"}"
        self.assertEqual(self.gateway.post(CHAT, deep).status, 400)

    def test_a_body_beyond_the_limit_is_413(self):
        with self.gateway.connect() as c:
            c.send(b"POST %s HTTP/1.1\r\nhost: x\r\ncontent-length: 9000000\r\n\r\n"
                   % CHAT.encode())
            self.assertEqual(c.read_answer().status, 413)

    def test_a_body_beyond_the_limit_is_413_in_the_apis_shape_and_names_it(self):
        for path, chunks in ((CHAT, False), ("/v1/messages", False), ("/v1/messages", True)):
            size = b"transfer-encoding: chunked" if chunks else b"content-length: 9000000"
            with self.gateway.connect() as c:
                c.send(b"POST %s HTTP/1.1\r\nhost: x\r\n%s\r\n\r\n895440\r\n"
                       % (path.encode(), size))
                said = c.read_answer().json()
            self.assertEqual(said.get("type"), None if path == CHAT else "error", said)
            self.assertEqual(said["error"]["type"], "invalid_request_error" if path == CHAT
                             else "request_too_large")
            self.assertIn("8388608 bytes", said["error"]["message"])
            self.assertIn("Gateway.limits.body", said["error"]["message"])

    def test_who_sends_all_of_a_body_beyond_the_limit_before_reading_learns_why(self):
        body = b"x" * (12 << 20)
        for _ in range(5):
            with self.gateway.connect() as c:
                c.send(b"POST %s HTTP/1.1\r\nhost: x\r\ncontent-length: %d\r\n\r\n"
                       % (CHAT.encode(), len(body)) + body)
                self.assertEqual(c.read_answer().status, 413)
                self.assertTrue(c.closed_by_peer())

    def test_a_refusals_line_in_the_access_log_tells_who_and_what(self):
        asked = {
            "rl-model": (404, b"POST %s HTTP/1.1\r\nhost: x\r\nx-request-id: rl-model\r\n"
                         b"content-length: 42\r\n\r\n" % CHAT.encode()
                         + b'{"model":"x","messages":[{"role":"user"}]}'),
            "/rl-head": (431, b"POST /rl-head?key=secret HTTP/1.1\r\nx: " + b"a" * 9000),
            "/rl-host": (400, b"GET /rl-host HTTP/1.1\r\n\r\n"),
            "/rl-body": (413, b"POST /rl-body HTTP/1.1\r\nhost: x\r\n"
                         b"content-length: 9000000\r\n\r\n"),
        }
        for name, (status, data) in asked.items():
            with self.gateway.connect() as c:
                c.send(data)
                self.assertEqual(c.read_answer().status, status, name)
        with self.gateway.connect() as c:
            c.send(b"nonsense\x01\r\n\r\n")
            self.assertEqual(c.read_answer().status, 400)

        def lines():
            return [r for r in self.gateway.access_records()
                    if "rl-" in r.get("path", "") + r["request_id"] or
                    (r["status"] == 400 and "method" not in r)]
        wait_for("all are told", lambda: len(lines()) == 5)
        for record in lines():
            self.assertEqual((record["outcome"], record["client"]), ("refused", "127.0.0.1"))
            path = record.get("path")
            name = record["request_id"] if path == CHAT else path
            if path is not None:
                self.assertEqual(record["status"], asked[name][0], record)
                self.assertIn(record["method"], ("GET", "POST"))

    def test_five_million_characters_are_served(self):
        body = chat("word " * 1000000, max_tokens=4)
        begun = time.monotonic()
        answer = self.gateway.chat(body)
        self.assertEqual(answer.status, 400, answer)  # longer than the engine's context
        self.assertIn("context", answer.json()["error"]["message"])
        print(f"[5 M characters answered after {time.monotonic() - begun:.2f} s]", end=" ")

    def test_ten_requests_on_one_connection(self):
        with self.gateway.connect() as c:
            for i in range(10):
                answer = c.request("POST", CHAT, chat(f"Number {i}", stream=i % 2 == 1))
                self.assertEqual(answer.status, 200)


class OtherApis(Case):
    """What the engines' counters do not count as generation."""

    exact = False

    def test_embeddings(self):
        answer = self.gateway.post("/v1/embeddings", {"model": "m", "input": ["a", "b"]})
        self.assertEqual(answer.status, 200, answer)
        self.assertEqual(len(answer.json()["data"]), 2)

    def test_token_counting_of_messages(self):
        answer = self.gateway.post("/v1/messages/count_tokens", MESSAGES)
        self.assertEqual(answer.status, 200, answer)
        self.assertGreater(answer.json()["input_tokens"], 0)


class LlamaCppDialect(Case):
    """Engines that are always asked for a stream."""

    @classmethod
    def start(cls):
        cls.fleet = Fleet(2, dialect="llamacpp", slots=4, context_tokens=4096)
        cls.gateway = Gateway(cls.fleet.urls)

    def test_a_plain_chat_is_assembled_from_a_stream(self):
        body = chat("Assemble this.")
        before = self.fleet.total("requests")
        answer, expected = self.gateway.chat(body), self.fleet.expect(body)
        self.assertEqual(self.fleet.total("requests"), before + 1)
        self.assertEqual((answer.status, answer.end), (200, "length"), answer)
        self.assertTrue(answer["content-type"].startswith("application/json"))
        parsed = answer.json()
        self.assertEqual(parsed["object"], "chat.completion")
        self.assertEqual(parsed["choices"][0]["message"]["content"], expected["text"])
        self.assertEqual(parsed["choices"][0]["message"]["role"], "assistant")
        self.assertEqual(parsed["choices"][0]["finish_reason"], expected["finish_reason"])
        self.assertEqual(parsed["usage"]["completion_tokens"], expected["tokens"])
        self.assertTrue(all(r["stream"] for r in self.fleet.all_records()))

    def test_a_plain_chat_of_twenty_thousand_tokens_is_assembled(self):
        def event(delta, finish=None):
            return b"data: " + json.dumps({
                "choices": [{"finish_reason": finish, "index": 0, "delta": delta}],
                "created": 1764470000, "id": "chatcmpl-0123456789abcdefghijklmnopqrstuv",
                "model": "m", "system_fingerprint": "b6900-abcdef12",
                "object": "chat.completion.chunk"}).encode() + b"\n\n"
        stream = (event({"content": " word"}) * 20000 + event({}, "stop") + b"data: [DONE]\n\n")
        fake = FakeEngine(lambda connection, request: chunked([stream]))
        gateway = Gateway(config=configuration([fake.url], pool={"engine": "llamacpp"}))
        self.addCleanup(fake.stop)
        self.addCleanup(gateway.stop)
        answer = gateway.chat()
        self.assertEqual(answer.status, 200)
        self.assertEqual(answer.json()["choices"][0]["message"]["content"], " word" * 20000)
        self.assertEqual(len(fake.requests), 1)

    def test_streams_and_completions(self):
        body = chat("Stream this.", stream=True)
        self.assertEqual(self.gateway.chat(body).deltas(), self.fleet.expect(body)["text"])
        for stream in (False, True):
            body = {"model": "m", "prompt": "Once", "max_tokens": 9, "stream": stream}
            answer = self.gateway.post("/v1/completions", body)
            text = answer.deltas() if stream else answer.json()["choices"][0]["text"]
            self.assertEqual(text, self.fleet.expect(body, "/v1/completions")["text"])

    def test_an_unknown_model_is_404_although_the_engine_would_take_it(self):
        self.assertEqual(self.gateway.chat({**chat(), "model": "other"}).status, 404)

    def test_the_slots_bound_what_an_engine_gets(self):
        for e in self.gateway.endpoints():
            self.assertEqual(e["limit"], 4)


class Tenants(Case):
    """Keys, visibility, caps; and that secrets stay where they belong."""

    KEY, OTHER, UPSTREAM = "sk-canary-alpha", "sk-canary-beta", "sk-canary-upstream"
    NOBODY = "authorization: Bearer nope"

    @classmethod
    def start(cls):
        cls.fleet = Fleet(1, fixed_itl_ms=10, speed=1)
        cls.fake = FakeEngine()
        text = configuration(
            cls.fleet.urls, more=(
                resource("Model", "fake"),
                resource("Pool", "fakes", model="fake", engine="openai", served_model="m",
                         endpoints=[cls.fake.url], api_key={"env": "UPSTREAM_KEY"}),
                resource("Tenant", "alpha", keys=[{"env": "ALPHA_KEY"}], concurrency_max=1),
                resource("Tenant", "beta", keys=[{"env": "BETA_KEY"}]),
                resource("Route", "only-alpha", targets=[{"model": "m"}], tenants=["alpha"])))
        cls.gateway = Gateway(config=text, env={"ALPHA_KEY": cls.KEY, "BETA_KEY": cls.OTHER,
                                                "UPSTREAM_KEY": cls.UPSTREAM})

    @classmethod
    def tearDownClass(cls):
        cls.fake.stop()
        super().tearDownClass()

    exact = False

    def bearer(self, key):
        return {"authorization": f"Bearer {key}"}

    def test_no_key_and_a_wrong_key_are_401(self):
        for headers in ({}, self.bearer("sk-canary-wrong"), {"x-api-key": "nope"},
                        {"authorization": "Basic c2s6"}):
            answer = self.gateway.chat(headers=headers)
            self.assertEqual(answer.status, 401, (headers, answer))
            self.assertEqual(answer.json()["error"]["type"], "authentication_error", answer)
        self.assertEqual(self.gateway.call("GET", "/v1/models").status, 401)

    def test_who_cannot_be_served_hears_it_before_the_body(self):
        """What the head is enough to know: key, path, method. Nothing waits for a body then."""
        beta = f"authorization: Bearer {self.OTHER}"
        for line, key, status in (
                (f"POST {CHAT}", self.NOBODY, 401), (f"POST {CHAT}", "x-a: b", 401),
                ("POST /v1/nothing", beta, 404), (f"PUT {CHAT}", beta, 405)):
            for framing in ("content-length: 1000000", "transfer-encoding: chunked",
                            "content-length: 1000000\r\nexpect: 100-continue"):
                with self.gateway.connect() as c:
                    c.send(f"{line} HTTP/1.1\r\nhost: x\r\n{key}\r\n{framing}\r\n\r\n".encode())
                    answer = c.read_answer()
                    self.assertEqual((answer.status, answer["connection"]), (status, "close"))
                    self.assertTrue(c.closed_by_peer())
        self.assertIn("POST", {r["method"] for r in self.gateway.access_records()
                               if r["status"] == 401})

    def test_both_spellings_of_a_key_work(self):
        self.assertEqual(self.gateway.chat(headers=self.bearer(self.KEY)).status, 200)
        self.assertEqual(self.gateway.chat(headers={"x-api-key": self.KEY}).status, 200)

    def test_two_different_keys_at_once_are_refused(self):
        for more in ({"x-api-key": self.OTHER}, {"AUTHORIZATION": f"Bearer {self.OTHER}"}):
            answer = self.gateway.chat(headers={**self.bearer(self.KEY), **more})
            self.assertEqual(answer.status, 401, more)
            self.assertEqual(answer.json()["error"]["code"], "conflicting_api_keys")

    def test_a_model_that_a_tenant_may_not_use_does_not_exist_for_it(self):
        body = {**chat(), "model": "only-alpha"}
        self.assertEqual(self.gateway.chat(body, self.bearer(self.KEY)).status, 200)
        refused = self.gateway.chat(body, self.bearer(self.OTHER))
        self.assertIn(refused.status, (403, 404))
        page = self.gateway.call("GET", "/v1/models", headers=self.bearer(self.OTHER)).json()
        self.assertNotIn("only-alpha", [m["id"] for m in page["data"]])

    def test_a_tenants_cap_is_429_for_it_alone(self):
        with self.gateway.connect() as busy:
            body = chat(stream=True, max_tokens=400, ignore_eos=True)
            busy.send(_post(self.gateway, body, self.KEY))
            busy.read_until(b"data: ")
            refused = self.gateway.chat(headers=self.bearer(self.KEY))
            self.assertEqual(refused.status, 429, refused)
            self.assertTrue(refused["retry-after"])
            self.assertEqual(self.gateway.chat(headers=self.bearer(self.OTHER)).status, 200)
        wait_for("the slot comes back", lambda: self.gateway.chat(
            headers=self.bearer(self.KEY)).status == 200)

    def test_the_engine_gets_the_pools_key_and_never_the_clients(self):
        body = {**chat(), "model": "fake"}
        for headers in (self.bearer(self.OTHER), {"x-api-key": self.OTHER},
                        {**self.bearer(self.OTHER), "api-key": self.OTHER,
                         "cookie": f"session={self.OTHER}"}):
            self.assertEqual(self.gateway.chat(body, headers).status, 200)
            seen = self.fake.requests[-1]
            self.assertEqual(seen["authorization"], f"Bearer {self.UPSTREAM}")
            self.assertNotIn(self.OTHER.encode(), seen.head + seen.body)

    def test_secrets_appear_in_no_page_and_no_log(self):
        prompt = "canary-prompt-text"
        self.gateway.chat(chat(prompt), self.bearer(self.KEY))
        self.gateway.chat({**chat(prompt), "model": "fake"}, self.bearer(self.OTHER))
        self.gateway.chat(chat(prompt), self.bearer("sk-canary-wrong"))
        self.gateway.post(CHAT, b'{"model":"m","canary-broken', self.bearer(self.KEY))
        self.gateway.settle()
        pages = ["/metrics", "/v1/fleet", "/v1/decisions", "/v1/config", "/v1/profiles",
                 "/v1/accounts", "/livez", "/readyz"]
        texts = {page: self.gateway.admin(page).text for page in pages}
        for record in self.gateway.admin_json("/v1/decisions")["decisions"]:
            page = f"/v1/decisions/{record['request']}"
            texts[page] = self.gateway.admin(page).text
        texts["log"] = self.gateway.process.log()
        texts["access log"] = self.gateway.access_log.read_text()
        texts["event log"] = self.gateway.event_log.read_bytes().decode("latin-1")
        for name, text in texts.items():
            self.assertNotIn("canary", text, name)


def _post(gateway, body, key=None):
    from client import request_bytes
    headers = {"authorization": f"Bearer {key}"} if key else {}
    return request_bytes(gateway.address, "POST", CHAT, body, headers)


class Names(Case):
    """The name that a client asks for, and the one that the engine knows."""

    @classmethod
    def start(cls):
        cls.fleet = Fleet(1, model="org/real-name")
        text = configuration(cls.fleet.urls, pool={"served_model": "org/real-name"}, more=(
            resource("Route", "assistant", public_name="gpt-4o", targets=[{"model": "m"}]),))
        cls.gateway = Gateway(config=text)

    def test_answers_carry_the_name_that_was_asked_for(self):
        for name in ("m", "gpt-4o"):
            plain = self.gateway.chat({**chat(), "model": name})
            self.assertEqual((plain.status, plain.json()["model"]), (200, name), plain)
            streamed = self.gateway.chat({**chat(stream=True), "model": name})
            names = {json.loads(e)["model"] for e in streamed.events() if e != "[DONE]"}
            self.assertEqual(names, {name})

    def test_the_engines_own_name_is_not_public(self):
        self.assertEqual(self.gateway.chat({**chat(), "model": "org/real-name"}).status, 404)

    def test_both_names_are_listed(self):
        page = self.gateway.call("GET", "/v1/models").json()
        self.assertEqual(sorted(m["id"] for m in page["data"]), ["gpt-4o", "m"])


class Bytes(Case):
    """Bodies reach the engine, and answers the client, byte for byte."""

    @classmethod
    def start(cls):
        cls.fake = FakeEngine()
        cls.gateway = Gateway(config=configuration([cls.fake.url], pool={"engine": "openai"}))

    @classmethod
    def tearDownClass(cls):
        cls.fake.stop()
        super().tearDownClass()

    def test_an_unusual_request_is_not_touched(self):
        body = ('{"model": "m",  "messages":[{"role":"user","content":"caf\\u00e9 \u20ac",'
                '"x_meta":{"k":1}}],"seed":90071992547409931234567,"temperature":'
                '0.10000000000000001,"big":1e400,"x_vendor":{"b":2,"a":[1.0,1e2]},'
                '"max_tokens":4}').encode()
        self.fake.reply = http()
        answer = self.gateway.post(CHAT, body, {
            "x-custom": "v1", "connection": "keep-alive, x-drop", "x-drop": "1",
            "x-conversation-id": "c1", "x-forwarded-host": "evil",
            "traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"})
        self.assertEqual(answer.status, 200, answer)
        seen = self.fake.requests[-1]
        self.assertEqual(seen.body, body)
        self.assertEqual(seen["x-custom"], "v1")
        self.assertTrue(seen["traceparent"].startswith("00-0af7651916cd43dd8448eb211c80319c-"))
        for hidden in ("x-drop", "x-conversation-id", "x-forwarded-host"):
            self.assertIsNone(seen[hidden], hidden)

    def test_a_plain_answer_is_not_touched(self):
        odd = (b'{"id":"x",  "choices":[{"index":0,"message":{"content":"\\u00e9\\/"},'
               b'"finish_reason":"stop","big":12345678901234567890123}],"usage":null,'
               b'"model":"m" , "zz":1e999}')
        self.fake.reply = http(odd)
        self.assertEqual(self.gateway.chat().body, odd)

    def test_events_come_as_they_are_wherever_they_are_cut(self):
        stream = (b": hello\n\n" + event("A") + b"event: odd\nid: 7\n" + event("B")
                  + b":ping\n\n" + event("\u20ac") + event(None, "stop") + DONE)
        for size in (1, 2, 3, 7, 50, 4096):
            pieces = [stream[i:i + size] for i in range(0, len(stream), size)]
            self.fake.reply = chunked(pieces)
            answer = self.gateway.chat(chat(stream=True))
            # Comments before the first event are not passed on.
            self.assertEqual(answer.body, stream[len(b": hello\n\n"):], f"cut at {size}")

    def test_a_pause_before_the_last_chunk_or_the_done_changes_nothing(self):
        events = [event("A"), event("B"), event(None, "stop"), DONE]
        whole = chunked(events)
        for cut in (whole.index(b"0\r\n\r\n", len(whole) - 5), whole.index(b"data: [DONE]"),
                    whole.index(b"data: [DONE]") + 5, len(whole) - 2):
            def reply(connection, request, cut=cut):
                connection.sendall(whole[:cut])
                time.sleep(0.1)
                return whole[cut:]
            self.fake.reply = reply
            answer = self.gateway.chat(chat(stream=True))
            self.assertEqual((answer.end, answer.body), ("chunked", b"".join(events)), cut)

    def test_carriage_returns_end_events_too(self):
        stream = (event("A") + event(None, "stop") + DONE).replace(b"\n", b"\r\n")
        self.fake.reply = chunked([stream])
        answer = self.gateway.chat(chat(stream=True))
        self.assertEqual(answer.body, stream)

    def test_an_event_larger_than_any_buffer_passes(self):
        large = event("x" * 700_000)
        self.fake.reply = chunked([large, event(None, "stop") + DONE])
        answer = self.gateway.chat(chat(stream=True))
        self.assertEqual(answer.body, large + event(None, "stop") + DONE)

    def test_a_plain_answer_too_large_to_hold_passes(self):
        body = json.dumps({"choices": [{"index": 0, "finish_reason": "stop", "message": {
            "role": "assistant", "content": "y" * 3_000_000}}]}).encode()
        self.fake.reply = http(body)
        answer = self.gateway.chat()
        self.assertEqual((answer.status, answer.body), (200, body))

    def test_a_burst_of_fifty_events_waits_for_nothing(self):
        self.fake.reply = chunked([event(f"{i} ") for i in range(50)] + [event(None, "stop"), DONE])
        begun = time.monotonic()
        answer = self.gateway.chat(chat(stream=True))
        self.assertEqual(len(answer.events()), 52)
        print(f"[50 events in {(time.monotonic() - begun) * 1e3:.1f} ms]", end=" ")


class Queue(Case):
    """One request at a time; two may wait, and not for long."""

    exact = False

    @classmethod
    def start(cls):
        cls.fleet = Fleet(1, speed=1, fixed_itl_ms=20, fixed_ttft_ms=20)
        cls.gateway = Gateway(config=configuration(
            cls.fleet.urls, pool={"concurrency_max": 1},
            gateway={"admission": {"queue_requests_max": 2, "queue_wait_max": "1s"}}))

    def occupy(self, tokens=2000):
        connection = self.gateway.connect()
        connection.send(_post(self.gateway, chat(stream=True, max_tokens=tokens,
                                                 ignore_eos=True)))
        connection.read_until(b"data: ")
        return connection

    def waiting(self, count):
        wait_for(f"{count} wait", lambda: self.gateway.totals()["waiting"] == count)

    def test_those_beyond_the_queue_are_503_with_retry_after(self):
        with self.occupy(), self.gateway.connect() as a, self.gateway.connect() as b:
            a.send(_post(self.gateway, chat("a")))
            b.send(_post(self.gateway, chat("b")))
            self.waiting(2)
            refused = self.gateway.chat()
            self.assertEqual(refused.status, 503, refused)
            self.assertGreaterEqual(int(refused["retry-after"]), 1)
            self.assertTrue(refused.json()["error"]["message"])

    def test_a_wait_too_long_is_503(self):
        with self.occupy():
            refused = self.gateway.chat()
            self.assertEqual(refused.status, 503, refused)
            self.assertTrue(refused["retry-after"])
        self.assertGreaterEqual(self.gateway.outcomes()["queue_timeout"], 1)
        record = wait_for("the log tells of it", lambda: [
            r for r in self.gateway.access_records() if r["outcome"] == "queue_timeout"])[-1]
        self.assertGreater(record["queue_ms"], 900, "who is not served has waited, too")

    def test_who_leaves_while_waiting_has_waited(self):
        with self.occupy():
            client = self.gateway.connect()
            client.send(_post(self.gateway, chat("leaves")))
            self.waiting(1)
            time.sleep(0.3)
            client.close()
            self.waiting(0)
        wait_for("the log tells of it", lambda: [
            r for r in self.gateway.access_records()
            if r["outcome"] == "client_gone" and r["attempts"] == 0 and r["queue_ms"] > 250])

    def test_those_who_wait_are_served_in_turn(self):
        order = []

        def ask(name):
            self.assertEqual(self.gateway.chat(chat(name, max_tokens=1)).status, 200)
            order.append(name)
        busy = self.occupy(20)
        threads = []
        for i, name in enumerate("ab"):
            threads.append(threading.Thread(target=ask, args=(name,)))
            threads[-1].start()
            self.waiting(i + 1)
        busy.read_until(b"[DONE]")
        busy.close()
        for thread in threads:
            thread.join()
        self.assertEqual(order, ["a", "b"])

    def test_a_client_that_leaves_the_queue_costs_the_engine_nothing(self):
        with self.occupy():
            calls = self.fleet.calls()
            with self.gateway.connect() as leaving:
                leaving.send(_post(self.gateway, chat("leaving")))
                self.waiting(1)
            begun = time.monotonic()
            self.waiting(0)
            print(f"[left the queue after {(time.monotonic() - begun) * 1e3:.0f} ms]", end=" ")
            self.assertEqual(self.fleet.calls(), calls)


class Affinity(Case):
    """A conversation goes back to the engine that holds it, and the engine says so."""

    @classmethod
    def start(cls):
        cls.fleet = Fleet(4, speed=1, fixed_itl_ms=1)
        cls.gateway = Gateway(cls.fleet.urls)

    def test_turns_of_a_conversation_find_their_cache(self):
        for number in range(4):
            system = f"Conversation {number}. " + f"Rule {number}: be brief and kind. " * 150
            messages = [{"role": "system", "content": system}]
            engines = []
            for turn in range(3):
                messages.append({"role": "user", "content": f"Question {turn}?"})
                answer = self.gateway.chat(chat(messages, max_tokens=20))
                usage = answer.json()["usage"]
                engines.append(answer["x-signalbox-endpoint"])
                cached = usage["prompt_tokens_details"]["cached_tokens"]
                if turn > 0:
                    self.assertGreater(cached, 0.8 * usage["prompt_tokens"], (number, turn))
                messages.append(answer.json()["choices"][0]["message"])
            self.assertEqual(len(set(engines)), 1, engines)

    def test_different_conversations_spread(self):
        used = set()

        def ask(i):
            body = chat(f"Topic {i}: " + f"{i} words of its own. " * 400, max_tokens=60)
            used.add(self.gateway.chat(body)["x-signalbox-endpoint"])
        threads = [threading.Thread(target=ask, args=(i,)) for i in range(12)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertGreaterEqual(len(used), 3, used)


class Labels(Case):
    """What clients invent makes no new series."""

    def test_invented_names_make_no_series(self):
        self.gateway.chat()
        with self.gateway.connect() as c:
            c.request("POST", CHAT, {**chat(), "model": "first-invention"})
            # An answer may be with its client before it is counted.
            for series in ("signalbox_requests_total{", "signalbox_requests_refused_total{"):
                wait_for("both are counted", lambda: any(
                    name.startswith(series) and value > 0
                    for name, value in self.gateway.metrics().items()))
            before = len(self.gateway.metrics())
            for i in range(2000):
                answer = c.request("POST", CHAT, {**chat(), "model": f"invented-{i}"})
                self.assertEqual(answer.status, 404)
        self.assertLessEqual(len(self.gateway.metrics()), before + 2)
        self.assertNotIn("invent", self.gateway.admin("/metrics").text)

    def test_names_and_types_are_those_of_prometheus(self):
        types = {}
        for line in self.gateway.admin("/metrics").text.splitlines():
            if line.startswith("# TYPE"):
                _, _, name, kind = line.split()
                self.assertNotIn(name, types)
                types[name] = kind
                self.assertRegex(name, r"^(signalbox|process)_[a-z0-9_]+$")
                self.assertEqual(kind == "counter", name.endswith("_total"), line)


class Commands(Case):
    """The commands that ask a running gateway."""

    def test_explain_tells_where_and_why(self):
        name = self.gateway.chat(chat("Explain me."))["x-request-id"]
        said = self.gateway.run("explain", name)
        self.assertEqual(said.returncode, 0, said)
        self.assertIn("*", said.stdout)
        data = json.loads(self.gateway.run("explain", name, "-o", "json").stdout)
        self.assertTrue(data["decisions"][0]["candidates"])

    def test_get_lists_and_top_shows(self):
        self.gateway.chat()
        for what in ("models", "pools", "endpoints", "decisions"):
            said = self.gateway.run("get", what)
            self.assertEqual(said.returncode, 0, said)
            self.assertGreaterEqual(len(said.stdout.splitlines()), 2, said)
            self.assertEqual(self.gateway.run("get", what, "-o", "json").returncode, 0)
        self.assertIn(self.fleet.engines[0], self.gateway.run("top", "--once").stdout)

    def test_top_keeps_to_its_terminal(self):
        ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 6, 40, 0, 0))
        # pylint: disable-next=consider-using-with
        top = subprocess.Popen([BINARY, "top", "--admin", self.gateway.admin_address],
                               stdout=theirs)
        os.close(theirs)
        painted = b""
        while painted.count(b"\x1b[J") < 2:
            painted += os.read(ours, 65536)
        top.send_signal(signal.SIGINT)
        self.assertEqual(top.wait(10 * PATIENCE), 0)
        os.close(ours)
        page = painted.split(b"\x1b[H")[1].split(b"\x1b[J")[0].decode()
        lines = re.sub(r"\x1b\[K", "", page).split("\r\n")
        self.assertEqual(len(lines), 6, lines)
        self.assertEqual(max(map(len, lines)), 40, lines)

    def test_an_unknown_request_is_said_to_be_unknown(self):
        said = self.gateway.run("explain", "req-none")
        self.assertNotEqual(said.returncode, 0)
        self.assertTrue(said.stderr)

    def test_the_admin_listener_refuses_what_is_not_its_own(self):
        self.assertEqual(self.gateway.admin("/v1/nothing").status, 404)
        self.assertEqual(self.gateway.admin("/v1/fleet", method="POST").status, 405)
        foreign = self.gateway.admin("/v1/fleet", {"host": "evil.example"})
        self.assertIn(foreign.status, (400, 403, 421), foreign)
        self.assertEqual(self.gateway.call("GET", "/metrics").status, 404)


class Shared(Case):
    """Two gateways over one fleet."""

    exact = False

    def test_both_serve_and_each_sees_the_others_load(self):
        fleet = self.fleet
        other = Gateway(fleet.urls, name="second")
        try:
            with self.gateway.connect() as busy:
                body = chat(stream=True, max_tokens=100_000, ignore_eos=True)
                busy.send(_post(self.gateway, body))
                busy.read_until(b"data: ")
                wait_for("the other gateway sees the load", lambda: sum(
                    e["others"] for e in other.endpoints()) >= 1)
                self.assertEqual(other.chat().status, 200)
            answers = []

            def ask(gateway, i):
                body = chat(f"Shared {i}", stream=i % 2 == 0)
                answers.append(gateway.chat(body).status)
            threads = [threading.Thread(target=ask, args=(g, i)) for i in range(20)
                       for g in (self.gateway, other)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            self.assertEqual(answers, [200] * 40)
            other.settle()
        finally:
            self.assertEqual(other.stop(), 0)
        code, said = other.replay()
        self.assertEqual(code, 0, said)
