# SPDX-License-Identifier: Apache-2.0
"""What the access log and the metrics say of a request, against what its client saw."""
import json
import time

from client import request_bytes
from fake_engine import DONE, PLAIN, FakeEngine, chunked, event, http
from processes import wait_for
from world import CHAT, Case, Gateway, chat, configuration


class Records(Case):
    """Two engines that play what a test wants; no other client."""

    exact = False

    @classmethod
    def start(cls):
        cls.engines = [FakeEngine(), FakeEngine()]
        cls.gateway = Gateway(config=configuration(
            [e.url for e in cls.engines], pool={"engine": "openai"},
            gateway={"recovery": {"failures_in_a_row": 100},
                     "trusted_peers": ["127.0.0.0/8"],
                     "timeouts": {"first_token": "1s", "event_idle": "1s"}}))

    @classmethod
    def tearDownClass(cls):
        super().tearDownClass()
        for engine in cls.engines:
            engine.stop()

    def reply(self, reply):
        for engine in self.engines:
            engine.reply = reply

    def new_line(self, run):
        """The access log's line of the one request that `run` makes."""
        before = len(self.gateway.access_records())
        run()
        return wait_for("the access log tells it",
                        lambda: self.gateway.access_records()[before:])[0]

    def test_time_to_first_token_is_that_of_the_client_whatever_failed_before(self):
        tried = []

        def reply(connection, request):
            tried.append(request)
            if len(tried) == 1:
                time.sleep(0.5)
                return http(b'{"error":"x"}', "500 Internal Server Error")
            return chunked([event("Hi"), event("", "stop"), DONE])
        self.reply(reply)
        name = 'signalbox_time_to_first_token_seconds_sum{model="m"}'
        before = self.gateway.metrics().get(name, 0)
        line = self.new_line(lambda: self.assertEqual(
            self.gateway.chat(chat(stream=True)).status, 200))
        self.assertEqual(line["attempts"], 2)
        self.assertGreaterEqual(line["ttft_ms"], 500)
        self.assertLessEqual(line["ttft_ms"], line["total_ms"])
        self.assertGreaterEqual(self.gateway.metrics()[name] - before, 0.5)

    def test_bytes_are_all_those_of_the_answer_however_slowly_it_is_read(self):
        body = http(json.dumps({**json.loads(PLAIN), "padding": "x" * 6_000_000}).encode())
        self.reply(body)
        name = "signalbox_sent_bytes_total"
        for receive_buffer in (None, 4096):
            before = self.gateway.metrics()[name]

            def run():
                with self.gateway.connect(receive_buffer=receive_buffer) as c:
                    c.send(request_bytes(self.gateway.address, "POST", CHAT, chat()))
                    # What the socket does not take at once is sent when the answer is long over.
                    time.sleep(0.5 if receive_buffer else 0)
                    self.assertGreater(len(c.read_answer().body), 6_000_000)
            line = self.new_line(run)
            self.assertGreater(line["bytes_out"], 6_000_000)
            wait_for("the counter has them all", lambda: (
                self.gateway.metrics()[name] - before == line["bytes_out"]))

    def test_the_client_is_whom_a_trusted_peer_speaks_for(self):
        self.reply(http())
        whom = {"x-forwarded-for": "198.51.100.1, 203.0.113.9"}
        line = self.new_line(lambda: self.gateway.chat(headers=whom))
        self.assertEqual((line["client"], line["status"]), ("203.0.113.9", 200))
        line = self.new_line(lambda: self.gateway.chat(b"no JSON", headers=whom))
        self.assertEqual((line["client"], line["status"]), ("203.0.113.9", 400))
        line = self.new_line(lambda: self.gateway.chat())
        self.assertEqual(line["client"], "127.0.0.1")

    def test_who_leaves_inside_a_request_is_counted_and_told(self):
        whole = request_bytes(self.gateway.address, "POST", CHAT, chat())
        head = whole.index(b"\r\n\r\n") + 4
        chunks = whole[:head].replace(b"content-length", b"x-was") \
            .replace(b"\r\n\r\n", b"\r\ntransfer-encoding: chunked\r\n\r\n") + b"5\r\nab"
        name = 'signalbox_requests_refused_total{status="499"}'
        for how in ("close", "reset"):
            for part in (whole[:20], whole[:head - 2], whole[:head], whole[:-1], chunks):
                before = self.gateway.metrics().get(name, 0)

                def run():
                    connection = self.gateway.connect()
                    connection.send(part)
                    time.sleep(0.1)
                    getattr(connection, how)()
                line = self.new_line(run)
                self.assertEqual((line["status"], line["outcome"], line["client"]),
                                 (499, "refused", "127.0.0.1"), (how, part))
                self.assertEqual(line.get("path"), CHAT if len(part) > 40 else None)
                self.assertEqual(self.gateway.metrics()[name] - before, 1)
        count = sum(v for k, v in self.gateway.metrics().items()
                    if k.startswith("signalbox_requests_refused_total"))
        for how in ("close", "reset"):
            getattr(self.gateway.connect(), how)()  # who asks nothing is no request
        self.assertEqual(self.gateway.chat().status, 200)
        self.assertEqual(count, sum(
            v for k, v in self.gateway.metrics().items()
            if k.startswith("signalbox_requests_refused_total")))
