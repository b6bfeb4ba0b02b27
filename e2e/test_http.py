# SPDX-License-Identifier: Apache-2.0
"""HTTP/1.1 at its edges: framing that smugglers use, on both sides; pipelining, HTTP/1.0, CORS.

A refused request is answered 400 (or its more exact relative), the connection closes, and no byte
of it reaches an engine. An engine that answers like this is broken: the client gets a 502 of ours.
"""
import json
import socket
import time

from client import Closed, request_bytes
from fake_engine import DONE, FakeEngine, chunked, event, http
from processes import PATIENCE, wait_for
from world import CHAT, Case, Fleet, Gateway, chat, configuration

BODY = json.dumps(chat(max_tokens=2)).encode()
PATH = CHAT.encode()
NEXT = b"GET /v1/models HTTP/1.1\r\nhost: x\r\n\r\n"


def head(*fields, line=b"POST " + PATH + b" HTTP/1.1", host=b"host: x"):
    return b"\r\n".join([line, *([host] if host else []), *fields]) + b"\r\n\r\n"


def length(value=None):
    return b"content-length: " + (str(len(BODY)).encode() if value is None else value)


CHUNKED = b"transfer-encoding: chunked"
CHUNKS = b"%x\r\n%s\r\n0\r\n\r\n" % (len(BODY), BODY)

ACCEPTED = {
    "content-length": head(length()) + BODY,
    "chunked": head(CHUNKED) + CHUNKS,
    "chunk extension": head(CHUNKED) + b"%x;a=b\r\n%s\r\n0\r\n\r\n" % (len(BODY), BODY),
    "many chunks": head(CHUNKED) + b"".join(b"1\r\n%c\r\n" % c for c in BODY) + b"0\r\n\r\n",
    "chunk size in upper case with zeros": head(CHUNKED) + b"00%X\r\n%s\r\n0\r\n\r\n"
        % (len(BODY), BODY),
    "trailer": head(CHUNKED) + CHUNKS[:-2] + b"x-sum: 1\r\n\r\n",
    "chunked in capitals": head(b"Transfer-Encoding: CHUNKED") + CHUNKS,
    "absolute target": head(length(), line=b"POST http://x" + PATH + b" HTTP/1.1") + BODY,
    "empty line before the request": b"\r\n" + head(length()) + BODY,
}

REFUSED = {
    "CL then TE": head(length(), CHUNKED) + CHUNKS,
    "TE then CL": head(CHUNKED, length()) + CHUNKS,
    "HTTP/1.0 with chunked": head(CHUNKED, line=b"POST " + PATH + b" HTTP/1.0") + CHUNKS,
    "two lengths that differ": head(length(), length(b"3")) + BODY,
    "length +N": head(length(b"+%d" % len(BODY))) + BODY,
    "length 0xN": head(length(b"0x%x" % len(BODY))) + BODY,
    "length -N": head(length(b"-3")) + BODY,
    "length empty": head(length(b"")) + BODY,
    "length 2^64+N": head(length(b"%d" % (2**64 + len(BODY)))) + BODY,
    "length Nx": head(length(b"%dx" % len(BODY))) + BODY,
    "length list": head(length(b"%d, %d" % (len(BODY), len(BODY) + 1))) + BODY,
    "TE twice": head(CHUNKED, CHUNKED) + CHUNKS,
    "TE chunked, chunked": head(b"transfer-encoding: chunked, chunked") + CHUNKS,
    "TE identity": head(b"transfer-encoding: identity") + BODY,
    "TE xchunked": head(b"transfer-encoding: xchunked") + CHUNKS,
    "TE gzip, chunked": head(b"transfer-encoding: gzip, chunked") + CHUNKS,
    "TE chunked and a vertical tab": head(b"transfer-encoding: \x0bchunked") + CHUNKS,
    "space before the colon": head(b"transfer-encoding : chunked") + CHUNKS,
    "space before the colon of a length": head(b"content-length : %d" % len(BODY)) + BODY,
    "folded TE": head(b"transfer-encoding:\r\n chunked") + CHUNKS,
    "folded field": head(b"x-a: b\r\n c", length()) + BODY,
    "chunk size 0x": head(CHUNKED) + b"0x" + CHUNKS,
    "chunk size +": head(CHUNKED) + b"+" + CHUNKS,
    "chunk size empty": head(CHUNKED) + b"\r\n%s\r\n0\r\n\r\n" % BODY,
    "chunk size with bare LF": head(CHUNKED) + b"%x\n%s\r\n0\r\n\r\n" % (len(BODY), BODY),
    "chunk size huge": head(CHUNKED) + b"fffffffffffffffff\r\n" + BODY,
    "chunk size with a space": head(CHUNKED) + b"%x \x00\r\n%s\r\n0\r\n\r\n" % (len(BODY), BODY),
    "chunk data not closed": head(CHUNKED) + b"%x\r\n%sXX0\r\n\r\n" % (len(BODY), BODY),
    "LF-only head": (head(length()).replace(b"\r\n", b"\n")) + BODY,
    "bare CR in a value": head(b"x-a: b\rc", length()) + BODY,
    "NUL in a value": head(b"x-a: b\0c", length()) + BODY,
    "field without colon": head(b"nonsense", length()) + BODY,
    "field with an empty name": head(b": value", length()) + BODY,
    "field name with a space": head(b"x a: b", length()) + BODY,
    "leading space before the first field": b"POST " + PATH + b" HTTP/1.1\r\n host: x\r\n"
        + length() + b"\r\n\r\n" + BODY,
    "bad method": head(length(), line=b"PO(ST " + PATH + b" HTTP/1.1") + BODY,
    "space in the target": head(length(), line=b"POST /v1/chat completions HTTP/1.1") + BODY,
    "control in the target": head(length(), line=b"POST /v1/\x01 HTTP/1.1") + BODY,
    "two spaces in the line": head(length(), line=b"POST  " + PATH + b" HTTP/1.1") + BODY,
    "HTTP/0.9": b"GET /v1/models\r\n\r\n",
    "HTTP/1.2 spelt 1.10": head(length(), line=b"POST " + PATH + b" HTTP/1.10") + BODY,
    "http in small letters": head(length(), line=b"POST " + PATH + b" http/1.1") + BODY,
    "HTTP/2 preface": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "no Host": head(length(), host=None) + BODY,
    "two Hosts": head(b"host: y", length()) + BODY,
    "bad Host": head(length(), host=b"host: a b") + BODY,
    "Host of dots": head(length(), host=b"host: ..") + BODY,
    "Host with a user": head(length(), host=b"host: u@x") + BODY,
    "CONNECT": b"CONNECT x:1 HTTP/1.1\r\nhost: x:1\r\n\r\n",
}

OWN = (400, 405, 408, 411, 413, 414, 417, 431, 501, 505)


def statuses(data):
    import re
    return [int(s) for s in re.findall(rb"HTTP/1\.1 (\d{3})", data)]


class Requests(Case):
    """The client is the attacker."""

    @classmethod
    def start(cls):
        cls.fleet = Fleet(1)
        cls.gateway = Gateway(cls.fleet.urls)

    def test_legal_framings_are_served(self):
        for name, payload in ACCEPTED.items():
            with self.subTest(name), self.gateway.connect() as c:
                c.send(payload + NEXT)
                self.assertEqual(c.read_answer().status, 200, name)
                self.assertEqual(c.read_answer().status, 200, "the request behind it")

    def test_smuggling_is_refused_and_closes(self):
        calls = self.fleet.calls()
        for name, payload in REFUSED.items():
            with self.subTest(name), self.gateway.connect() as c:
                c.send(payload + NEXT + NEXT)
                self.assertTrue(c.closed_by_peer(8), name)
                got = statuses(c.buffer)
                self.assertEqual(len(got), 1, (name, c.buffer))
                self.assertIn(got[0], OWN, (name, c.buffer))
        self.assertEqual(self.fleet.calls(), calls)

    def test_smuggling_byte_by_byte_is_refused_too(self):
        calls = self.fleet.calls()
        for name in list(REFUSED)[::3]:
            with self.subTest(name), self.gateway.connect() as c:
                try:
                    for i in range(len(REFUSED[name])):
                        c.send(REFUSED[name][i:i + 1])
                except OSError:
                    pass
                self.assertTrue(c.closed_by_peer(8), name)
                self.assertTrue(all(s in OWN for s in statuses(c.buffer)), (name, c.buffer))
        self.assertEqual(self.fleet.calls(), calls)

    def test_legal_requests_byte_by_byte_are_served(self):
        for name in ("content-length", "chunked", "chunk extension", "trailer"):
            with self.subTest(name), self.gateway.connect() as c:
                for i in range(len(ACCEPTED[name])):
                    c.send(ACCEPTED[name][i:i + 1])
                self.assertEqual(c.read_answer().status, 200)

    def test_a_refusal_says_why_in_the_clients_shape(self):
        with self.gateway.connect() as c:
            c.send(REFUSED["CL then TE"])
            answer = c.read_answer()
            self.assertEqual(answer.status, 400)
            self.assertEqual(answer["connection"], "close")
            self.assertTrue(answer.json()["error"]["message"])

    def test_pipelined_requests_are_answered_in_order(self):
        bodies = [chat(f"Pipelined {i}", stream=i % 2 == 1, max_tokens=5) for i in range(6)]
        with self.gateway.connect() as c:
            c.send(b"".join(request_bytes("x", "POST", CHAT, b) for b in bodies) + NEXT)
            for body in bodies:
                answer = c.read_answer()
                text = (answer.deltas() if body["stream"]
                        else answer.json()["choices"][0]["message"]["content"])
                self.assertEqual(text, self.fleet.expect(body)["text"])
            self.assertEqual(c.read_answer().json()["data"][0]["id"], "m")

    def test_many_pipelined_requests_are_all_answered_and_none_waits_for_a_tick(self):
        body = chat("Pipelined", max_tokens=1)
        with self.gateway.connect() as c:
            c.send(request_bytes("x", "POST", CHAT, body) * 200)
            begun = time.monotonic()
            for _ in range(200):
                self.assertEqual(c.read_answer().status, 200)
            self.assertLess(time.monotonic() - begun, 5 * PATIENCE, "a tick each were ten seconds")

    def test_a_pipelined_request_of_any_size_is_read_to_its_end(self):
        for size in (3_000, 5_000, 20_000, 100_000, 1_000_000):
            large = chat("large", max_tokens=1, padding="x" * size)
            with self.subTest(size=size), self.gateway.connect() as c:
                c.send(request_bytes("x", "POST", CHAT, chat("small", max_tokens=1)) +
                       request_bytes("x", "POST", CHAT, large) + NEXT)
                for _ in range(3):
                    self.assertEqual(c.read_answer().status, 200)

    def test_expect_100_continue(self):
        with self.gateway.connect() as c:
            c.send(head(length(), b"expect: 100-continue"))
            self.assertEqual(c.read_head()[0], 100)
            c.send(BODY)
            self.assertEqual(c.read_answer().status, 200)

    def test_an_unknown_expectation_is_417(self):
        with self.gateway.connect() as c:
            c.send(head(length(), b"expect: miracles") + BODY)
            self.assertEqual(c.read_answer().status, 417)

    def test_http_1_0_gets_lengths_and_ends_by_closing(self):
        with self.gateway.connect() as c:
            answer = c.request("POST", CHAT, chat("ten", max_tokens=3), version="1.0")
            self.assertEqual((answer.status, answer.end), (200, "length"))
            self.assertIsNone(answer["transfer-encoding"])
            self.assertTrue(c.closed_by_peer())
        with self.gateway.connect() as c:
            body = chat("ten", max_tokens=9, stream=True)
            answer = c.request("POST", CHAT, body, version="1.0")
            self.assertEqual(answer.end, "eof")
            self.assertIsNone(answer["transfer-encoding"])
            self.assertEqual(answer.deltas(), self.fleet.expect(body)["text"])

    def test_http_1_0_keeps_alive_when_asked(self):
        with self.gateway.connect() as c:
            for _ in range(2):
                answer = c.request("POST", CHAT, chat(max_tokens=2), {"connection": "keep-alive"},
                                   version="1.0")
                self.assertEqual((answer.status, answer["connection"]), (200, "keep-alive"))

    def test_connection_close_is_obeyed(self):
        with self.gateway.connect() as c:
            answer = c.request("POST", CHAT, chat(max_tokens=2), {"connection": "close"})
            self.assertEqual((answer.status, answer["connection"]), (200, "close"))
            self.assertTrue(c.closed_by_peer())

    def test_head_gets_no_body_and_the_connection_goes_on(self):
        with self.gateway.connect() as c:
            for path, status in (("/v1/models", 200), ("/health", 200), ("/v1/nothing", 404),
                                 (CHAT, 405)):
                self.assertEqual(c.request("HEAD", path).status, status)
            self.assertEqual(c.request("POST", CHAT, chat(max_tokens=2)).status, 200)

    def test_local_and_relayed_answers_keep_their_order_when_pipelined(self):
        post = head(length()) + BODY
        with self.gateway.connect() as c:
            c.send((NEXT + post + NEXT + NEXT + post + head(CHUNKED) + CHUNKS) * 3)
            kinds = [c.read_answer().json()["object"] for _ in range(18)]
        one = ["list", "chat.completion", "list", "list", "chat.completion", "chat.completion"]
        self.assertEqual(kinds, one * 3)

    def test_a_body_of_tiny_chunks_costs_what_it_holds(self):
        body = json.dumps(chat("x" * (2 << 20), max_tokens=2)).encode()
        before = self.gateway.process.rss()
        connections = [self.gateway.connect() for _ in range(2)]
        for c in connections:
            c.send(head(CHUNKED))
        tiny = b"".join(b"%016x\r\n%c\r\n" % (1, byte) for byte in body[:-1])
        for c in connections:
            c.send(tiny)
        time.sleep(0.5)
        grown = self.gateway.process.rss() - before
        print(f"[{grown / 2**20:.1f} MiB more]", end=" ")
        self.assertLess(grown, 24 << 20)
        for c in connections:
            c.send(b"1\r\n}\r\n0\r\n\r\n")
            self.assertIn(c.read_answer().status, (200, 400))
            c.close()

    def test_upgrades_are_not_made(self):
        answer = self.gateway.call("GET", "/v1/models", headers={
            "connection": "upgrade", "upgrade": "websocket"})
        self.assertEqual(answer.status, 200)

    def test_head_limits_are_431(self):
        for fields in ([b"x-big: " + b"a" * 9000], [b"x-%d: a" % i for i in range(120)],
                       [b"x-%d: " % i + b"a" * 7000 for i in range(12)]):
            with self.gateway.connect() as c:
                c.send(head(*fields, length()) + BODY)
                self.assertEqual(c.read_answer().status, 431)
        with self.gateway.connect() as c:
            c.send(head(length(), line=b"POST /" + b"a" * 9000 + b" HTTP/1.1") + BODY)
            self.assertIn(c.read_answer().status, (414, 431))

    def test_a_target_cannot_choose_an_upstream(self):
        for body in (chat(api_base="http://127.0.0.1:1"), chat(base_url="http://127.0.0.1:1")):
            answer = self.gateway.chat(body, {"x-forwarded-host": "127.0.0.1:1"})
            self.assertEqual(answer.status, 200)


class Cors(Case):
    """Browsers."""

    @classmethod
    def start(cls):
        cls.fleet = Fleet(1)
        cls.gateway = Gateway(config=configuration(
            cls.fleet.urls, gateway={"cors": {"origins": ["https://chat.example.com"]}}))

    def preflight(self, origin):
        return self.gateway.call("OPTIONS", CHAT, headers={
            "origin": origin, "access-control-request-method": "POST",
            "access-control-request-headers": "authorization, content-type"})

    def test_a_preflight_of_a_known_origin_is_granted(self):
        answer = self.preflight("https://chat.example.com")
        self.assertEqual(answer.status, 204, answer)
        self.assertEqual(answer["access-control-allow-origin"], "https://chat.example.com")
        self.assertIn("POST", answer["access-control-allow-methods"])
        self.assertIn("authorization", answer["access-control-allow-headers"].lower())

    def test_an_unknown_origin_gets_nothing(self):
        self.assertIsNone(self.preflight("https://evil.example")["access-control-allow-origin"])
        answer = self.gateway.chat(headers={"origin": "https://evil.example"})
        self.assertIsNone(answer["access-control-allow-origin"])

    def test_answers_and_errors_carry_the_origin_once(self):
        origin = {"origin": "https://chat.example.com"}
        for body in (chat(), chat(stream=True), {**chat(), "model": "none"}):
            answer = self.gateway.chat(body, origin)
            self.assertEqual(answer.all("access-control-allow-origin"),
                             ["https://chat.example.com"], answer)

    def test_so_do_refusals_of_a_body_that_was_not_read(self):
        origin = {"origin": "https://chat.example.com"}
        head = (b"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\n"
                b"origin: https://chat.example.com\r\n")
        for rest, status in ((b"content-length: 99999999999\r\n\r\n", 413),
                             (b"transfer-encoding: chunked\r\n\r\nzz\r\n", 400)):
            with self.gateway.connect() as c:
                c.send(head + rest)
                answer = c.read_answer()
            self.assertEqual(answer.status, status, answer)
            self.assertEqual(answer.all("access-control-allow-origin"),
                             ["https://chat.example.com"], answer)
            self.assertIn("x-signalbox-endpoint", answer["access-control-expose-headers"])
        self.assertEqual(self.gateway.chat(chat(), origin).status, 200)

    def test_options_without_an_origin(self):
        self.assertEqual(self.gateway.call("OPTIONS", CHAT).status, 204)


GOOD = json.dumps({"choices": [{"index": 0, "finish_reason": "stop", "message": {
    "role": "assistant", "content": "Hi"}}]}).encode()


def reply(*fields, line=b"HTTP/1.1 200 OK", body=GOOD):
    return b"\r\n".join([line, b"content-type: application/json", *fields]) + b"\r\n\r\n" + body


def size(value=None):
    return b"content-length: " + (str(len(GOOD)).encode() if value is None else value)


GOOD_CHUNKS = b"%x\r\n%s\r\n0\r\n\r\n" % (len(GOOD), GOOD)

BROKEN_ANSWERS = {
    "CL and TE": reply(size(), CHUNKED, body=GOOD_CHUNKS),
    "TE and CL": reply(CHUNKED, size(), body=GOOD_CHUNKS),
    "HTTP/1.0 with chunked": reply(CHUNKED, line=b"HTTP/1.0 200 OK", body=GOOD_CHUNKS),
    "two lengths": reply(size(), size(b"3")),
    "length +N": reply(size(b"+%d" % len(GOOD))),
    "length 0xN": reply(size(b"0x%x" % len(GOOD))),
    "length empty": reply(size(b"")),
    "length 2^64+N": reply(size(b"%d" % (2**64 + len(GOOD)))),
    "TE twice": reply(CHUNKED, CHUNKED, body=GOOD_CHUNKS),
    "TE xchunked": reply(b"transfer-encoding: xchunked", body=GOOD_CHUNKS),
    "TE gzip, chunked": reply(b"transfer-encoding: gzip, chunked", body=GOOD_CHUNKS),
    "space before the colon": reply(b"content-length : %d" % len(GOOD)),
    "folded field": reply(b"x-a: b\r\n c", size()),
    "chunk size 0x": reply(CHUNKED, body=b"0x" + GOOD_CHUNKS),
    "chunk size bare LF": reply(CHUNKED, body=b"%x\n%s\r\n0\r\n\r\n" % (len(GOOD), GOOD)),
    "chunk size empty": reply(CHUNKED, body=b"\r\n" + GOOD),
    "chunk data not closed": reply(CHUNKED, body=b"%x\r\n%sXX0\r\n\r\n" % (len(GOOD), GOOD)),
    "LF-only head": reply(size()).replace(b"\r\n", b"\n"),
    "bare CR in a value": reply(b"x-a: b\rc", size()),
    "NUL in a value": reply(b"x-a: b\0c", size()),
    "field without colon": reply(b"nonsense", size()),
    "status of two digits": reply(size(), line=b"HTTP/1.1 20 OK"),
    "status of four digits": reply(size(), line=b"HTTP/1.1 2000 OK"),
    "no HTTP": b"220 smtp.example.com ready\r\n\r\n",
    "HTTP/2 frame": b"\0\0\x12\x04\0\0\0\0\0" + b"\0" * 18,
    "switching protocols": reply(b"upgrade: websocket", b"connection: upgrade",
                                 line=b"HTTP/1.1 101 Switching Protocols", body=b""),
    "length longer than the body": reply(size(b"%d" % (len(GOOD) + 9))),
    "head without end": b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n",
    "head without limit": b"HTTP/1.1 200 OK\r\n" + b"x-a: " + b"a" * 100_000 + b"\r\n\r\n",
    "nothing at all": b"",
}


class Responses(Case):
    """The engine is the attacker."""

    @classmethod
    def start(cls):
        cls.fake = FakeEngine(close=True)
        cls.gateway = Gateway(config=configuration(
            [cls.fake.url], pool={"engine": "openai"},
            gateway={"recovery": {"failures_in_a_row": 1000}}))

    @classmethod
    def tearDownClass(cls):
        cls.fake.stop()
        super().tearDownClass()

    def test_broken_answers_are_502_of_ours(self):
        for name, payload in BROKEN_ANSWERS.items():
            self.fake.reply = payload
            with self.subTest(name):
                answer = self.gateway.chat()
                self.assertEqual(answer.status, 502, (name, answer))
                self.assertTrue(answer.json()["error"]["message"])

    def test_no_body_field_steers_an_engine(self):
        self.fake.reply = http()
        steering = {"priority": -9, "kv_transfer_params": {"remote_host": "10.0.0.1"},
                    "bootstrap_host": "10.0.0.1", "bootstrap_port": 1, "bootstrap_room": [1],
                    "data_parallel_rank": 3, "routed_dp_rank": 3, "disagg_prefill_dp_rank": 3,
                    "id_slot": 0, "ec_transfer_params": {}, "request_id": "theirs", "rid": "theirs",
                    "vllm_xargs": {"kv_transfer_params": 1}, "slot_id": 0,
                    "data_parallel_rank_decode": 3, "nvext": {"backend_instance_id": 1},
                    "disaggregated_params": {"request_type": "generation_only"}}
        for stream in (False, True):
            body = chat(stream=stream, seed=7)
            self.gateway.chat({**steering, **body, "xnvext": {}}, {"priority": "u=0"})
            got = json.loads(self.fake.requests[-1].body)
            self.assertFalse(set(got) & set(steering), got)
            self.assertEqual((got["seed"], got["xnvext"]), (7, {}))

    def test_no_header_steers_an_engine_or_its_sidecar(self):
        self.fake.reply = http()
        steering = ("priority", "x-vllm-priority", "x-data-parallel-rank", "X_Data_Parallel_Rank",
                    "x-prefiller-host-port", "x-encoder-hosts-ports", "X-KV-Cache-Source-Host-Port",
                    "x-data-parallel-host-port", "EPP-Profile", "x-gateway-destination-endpoint",
                    "x-llm-d-model-name-rewrite", "x-slo-ttft-ms", "X_Request_Id",
                    "Transfer_Encoding", "Content_Length", "x-original-url",
                    "X-HTTP-Method-Override", "X-Override-Bootstrap-Host", "x-real-ip",
                    "x-forwarded-user")
        self.gateway.chat(chat(), {**dict.fromkeys(steering, "10.0.0.1:80"), "x-team": "search"})
        got = self.fake.requests[-1]
        self.assertEqual({name: got[name] for name in steering}, dict.fromkeys(steering))
        self.assertEqual(got["x-team"], "search")

    def test_where_header_fields_are_listed_no_other_goes_on(self):
        self.fake.reply = http()
        config = configuration([self.fake.url], pool={"engine": "openai"},
                               gateway={"client_fields": ["X-Team"]})
        gateway = Gateway(config=config)
        self.addCleanup(gateway.stop)
        gateway.chat(chat(), {"x-team": "search", "x-acme-user": "root", "user-agent": "me"})
        got = self.fake.requests[-1]
        self.assertEqual((got["x-team"], got["x-acme-user"], got["user-agent"]),
                         ("search", None, "me"))

    def test_bytes_behind_an_answer_reach_nobody(self):
        self.fake.close_after = False
        poison = http(b'{"choices":[{"index":0,"finish_reason":"stop","message":'
                      b'{"content":"POISON"}}]}')
        try:
            self.fake.reply = http(GOOD) + poison
            with self.gateway.connect() as c:
                for _ in range(4):
                    answer = c.request("POST", CHAT, chat())
                    self.assertNotIn("POISON", answer.text)
                    self.fake.reply = http(GOOD)
        finally:
            self.fake.close_after = True

    def test_bytes_behind_an_answer_that_fills_a_read_reach_nobody(self):
        # The edge of what stands in the socket has passed when the answer ends with a full read.
        self.fake.close_after = False
        poison = http(GOOD.replace(b"Hi", b"POISON"))
        room = 65536 - len(http(b" " * 60000)) + 60000
        padded = http(GOOD.ljust(room))
        self.assertEqual(len(padded), 65536)
        try:
            with self.gateway.connect() as c:
                for _ in range(20):
                    self.fake.reply = padded + poison
                    self.assertNotIn("POISON", c.request("POST", CHAT, chat()).text)
                    self.fake.reply = http(GOOD)
                    self.assertNotIn("POISON", c.request("POST", CHAT, chat()).text)
        finally:
            self.fake.close_after = True

    def outcomes_of(self, run):
        before = self.gateway.outcomes()
        run()
        self.gateway.settle()
        after = self.gateway.outcomes()
        return {k: v - before.get(k, 0) for k, v in after.items() if v != before.get(k, 0)}

    def test_an_error_too_large_to_hold_passes_whole_and_is_an_error(self):
        body = b"x" * (3 << 20)
        for status, outcome in (("500 Oops", "engine_error"), ("400 No", "engine_client_error"),
                                ("429 Later", "engine_throttled")):
            self.fake.reply = http(body, status)

            def run():
                with self.gateway.connect() as c:
                    for _ in range(2):
                        answer = c.request("POST", CHAT, chat())
                        self.assertEqual((answer.status, answer.end), (int(status[:3]), "chunked"))
                        self.assertEqual(answer.body, body)
            self.assertEqual(self.outcomes_of(run), {outcome: 2})

    def test_a_redirect_leads_no_client_past_us(self):
        body = b"x" * (3 << 20)
        for status in ("300 Choose", "301 Moved", "302 Found", "303 Other", "304 Same",
                       "307 Temporary", "308 Permanent"):
            self.fake.reply = http(b"{}" if status[0:3] != "307" else body, status,
                                   fields=["location: http://127.0.0.1:1/evil"])
            for stream in (False, True):
                def run():
                    answer = self.gateway.chat(chat(stream=stream))
                    self.assertEqual((answer.status, answer["location"]), (502, None), answer)
                    self.assertEqual(answer.json()["error"]["code"], "engine_error")
                self.assertEqual(self.outcomes_of(run), {"engine_error": 1})
        self.gateway.process.find(r"an engine redirects elsewhere")

    def test_an_error_in_the_place_of_an_answer_is_no_200(self):
        for code, status, outcome in ((500, 500, "engine_error"), ("x", 502, "engine_error"),
                                      (200, 502, "engine_error"),
                                      (400, 400, "engine_client_error"),
                                      (429, 429, "engine_throttled")):
            error = json.dumps({"error": {"message": "boom", "type": "t", "code": code}}).encode()
            streamed = chunked([b"data: " + error + b"\n\n", DONE])
            for answered, stream in ((http(error), False), (http(error), True), (streamed, True)):
                self.fake.reply = answered

                def run():
                    answer = self.gateway.chat(chat(stream=stream))
                    self.assertEqual((answer.status, answer["content-type"]),
                                     (status, "application/json"), answer)
                    self.assertEqual(answer.json()["error"]["message"], "boom")
                self.assertEqual(self.outcomes_of(run), {outcome: 1}, (code, stream))

    def test_a_status_line_needs_no_reason(self):
        for line in (b"HTTP/1.1 200", b"HTTP/1.1 200 ", b"HTTP/1.0 200"):
            self.fake.reply = reply(size(), line=line)
            answer = self.gateway.chat()
            self.assertEqual((answer.status, answer.body), (200, GOOD), line)

    def test_nothing_behind_the_end_reaches_the_client(self):
        pieces = [event("A", "stop"), DONE]
        for more in ([event("EVIL")], [b": bye\n\n", event("EVIL"), DONE], [b"data: EVIL"]):
            self.fake.reply = chunked(pieces + more)

            def run():
                answer = self.gateway.chat(chat(stream=True))
                self.assertEqual((answer.end, answer.body), ("chunked", b"".join(pieces)))
            self.assertEqual(self.outcomes_of(run), {"completed": 1})

    def test_an_engine_may_ignore_n_but_who_begins_a_choice_ends_it(self):
        def run(whole):
            answer = self.gateway.chat(chat(stream=True, n=2))
            self.assertEqual("[DONE]" in answer.text, whole)
            self.assertEqual("error" in answer.text, not whole)
        second = event("B").replace(b'"index": 0', b'"index": 1')
        for pieces, whole in (([event("A", "stop"), DONE], True), ([event("A"), DONE], True),
                              ([second, event("A", "stop"), DONE], False)):
            self.fake.reply = chunked(pieces)
            outcome = "completed" if whole else "truncated"
            self.assertEqual(self.outcomes_of(lambda whole=whole: run(whole)), {outcome: 1})

    def test_a_stream_whose_choices_have_ended_ends_with_its_mark(self):
        pieces = [event("A"), event(None, "stop")]
        for ends in ([b"data: [DONE]\n"], [b"data: [DONE]"], [b": bye\n"], [b"data: [D"],
                     [b'data: {"ch'], []):
            self.fake.reply = chunked(pieces + ends)

            def run():
                answer = self.gateway.chat(chat(stream=True))
                self.assertEqual((answer.end, answer.body), ("chunked", b"".join(pieces) + DONE))
            self.assertEqual(self.outcomes_of(run), {"completed": 1})

    def test_a_media_type_has_no_case(self):
        pieces = [event("A"), event(None, "stop"), DONE]
        for kind in ("Text/Event-Stream", "TEXT/EVENT-STREAM;charset=UTF-8",
                     "text/event-stream ; x=y"):
            self.fake.reply = chunked(pieces, kind=kind)
            answer = self.gateway.chat(chat(stream=True))
            self.assertEqual((answer.status, answer.body), (200, b"".join(pieces)), kind)

    def test_an_engine_that_gives_no_stream_is_said_to(self):
        for kind in ("text/html", "text/event-streams"):
            self.fake.reply = chunked([event("A"), event(None, "stop"), DONE], kind=kind)
            answer = self.gateway.chat(chat(stream=True))
            self.assertEqual(answer.status, 502, answer)
            self.assertNotIn("whole answer", answer.json()["error"]["message"])
        wait_for("the log says so", lambda: "content_type=text/" in self.gateway.process.log())
        self.assertIn(self.fake.address, self.gateway.process.log())

    def test_a_reset_ends_no_answer_that_has_no_length(self):
        def cut(connection, request):
            connection.sendall(reply(body=b"x" * (3 << 20)))
            time.sleep(0.2)
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0")
            return b""
        self.fake.reply = cut

        def run():
            self.assertEqual(self.gateway.chat().end, "cut")
        self.assertEqual(self.outcomes_of(run), {"truncated": 1})

    def test_a_body_where_none_may_be_is_dropped(self):
        self.fake.close_after = False
        try:
            with self.gateway.connect() as c:
                for status, seen in (("204 No Content", 502), ("304 Not Modified", 502)):
                    self.fake.reply = http(GOOD, status)
                    answer = c.request("POST", CHAT, chat())
                    self.assertEqual(answer.status, seen, answer)
                    self.fake.reply = http(GOOD)
                    self.assertEqual(c.request("POST", CHAT, chat()).body, GOOD)
        finally:
            self.fake.close_after = True

    def test_interim_answers_have_a_limit(self):
        self.fake.reply = b"HTTP/1.1 103 Early Hints\r\n\r\n" * 1000 + http(GOOD)
        self.assertEqual(self.gateway.chat().status, 502)

    def test_interim_answers_are_skipped(self):
        self.fake.reply = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nx: y\r\n\r\n" \
            + http(GOOD)
        answer = self.gateway.chat()
        self.assertEqual((answer.status, answer.body), (200, GOOD))

    def test_an_answer_that_ends_with_its_connection_is_taken(self):
        self.fake.reply = reply()
        answer = self.gateway.chat()
        self.assertEqual((answer.status, answer.body), (200, GOOD))

    def test_a_stream_whose_framing_breaks_ends_with_an_error(self):
        stream = event("A") + event("B")
        tails = (("bad size", b"zz\r\n"), ("bare LF", b"5\nhello"), ("cut", b"50\r\nhal"))
        for name, tail in tails:
            self.fake.reply = chunked([stream], end=False) + tail
            with self.subTest(name):
                answer = self.gateway.chat(chat(stream=True))
                self.assertEqual((answer.status, answer.end), (200, "chunked"), answer)
                self.assertNotIn("[DONE]", answer.text)
                self.assertIn("error", json.loads(answer.events()[-1]))
                self.assertTrue(answer.body.startswith(stream))

    def test_hop_by_hop_fields_and_servers_own_words_stay_behind(self):
        self.fake.reply = http(GOOD, fields=[
            "connection: x-secret-hop", "x-secret-hop: 1", "keep-alive: timeout=5",
            "access-control-allow-origin: *", "x-engine: kept", "set-cookie: a=1",
            "set-cookie: b=2", "X-Signalbox-Endpoint: elsewhere", "x-signalbox-new: 1"])
        answer = self.gateway.chat()
        self.assertIsNone(answer["x-secret-hop"])
        self.assertIsNone(answer["access-control-allow-origin"])
        self.assertEqual(answer["x-engine"], "kept")
        self.assertEqual(answer.all("set-cookie"), ["a=1", "b=2"])
        self.assertNotIn("elsewhere", answer.all("x-signalbox-endpoint"))
        self.assertIsNone(answer["x-signalbox-new"])

    def test_an_engines_request_id_is_not_added_to_ours(self):
        self.fake.reply = http(b'{"type":"message","role":"assistant","model":"m",'
                               b'"content":[{"type":"text","text":"Hi"}],"stop_reason":"end_turn",'
                               b'"usage":{"input_tokens":1,"output_tokens":1}}',
                               fields=["request-id: theirs", "x-request-id: theirs"])
        answer = self.gateway.post("/v1/messages", {"model": "m", "max_tokens": 3, "messages": [
            {"role": "user", "content": "Hi"}]}, {"x-request-id": "mine"})
        self.assertEqual(answer.status, 200, answer)
        self.assertEqual((answer.all("request-id"), answer.all("x-request-id")),
                         (["mine"], ["mine"]))

    def test_a_half_closed_kept_connection_is_not_used(self):
        # llama.cpp promises keep-alive, ends its side with the last bytes, and reads no more.
        self.fake.close_after = False
        held = []

        def half(connection, request):
            connection.sendall(chunked([event("A"), event(None, "stop")], end=False))
            time.sleep(0.01)
            connection.sendall(b"%x\r\n%s\r\n0\r\n\r\n" % (len(DONE), DONE))
            connection.shutdown(socket.SHUT_WR)
            held.append(connection.dup())
            return b""
        self.fake.reply = half
        try:
            for i in range(20):
                answer = self.gateway.chat(chat(f"{i}", stream=True), timeout=10)
                self.assertEqual(answer.events()[-1], "[DONE]")
        finally:
            self.fake.close_after = True
            for connection in held:
                connection.close()

    def test_a_kept_connection_that_the_engine_closed_costs_no_failure(self):
        self.fake.close_after = False

        def once(connection, request):
            connection.sendall(http(GOOD))
            return b""  # closes although it promised to stay
        self.fake.reply = once
        try:
            for i in range(20):
                self.assertEqual(self.gateway.chat(chat(f"{i}")).status, 200)
        finally:
            self.fake.close_after = True


class EarlyAnswers(Case):
    """Engines that answer before they have read the request."""

    @classmethod
    def start(cls):
        cls.fake = Early()
        cls.gateway = Gateway(config=configuration(
            [cls.fake.url], pool={"engine": "openai"},
            gateway={"recovery": {"failures_in_a_row": 1000}}))

    @classmethod
    def tearDownClass(cls):
        cls.fake.stop()
        super().tearDownClass()

    def test_an_answer_to_half_a_request_is_passed_on(self):
        big = chat("x" * (7 << 20))
        for ending in ("stay", "close", "reset"):
            self.fake.ending = ending
            with self.subTest(ending), self.gateway.connect() as c:
                answer = c.request("POST", CHAT, big)
                # A reset may overtake what was said before it.
                expected = (413, 502) if ending == "reset" else (413,)
                self.assertIn(answer.status, expected, answer)
                # Nothing of the big request may be taken for the beginning of this one.
                self.fake.ending = "good"
                answer = c.request("POST", CHAT, chat("small"))
                self.assertEqual((answer.status, answer.body), (200, GOOD))


class Early(FakeEngine):
    """Answers a POST by its head alone, and reads no byte of its body unless it is good."""

    ending = "good"

    def __init__(self):
        self.held = []
        super().__init__(http(GOOD), close=True)

    def _requests_of(self, connection):
        seen = connection.recv(200, socket.MSG_PEEK)
        if not seen.startswith(b"POST") or self.ending == "good":
            return super()._requests_of(connection)
        connection.sendall(http(b'{"error":{"message":"too long"}}', "413 Too Large"))
        if self.ending == "stay":
            self.held.append(connection.dup())
        elif self.ending == "close":
            connection.shutdown(socket.SHUT_WR)
            self.held.append(connection.dup())
