# SPDX-License-Identifier: Apache-2.0
"""Starting, reloading, rotating, draining, TLS: what an operator does to a running gateway."""
import json
import os
import signal
import socket
import ssl
import subprocess
import time
import unittest

from client import Connection, call, request_bytes
from fake_engine import DONE, PLAIN, FakeEngine, chunked, event, http
from processes import BINARY, ROOT, SANITIZE, Process, folder, free_port, wait_for
from world import (CHAT, Case, Fleet, Gateway, chat, check_invariants, configuration, documents,
                   resource)


def post(gateway, body):
    return request_bytes(gateway.address, "POST", CHAT, body)


def certificate(name, subject="localhost"):
    """A self-signed pair; (certificate, key)."""
    cert, key = folder() / f"{name}.crt", folder() / f"{name}.key"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
                    "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-keyout", str(key),
                    "-out", str(cert), "-subj", f"/CN={subject}", "-addext",
                    f"subjectAltName=DNS:{subject},IP:127.0.0.1"],
                   check=True, capture_output=True)
    return cert, key


class Reload(unittest.TestCase):
    """All or nothing, and the last good configuration stays."""

    def setUp(self):
        self.fleet = Fleet(1)
        self.other = Fleet(1)
        self.gateway = None

    def tearDown(self):
        if self.gateway:
            check_invariants(self, self.gateway, whole=False)
            self.assertEqual(self.gateway.stop(), 0)
            code, said = self.gateway.replay()
            self.assertEqual(code, 0, said)
        self.fleet.stop()
        self.other.stop()

    def start(self, watch):
        self.gateway = Gateway(config=configuration(self.fleet.urls,
                                                    gateway={"watch_files": watch}))

    def engines(self):
        return {e["address"] for e in self.gateway.endpoints()}

    def rewrite(self, text, watch=True):
        # As editors do it: a new file takes the name of the old one.
        fresh = self.gateway.config_path.with_suffix(".new")
        fresh.write_text(text)
        os.replace(fresh, self.gateway.config_path)

    def test_a_signal_rereads_the_files(self):
        self.start(False)
        self.rewrite(configuration(self.other.urls, gateway={"watch_files": False}))
        time.sleep(0.3)
        self.assertEqual(self.engines(), set(self.fleet.engines))
        self.gateway.process.send_signal(signal.SIGHUP)
        wait_for("the other engine serves", lambda: self.engines() == set(self.other.engines))
        wait_for("it answers", lambda: self.gateway.chat().status == 200)
        self.assertEqual(self.other.stats()["finished"], 1)
        self.assertIn("endpoints", self.gateway.process.log())

    def test_a_changed_file_is_seen(self):
        self.start(True)
        self.rewrite(configuration(self.fleet.urls + self.other.urls))
        wait_for("both engines serve",
                 lambda: self.engines() == {*self.fleet.engines, *self.other.engines})
        with open(self.gateway.config_path, "w") as file:  # in place, as others do it
            file.write(configuration(self.other.urls))
        wait_for("one engine serves", lambda: self.engines() == set(self.other.engines))

    def test_a_bad_file_changes_nothing_and_is_named(self):
        self.start(True)
        for number, bad in enumerate(("kind: [", configuration(self.other.urls).replace(
                '"endpoints"', '"endpionts"'), "")):
            self.rewrite(bad)
            wait_for("the error is told", lambda: self.gateway.process.log().count(
                "was not reloaded") >= number + 1)
            self.assertEqual(self.engines(), set(self.fleet.engines))
            self.assertEqual(self.gateway.chat().status, 200)
        self.assertIn("signalbox.yaml:", self.gateway.process.log())
        self.rewrite(configuration(self.other.urls))
        wait_for("the good one is taken", lambda: self.engines() == set(self.other.engines))

    def test_limits_on_requests_hold_from_the_reload_on(self):
        self.start(False)
        schema = {"a": {"b": {"c": {}}}}
        asks = [("/v1/completions", {"model": "m", "prompt": "a", "max_tokens": 1, "logprobs": 5}),
                (CHAT, chat(max_tokens=1, tools=[{"type": "function", "function": {
                    "name": "f", "parameters": schema}}])),
                (CHAT, chat(max_tokens=1, response_format={"type": "json_schema", "json_schema": {
                    "name": "f", "schema": schema}}))]
        for path, body in asks:
            self.assertEqual(self.gateway.post(path, body).status, 200, body)
        self.rewrite(configuration(self.fleet.urls, gateway={
            "watch_files": False, "limits": {"logprobs": 4, "schema_depth": 3}}))
        self.gateway.process.send_signal(signal.SIGHUP)
        for path, body in asks:
            wait_for("the limit holds", lambda: self.gateway.post(path, body).status == 400)

    def test_what_only_a_start_changes_waits_and_is_named(self):
        self.start(False)
        log = str(folder() / "decisions.log")
        self.rewrite(configuration(self.other.urls, gateway={
            "watch_files": True, "logs": {"decisions": log}, "limits": {"decisions_kept": 3}}))
        self.gateway.process.send_signal(signal.SIGHUP)
        wait_for("the other engine serves", lambda: self.engines() == set(self.other.engines))
        for setting in ("Gateway.watch_files", "Gateway.logs.decisions",
                        "Gateway.limits.decisions_kept"):
            self.assertIn(setting, self.gateway.process.log())
        in_force = self.gateway.admin("/v1/config").text
        self.assertNotIn(log, in_force)
        self.assertIn("decisions_kept: 10000", in_force)
        wait_for("it answers", lambda: self.gateway.chat().status == 200)

    def test_tls_can_be_turned_on_and_off_and_the_admin_token_changed(self):
        self.start(False)
        cert, key = certificate("later")
        secret = folder() / "token"
        secret.write_text("hush")
        self.rewrite(configuration(self.fleet.urls, gateway={
            "watch_files": False, "tls": {"cert": str(cert), "key": str(key)},
            "admin": {"token": {"file": str(secret)}}}))
        self.gateway.process.send_signal(signal.SIGHUP)
        trust = ssl.create_default_context(cafile=str(cert))
        def secured():
            try:
                return call(self.gateway.address, "GET", "/v1/models", tls=trust).status == 200
            except (OSError, ssl.SSLError, ConnectionError):
                return False
        wait_for("clients speak TLS", secured)
        self.assertEqual(self.gateway.admin("/v1/fleet").status, 401)
        self.assertEqual(self.gateway.admin("/v1/fleet",
                                            {"authorization": "Bearer hush"}).status, 200)
        self.rewrite(configuration(self.fleet.urls, gateway={"watch_files": False}))
        self.gateway.process.send_signal(signal.SIGHUP)
        wait_for("the token is gone", lambda: self.gateway.admin("/v1/fleet").status == 200)
        wait_for("and TLS", lambda: self.gateway.chat().status == 200)

    def test_a_stream_survives_a_reload_that_takes_its_engine_away(self):
        self.fleet.stop()
        self.fleet = Fleet(1, speed=1, fixed_itl_ms=20)
        self.start(False)
        body = chat("Survive.", stream=True, max_tokens=60, ignore_eos=True)
        with self.gateway.connect() as c:
            c.send(post(self.gateway, body))
            wait_for("tokens flow", lambda: self.fleet.stats()["tokens"] > 2)
            self.rewrite(configuration(self.other.urls, gateway={"watch_files": False}))
            self.gateway.process.send_signal(signal.SIGHUP)
            wait_for("the engine left", lambda: self.engines() == set(self.other.engines))
            answer = c.read_answer()
            self.assertEqual(answer.deltas(), self.fleet.expect(body)["text"])
            self.assertEqual(answer.events()[-1], "[DONE]")

    def leaves_and_comes_back(self, without, back):
        """A stream on the fleet's engine outlives two configurations."""
        body = chat("Survive.", stream=True, max_tokens=60, ignore_eos=True)
        with self.gateway.connect() as c:
            c.send(post(self.gateway, body))
            wait_for("tokens flow", lambda: self.fleet.stats()["tokens"] > 2)
            for text, engines in ((without, self.other.engines), back):
                self.rewrite(text)
                self.gateway.process.send_signal(signal.SIGHUP)
                wait_for("it is in use", lambda: self.engines() == set(engines))
            answer = c.read_answer()
            self.assertEqual(answer.deltas(), self.fleet.expect(body)["text"])
        for i in range(4):
            self.assertEqual(self.gateway.chat(chat(f"after {i}", max_tokens=2)).status, 200)

    def test_an_engine_comes_back_while_a_request_of_its_earlier_life_runs(self):
        self.fleet.stop()
        self.fleet = Fleet(1, speed=1, fixed_itl_ms=20)
        both = configuration([*self.fleet.urls, *self.other.urls])
        # The other engine would take the stream: it joins when the stream runs.
        self.gateway = Gateway(config=configuration(self.fleet.urls))
        self.leaves_and_comes_back(configuration(self.other.urls),
                                   (both, [*self.fleet.engines, *self.other.engines]))

    def test_a_pool_comes_back_with_another_engine_while_a_request_of_its_earlier_life_runs(self):
        self.fleet.stop()
        self.fleet = Fleet(1, speed=1, fixed_itl_ms=20)
        third = Fleet(1)
        self.addCleanup(third.stop)

        def pools(**urls):
            return documents(resource("Gateway", "main"), resource("Model", "m"),
                             *[resource("Pool", n, model="m", endpoints=u)
                               for n, u in urls.items()])
        self.gateway = Gateway(config=pools(p=self.fleet.urls))
        self.leaves_and_comes_back(pools(q=self.other.urls),
                                   (pools(p=third.urls, q=self.other.urls),
                                    [*third.engines, *self.other.engines]))


class Drain(unittest.TestCase):
    """SIGTERM: not ready first, then what is under way finishes."""

    def start(self, pool=None, **timeouts):
        self.fleet = Fleet(1, speed=1, fixed_itl_ms=20)
        self.addCleanup(self.fleet.stop)
        self.gateway = Gateway(config=configuration(
            self.fleet.urls, pool=pool, gateway={"timeouts": timeouts}))

    def begin(self, tokens):
        self.body = chat("Drain.", stream=True, max_tokens=tokens, ignore_eos=True)
        connection = self.gateway.connect()
        connection.send(post(self.gateway, self.body))
        wait_for("tokens flow", lambda: self.fleet.stats()["tokens"] > 2)
        return connection

    def test_streams_finish_and_readiness_goes_first(self):
        self.start()
        idle = self.gateway.connect()
        idle.request("GET", "/v1/models")
        with self.begin(100) as stream:
            self.gateway.process.send_signal(signal.SIGTERM)
            wait_for("readyz fails", lambda: self.gateway.admin("/readyz").status == 503)
            self.assertEqual(self.gateway.admin("/livez").status, 200)
            self.assertTrue(idle.closed_by_peer(), "an idle connection is closed")
            answer = stream.read_answer()
            self.assertEqual(answer.deltas(), self.fleet.expect(self.body)["text"])
            self.assertEqual(answer.events()[-1], "[DONE]")
        self.assertEqual(self.gateway.process.wait(5), 0)
        self.assertRaises(OSError, self.gateway.connect)
        code, said = self.gateway.replay()
        self.assertEqual(code, 0, said)

    def assert_told(self, connections, queued=1):
        """Streams end with an error event, what had no byte yet is 503, and the books are whole."""
        for connection in connections:
            answer = connection.read_answer()
            if answer.status == 200:
                self.assertEqual(answer.end, "chunked")
                self.assertEqual(json.loads(answer.events()[-1])["error"]["code"], "draining")
            else:
                self.assertEqual((answer.status, answer["retry-after"]), (503, "1"), answer)
                self.assertEqual(answer.json()["error"]["code"], "draining")
        self.assertEqual(self.gateway.process.wait(5), 0)
        wait_for("the engine is rid of it", lambda: self.fleet.stats()["active"] == 0)
        ends = [(r["status"], r["outcome"]) for r in self.gateway.access_records()
                if r["outcome"] != "completed"]
        self.assertEqual(len(ends), len(connections), ends)
        self.assertEqual({outcome for _, outcome in ends}, {"draining"})
        code, said = self.gateway.replay()
        self.assertEqual(code, 0, said)

    def test_at_the_deadline_everybody_in_flight_is_told(self):
        self.start(drain="400ms", pool={"concurrency_max": 3})
        connections = [self.begin(5000), self.begin(5000)]
        for _ in range(2):  # one runs without a byte sent, one waits for a place
            connections.append(self.gateway.connect())
            connections[-1].send(post(self.gateway, chat("Plain.", max_tokens=5000,
                                                         ignore_eos=True)))
        wait_for("all are known", lambda: self.gateway.totals()["in_flight"] == 4)
        begun = time.monotonic()
        self.gateway.process.send_signal(signal.SIGTERM)
        self.assert_told(connections)
        print(f"[ended after {time.monotonic() - begun:.2f} s]", end=" ")

    def test_an_answer_that_an_engine_finishes_for_nobody_is_accounted_at_the_deadline(self):
        self.start(drain="400ms", pool={"on_client_abort": "drain"})
        self.begin(5000).close()
        self.gateway.process.send_signal(signal.SIGTERM)
        self.assertEqual(self.gateway.process.wait(5), 0)
        self.assertEqual([(r["status"], r["outcome"]) for r in self.gateway.access_records()],
                         [(499, "draining")])

    def test_a_second_signal_ends_it_at_once(self):
        self.start()
        connections = [self.begin(5000)]
        self.gateway.process.send_signal(signal.SIGTERM)
        wait_for("readyz fails", lambda: self.gateway.admin("/readyz").status == 503)
        self.gateway.process.send_signal(signal.SIGTERM)
        self.assert_told(connections)

    def test_load_balancers_are_given_time_to_notice(self):
        self.start(drain_notice="1s")
        self.gateway.process.send_signal(signal.SIGTERM)
        wait_for("readyz fails", lambda: self.gateway.admin("/readyz").status == 503)
        self.assertEqual(self.gateway.chat().status, 200, "who has not noticed yet is served")
        self.assertEqual(self.gateway.process.wait(5), 0)


class Logs(unittest.TestCase):
    """Log files reopen on SIGUSR1."""

    def test_records_that_a_full_disk_swallows_are_counted(self):
        fleet = Fleet(1, speed=1000)
        gateway = Gateway(config=configuration(
            fleet.urls, gateway={"logs": {"decisions": "/dev/full"}}))
        self.assertEqual(gateway.chat().status, 200)
        lost = 'signalbox_log_lost_records_total{log="%s"}'
        wait_for("the loss is counted", lambda: gateway.metrics()[lost % "decisions"] == 1)
        self.assertEqual([gateway.metrics()[lost % log] for log in ("access", "events")], [0, 0])
        self.assertEqual(gateway.stop(), 0)
        fleet.stop()

    def test_a_rotated_access_log_goes_on_in_a_new_file(self):
        fleet = Fleet(1)
        self.addCleanup(fleet.stop)
        gateway = Gateway(fleet.urls)
        gateway.chat(headers={"x-request-id": "before"})
        wait_for("the line is written", lambda: "before" in gateway.access_log.read_text())
        old = gateway.access_log.with_suffix(".1")
        os.rename(gateway.access_log, old)
        gateway.process.send_signal(signal.SIGUSR1)
        wait_for("a new file is there", gateway.access_log.exists)
        gateway.chat(headers={"x-request-id": "after"})
        wait_for("the line is written", lambda: "after" in gateway.access_log.read_text())
        self.assertNotIn("after", old.read_text())
        self.assertEqual(gateway.stop(), 0)


class Tls(unittest.TestCase):
    """TLS on either side."""

    def setUp(self):
        self.fleet = Fleet(1)
        self.addCleanup(self.fleet.stop)

    def listen(self, name="listener"):
        self.cert, self.key = certificate(name)
        trust = ssl.create_default_context(cafile=str(self.cert))
        self.gateway = Gateway(tls=trust, config=configuration(
            self.fleet.urls, gateway={"tls": {"cert": str(self.cert), "key": str(self.key)}}))

    def test_clients_speak_tls(self):
        self.listen()
        body = chat("Secretly.", stream=True, max_tokens=40)
        with self.gateway.connect() as c:
            self.assertIn(c.socket.version(), ("TLSv1.2", "TLSv1.3"))
            for _ in range(3):
                answer = c.request("POST", CHAT, body)
                self.assertEqual(answer.deltas(), self.fleet.expect(body)["text"])
            large = chat("word " * 60_000, max_tokens=2)
            self.assertEqual(c.request("POST", CHAT, large).status, 200)
        check_invariants(self, self.gateway, [self.fleet])
        self.assertEqual(self.gateway.stop(), 0)

    def test_answers_of_any_size_arrive_whole(self):
        text = "word " * 20_000
        plain = json.loads(PLAIN)
        plain["choices"][0]["message"]["content"] = text

        def stream(pieces):
            return chunked([b"".join(event(p) for p in pieces) + event(finish="stop") + DONE])

        self.listen()
        listener = {"tls": {"cert": str(self.cert), "key": str(self.key)}}
        trust = ssl.create_default_context(cafile=str(self.cert))
        for tls, settings in ((trust, listener), (None, {})):
            for reply, wanted in ((http(json.dumps(plain).encode()), text),
                                  (stream([text] * 5), text * 5), (stream("x" * 3000), "x" * 3000)):
                engine = FakeEngine(reply)
                self.addCleanup(engine.stop)
                gateway = Gateway(tls=tls, config=configuration([engine.url], gateway=settings))
                streamed = reply.find(b"chunked") > 0
                with gateway.connect() as c:
                    got = c.request("POST", CHAT, chat("Much.", stream=streamed))
                self.assertEqual(got.status, 200)
                content = got.deltas() if streamed else \
                    got.json()["choices"][0]["message"]["content"]
                self.assertEqual(content, wanted)
                self.assertEqual(gateway.stop(), 0)
        self.assertEqual(self.gateway.stop(), 0)

    def test_an_answer_that_ends_with_its_connection_ends_in_order(self):
        # Without close_notify a client cannot tell an end from a connection that was cut.
        self.listen()
        for stream, line in ((False, "HTTP/1.1"), (True, "HTTP/1.1"), (True, "HTTP/1.0")):
            with self.gateway.connect() as c:
                c.socket.suppress_ragged_eofs = False
                request = request_bytes(self.gateway.address, "POST", CHAT,
                                        chat(stream=stream, max_tokens=4),
                                        {"connection": "close"})
                c.send(request.replace(b"HTTP/1.1", line.encode(), 1))
                data = b""
                while got := c.socket.recv(65536):  # raises when it is cut
                    data += got
            self.assertTrue(data.startswith(b"HTTP/1.1 200 "), data)
            self.assertEqual(b"[DONE]" in data, stream, data)
        self.assertEqual(self.gateway.stop(), 0)

    def test_a_client_that_only_says_its_end_has_left(self):
        # close_notify, and the socket stays open until we close it.
        self.fleet.stop()
        self.fleet = Fleet(1, speed=1, fixed_ttft_ms=5000)
        self.addCleanup(self.fleet.stop)
        self.listen()
        with self.gateway.connect() as c:
            c.send(request_bytes(self.gateway.address, "POST", CHAT, chat()))
            wait_for("the engine works", lambda: self.fleet.stats()["active"] == 1)
            begun = time.monotonic()
            c.socket.settimeout(10)
            c.socket.unwrap()
            self.assertLess(time.monotonic() - begun, 3)
        wait_for("the engine noticed", lambda: self.fleet.stats()["aborted"] == 1)
        self.assertEqual(self.gateway.outcomes(), {"client_gone": 1})
        self.assertEqual(self.gateway.stop(), 0)

    def test_plain_text_and_old_versions_get_nothing(self):
        self.listen()
        with Connection(self.gateway.address) as c:
            c.send(b"GET /v1/models HTTP/1.1\r\nhost: x\r\n\r\n")
            self.assertTrue(c.closed_by_peer())
            self.assertNotIn(b"200 OK", c.buffer)
        old = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        old.check_hostname, old.verify_mode = False, ssl.CERT_NONE
        old.set_ciphers("ALL:@SECLEVEL=0")
        old.minimum_version = ssl.TLSVersion.TLSv1
        old.maximum_version = ssl.TLSVersion.TLSv1_1
        with self.assertRaises((ssl.SSLError, OSError)):
            Connection(self.gateway.address, tls=old)
        self.assertEqual(self.gateway.call("GET", "/v1/models").status, 200)
        self.gateway.stop()

    def test_a_new_certificate_is_taken_without_a_restart(self):
        self.listen()
        before = self.serial()
        fresh_cert, fresh_key = certificate("fresh")
        os.replace(fresh_key, self.key)
        os.replace(fresh_cert, self.cert)
        self.gateway.process.send_signal(signal.SIGHUP)
        wait_for("the new certificate is shown", lambda: self.serial() != before)
        self.gateway.stop()

    def serial(self):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        with Connection(self.gateway.address, tls=context) as c:
            return c.socket.getpeercert(binary_form=True)

    def test_a_handshake_has_a_deadline_on_either_side(self):
        cert, key = certificate("silent")
        silent = socket.socket()
        self.addCleanup(silent.close)
        silent.bind(("127.0.0.1", 0))
        silent.listen(16)
        self.gateway = Gateway(tls=ssl.create_default_context(cafile=str(cert)), wait=False,
                               config=configuration(
            ["https://127.0.0.1:%d" % silent.getsockname()[1]], pool={"engine": "openai"},
            gateway={"tls": {"cert": str(cert), "key": str(key)},
                     "timeouts": {"tls_handshake": "300ms", "request_head": "60s",
                                  "connect": "1m"}}))
        with Connection(self.gateway.address) as c:
            self.assertTrue(c.closed_by_peer())
        with self.gateway.connect() as c:
            time.sleep(0.5)
            self.assertIn(c.request("POST", CHAT, chat()).status, (502, 503))
        self.assertEqual(self.gateway.stop(), 0)

    def engine_behind_tls(self, cert, key):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(cert, key)
        fake = FakeEngine(tls=context)
        self.addCleanup(fake.stop)
        return fake

    def test_engines_behind_tls_are_verified(self):
        cert, key = certificate("engine")
        fake = self.engine_behind_tls(cert, key)
        trusted = Gateway(config=configuration([fake.url], pool={
            "engine": "openai", "tls": {"ca": str(cert), "server_name": "localhost"}}))
        self.assertEqual(trusted.chat().status, 200)
        self.assertEqual(trusted.stop(), 0)
        calls = len(fake.requests)
        wrong_name = {"ca": str(cert), "server_name": "other.example"}
        for tls in ({}, wrong_name):
            gateway = Gateway(config=configuration([fake.url], pool={
                "engine": "openai", "tls": tls}), wait=False)
            answer = gateway.chat()
            self.assertIn(answer.status, (502, 503), answer)
            wait_for("the log names the certificate",
                     lambda: "its TLS certificate is refused" in gateway.process.log())
            self.assertEqual(gateway.stop(), 0)
        self.assertEqual(len(fake.requests), calls)


    def reload(self, text):
        before = self.gateway.process.log().count("reloaded")
        self.gateway.config_path.write_text(text)
        self.gateway.process.send_signal(signal.SIGHUP)
        wait_for("the reload is told",
                 lambda: self.gateway.process.log().count("reloaded") > before)

    def test_trust_that_was_withdrawn_is_not_kept_alive(self):
        cert, key = certificate("trusted")
        fake = self.engine_behind_tls(cert, key)

        def config(**tls):
            return configuration([fake.url], pool={"engine": "openai", "tls": tls},
                                 gateway={"watch_files": False})
        good = {"ca": str(cert), "server_name": "localhost"}
        self.gateway = Gateway(config=config(**good), threads=1)
        for bad in ({"server_name": "localhost"}, {**good, "server_name": "other.example"}):
            wait_for("it answers", lambda: self.gateway.chat().status == 200)
            self.reload(config(**bad))
            calls = len(fake.requests)
            for _ in range(3):
                self.assertIn(self.gateway.chat().status, (502, 503), bad)
            self.assertEqual(len(fake.requests), calls)
            self.reload(config(**good))
        wait_for("it answers", lambda: self.gateway.chat().status == 200, 20)
        self.assertEqual(self.gateway.stop(), 0)

    def test_an_edit_elsewhere_keeps_connections_and_sessions(self):
        cert, key = certificate("kept")
        ca = folder() / "kept-ca.crt"
        ca.write_bytes(cert.read_bytes())
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(cert, key)
        used = []  # connection of each request

        def reply(connection, request):
            used.append(connection)
            return http()
        fake = FakeEngine(reply, tls=context)
        self.addCleanup(fake.stop)

        def config(messages):
            return configuration([fake.url], pool={
                "engine": "openai", "tls": {"ca": str(ca), "server_name": "localhost"}},
                gateway={"watch_files": False, "limits": {"messages": messages},
                         "tls": {"cert": str(cert), "key": str(key)}})
        trust = ssl.create_default_context(cafile=str(cert))
        trust.maximum_version = ssl.TLSVersion.TLSv1_2  # its sessions come with the handshake
        self.gateway = Gateway(tls=trust, config=config(7), threads=1)
        self.assertEqual(self.gateway.chat().status, 200)
        with self.gateway.connect() as c:
            session = c.socket.session
        self.reload(config(8))
        self.assertIn("messages: 8\n", self.gateway.admin("/v1/config").text)
        self.assertEqual(self.gateway.chat().status, 200)
        self.assertIs(used[0], used[1])
        host, port = self.gateway.address.rsplit(":", 1)
        with trust.wrap_socket(socket.create_connection((host, int(port))), server_hostname=host,
                               session=session) as again:
            self.assertTrue(again.session_reused)
        other_cert, _ = certificate("other-trust")
        ca.write_bytes(cert.read_bytes() + other_cert.read_bytes())
        self.reload(config(8))
        self.assertEqual(self.gateway.chat().status, 200)
        self.assertIsNot(used[2], used[1])
        self.assertEqual(self.gateway.stop(), 0)

    def test_a_connection_in_use_while_trust_is_withdrawn_is_not_used_again(self):
        cert, key = certificate("busy")
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(cert, key)

        def slowly(connection, request):
            time.sleep(1.0)
            return http()
        fake = FakeEngine(slowly, tls=context)
        self.addCleanup(fake.stop)

        def config(**tls):
            return configuration([fake.url], pool={"engine": "openai", "tls": tls},
                                 gateway={"watch_files": False})
        self.gateway = Gateway(config=config(ca=str(cert), server_name="localhost"), threads=1)
        with self.gateway.connect() as c:
            c.send(post(self.gateway, chat()))
            wait_for("it is with the engine", lambda: len(fake.requests) == 1)
            self.reload(config(server_name="localhost"))
            self.assertEqual(c.read_answer().status, 200)
        self.assertIn(self.gateway.chat().status, (502, 503))
        self.assertEqual(len(fake.requests), 1)
        self.assertEqual(self.gateway.stop(), 0)

    def test_files_that_cannot_be_used_refuse_the_whole_configuration(self):
        self.listen()
        nonsense = folder() / "nonsense.pem"
        nonsense.write_text("no certificate\n")
        _, other_key = certificate("other")
        cert, key = str(self.cert), str(self.key)

        def config(tls, ca=None):
            urls = [url.replace("http:", "https:") if ca else url for url in self.fleet.urls]
            return configuration(urls, pool={"tls": {"ca": ca}} if ca else {}, gateway={
                "tls": tls, "watch_files": False, "limits": {"messages": 1}})
        before = self.serial()
        bad = [("tls.cert", config({"cert": str(nonsense), "key": key})),
               ("tls.key", config({"cert": cert, "key": str(other_key)})),
               ("tls.key", config({"cert": cert, "key": str(nonsense)})),
               ("tls.client_ca", config({"cert": cert, "key": key, "client_ca": str(nonsense)})),
               ("tls.ca", config({"cert": cert, "key": key}, ca=str(nonsense)))]
        for setting, text in bad:
            self.reload(text)
            told = self.gateway.process.log().splitlines()[-1]
            self.assertIn("was not reloaded", told)
            self.assertRegex(told, r"signalbox.yaml:\d+:\d+: \S+\.spec\." + setting)
            self.assertEqual(self.gateway.chat(chat(
                [{"role": "user", "content": "a"}] * 2)).status, 200, "the old limit holds")
            self.assertNotIn("messages: 1\n", self.gateway.admin("/v1/config").text)
            self.assertEqual(self.serial(), before)
            said = subprocess.run([BINARY, "validate", str(self.gateway.config_path)],
                                  capture_output=True, text=True, timeout=30)
            self.assertEqual(said.returncode, 1, text)
            self.assertRegex(said.stderr, r"signalbox.yaml:\d+:\d+: ")
            said = subprocess.run([BINARY, "validate", str(self.gateway.config_path),
                                   "--without-secrets"], capture_output=True, timeout=30)
            self.assertEqual(said.returncode, 0)
        self.reload(config({"cert": cert, "key": key}))
        self.assertEqual(self.gateway.chat(chat(
            [{"role": "user", "content": "a"}] * 2)).status, 400, "the new one does")
        self.assertEqual(self.gateway.stop(), 0)


class Starting(unittest.TestCase):
    """What is said when it cannot start, and what is found when it can."""

    def say(self, *arguments):
        return subprocess.run([BINARY, *map(str, arguments)], capture_output=True, text=True,
                              timeout=30)

    def test_nothing_listens_to_everybody_by_accident(self):
        for listen in ("0.0.0.0:0", "10.1.2.3:0"):
            said = self.say("serve", "http://127.0.0.1:1", "--listen", listen)
            self.assertEqual(said.returncode, 1)
            self.assertIn("--insecure", said.stderr)
        said = self.say("serve", "http://127.0.0.1:1", "--admin", "0.0.0.0:0")
        self.assertIn("token", said.stderr)

    def test_urls_that_lead_elsewhere_are_refused(self):
        for url in ("http://169.254.169.254", "http://user@127.0.0.1:1", "http://127.0.0.1:1/x",
                    "ftp://127.0.0.1", "http://0x7f.1", "127.0.0.1:1"):
            said = self.say("serve", url)
            self.assertEqual((said.returncode, said.stdout), (2, ""), url)
            self.assertTrue(said.stderr.startswith("signalbox serve: "), said)

    def test_a_port_in_use_is_named(self):
        with FakeSocket() as port:
            said = self.say("serve", "http://127.0.0.1:1", "--admin", f"127.0.0.1:{port}",
                            "--listen", "127.0.0.1:0")
        self.assertEqual(said.returncode, 1)
        self.assertIn(str(port), said.stderr)

    def test_the_worked_example_is_valid(self):
        environment = {**os.environ, "RENTED_API_KEY": "k", "RESEARCH_KEY": "r"}
        target = folder() / "example"
        target.mkdir()
        (target / "keys").mkdir()
        (target / "keys/admin.token").write_text("token-of-the-admin\n")
        (target / "keys/support.keys").write_text("sk-support\n")
        text = (ROOT / "docs/example/signalbox.yaml").read_text()
        (target / "signalbox.yaml").write_text(text)
        said = subprocess.run([BINARY, "validate", str(target / "signalbox.yaml")],
                              capture_output=True, text=True, env=environment)
        self.assertEqual(said.returncode, 0, said)

    def test_mistakes_are_told_with_their_place(self):
        path = folder() / "wrong.yaml"
        path.write_text("apiVersion: signalbox.dev/v1alpha1\nkind: Pool\nmetadata:\n  name: p\n"
                        "spec:\n  model: nowhere\n  endpiont: [http://127.0.0.1:1]\n")
        said = self.say("validate", path)
        self.assertEqual(said.returncode, 1)
        self.assertIn("wrong.yaml:7:", said.stderr)
        self.assertIn("endpoints", said.stderr)
        self.assertIn("nowhere", said.stderr)

    def test_logs_that_cannot_be_written_are_told_before_the_start(self):
        path = folder() / "logs.yaml"
        for name, file in (("access", "/nonexistent/x.log"), ("events", str(folder())),
                           ("decisions", "/dev/null/x.log")):
            path.write_text(configuration(["http://127.0.0.1:1"], gateway={
                "listen": "127.0.0.1:0", "admin": {"listen": "127.0.0.1:0"},
                "logs": {name: file}}))
            for command in (["validate", path], ["serve", "-c", path]):
                said = self.say(*command)
                self.assertEqual(said.returncode, 1, said)
                self.assertRegex(said.stderr, r"logs\.yaml:\d+:\d+: Gateway/main\.spec\.logs\."
                                 + name)
                self.assertIn(file, said.stderr)
            self.assertEqual(self.say("validate", "--without-secrets", path).returncode, 0)
        free = folder() / "not-yet.log"
        path.write_text(configuration(["http://127.0.0.1:1"], gateway={
            "logs": {"access": str(free), "decisions": "/dev/null"}}))
        self.assertEqual(self.say("validate", path).returncode, 0)
        self.assertFalse(free.exists(), "validate makes nothing")

    def test_logs_of_a_configuration_are_relative_to_its_folder_and_options_to_ours(self):
        here, there = folder() / "cwd", folder() / "configured"
        for place in (here, there):
            place.mkdir()
        (there / "signalbox.yaml").write_text(configuration(["http://127.0.0.1:1"], gateway={
            "logs": {"access": "unused.jsonl", "decisions": "d.jsonl", "events": "logs.bin"}}))
        process = subprocess.Popen(
            [os.path.abspath(BINARY), "serve", "-c", str(there / "signalbox.yaml"), "--listen",
             "127.0.0.1:0", "--admin", "127.0.0.1:0", "--access-log", "a.jsonl"], cwd=here,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            wait_for("the logs are there", lambda: (here / "a.jsonl").exists()
                     and (there / "d.jsonl").exists() and (there / "logs.bin").exists())
        finally:
            process.send_signal(signal.SIGTERM)
            self.assertEqual(process.wait(30), 0)
        self.assertEqual({p.name for p in here.iterdir()}, {"a.jsonl"})
        self.assertEqual({p.name for p in there.iterdir()},
                         {"signalbox.yaml", "d.jsonl", "logs.bin"})

    def test_reference_pages_are_fresh(self):
        for page, file in (("settings", "settings.md"), ("schema", "schema.json")):
            said = self.say("docs", page)
            self.assertEqual(said.stdout, (ROOT / "docs/reference" / file).read_text(), page)

    def test_every_command_shows_an_example(self):
        for command in ("serve", "engine", "validate", "replay", "explain", "get", "top", "docs"):
            said = self.say(command, "--help")
            self.assertEqual(said.returncode, 0, command)
            self.assertIn("Example: signalbox " + command, said.stdout)

    def test_a_name_without_address_is_told_once_it_was_looked_up(self):
        gateway = Gateway(["http://nowhere.invalid:1"], wait=False)
        gateway.process.find(r"nowhere.invalid:1 cannot be resolved", 30)
        self.assertEqual(gateway.stop(), 0)
        gateway = Gateway(config=configuration(["http://localhost:1"]), wait=False)
        wait_for("it is looked up", lambda: gateway.endpoints())
        self.assertNotIn("has no address", gateway.process.log())
        self.assertEqual(gateway.stop(), 0)

    def test_options_out_of_range_are_refused(self):
        for option, value in (("--seed", "-1"), ("--seed", "1e3"), ("--threads", "257"),
                              ("--threads", "-1")):
            said = self.say("serve", "http://127.0.0.1:1", f"{option}={value}")
            self.assertEqual(said.returncode, 2, (option, value))
            self.assertIn(option, said.stderr)

    def test_a_fifo_is_waited_for_by_nobody(self):
        place = folder() / "fifos"
        place.mkdir()
        os.mkfifo(place / "a.yaml")
        said = self.say("validate", place)
        self.assertEqual(said.returncode, 1)
        self.assertIn("no regular file", said.stderr)
        said = self.say("serve", "http://127.0.0.1:1", "--listen", "127.0.0.1:0", "--admin",
                        "127.0.0.1:0", "--access-log", place / "a.yaml")
        self.assertEqual(said.returncode, 1)
        self.assertIn("FIFO", said.stderr)

    def test_each_log_has_a_file_of_its_own(self):
        path = folder() / "both.log"
        (folder() / "link.log").symlink_to(path)
        for other in (path, folder() / "." / "both.log", folder() / "link.log"):
            said = self.say("serve", "http://127.0.0.1:1", "--listen", "127.0.0.1:0", "--admin",
                            "127.0.0.1:0", "--access-log", path, "--event-log", other)
            self.assertEqual(said.returncode, 1, other)
            self.assertIn("same file", said.stderr)
        gateway = Gateway(["http://127.0.0.1:1"], wait=False)
        said = self.say("serve", "http://127.0.0.1:1", "--listen", "127.0.0.1:0", "--admin",
                        "127.0.0.1:0", "--event-log", gateway.event_log)
        self.assertEqual(said.returncode, 1)
        self.assertIn("another process", said.stderr)
        self.assertEqual(gateway.stop(), 0)

    def test_engines_write_no_control_characters_to_terminals(self):
        models = [{"id": "evil\x1b]0;pwned\x07\x1b[31m"}]
        models += [{"id": f"adapter-{i}"} for i in range(5000)]

        def reply(connection):
            while data := connection.recv(65536):
                known = data.split(b" ")[1] == b"/v1/models"
                connection.sendall(http(json.dumps({"data": models}).encode()) if known
                                   else http(b"{}", "404 Not Found"))
        fake = FakeEngine()
        fake._requests_of = reply
        self.addCleanup(fake.stop)
        gateway = Gateway([fake.url])
        for command in (["get", "pools"], ["get", "models"], ["top", "--once"]):
            said = gateway.run(*command)
            self.assertEqual(said.returncode, 0, said)
            self.assertNotIn("\x1b", said.stdout, command)
            self.assertIn("evil\\x1b", said.stdout, command)
        self.assertNotIn("\x1b", gateway.process.log())
        self.assertIn(" more", gateway.process.log())
        self.assertLess(max(map(len, gateway.process.log().splitlines())), 2000)
        said = gateway.run("explain", "a b/../\r\nx: y")
        self.assertIn("No decision", said.stderr)
        self.assertEqual(gateway.stop(), 0)

    # Before it reads a type, UBSan asks through a pipe whether it may: there is none to be had
    # here, and it takes that for a wrong type.
    @unittest.skipIf("undefined" in SANITIZE, "UBSan needs open files")
    def test_a_shortage_of_open_files_is_told(self):
        fleet = Fleet(1, speed=20)
        self.addCleanup(fleet.stop)
        config = folder() / "short.yaml"
        config.write_text(configuration(fleet.urls, gateway={"limits": {"connections": 1000}}))
        process = Process("short", ["bash", "-c", f"ulimit -n 64; exec {BINARY} serve -c {config} "
                                    "--listen 127.0.0.1:0 --admin 127.0.0.1:0"])
        address, _ = process.find(r"listening clients=(\S+) admin=(\S+)")[0]
        self.assertIn("limit of open files", process.log())
        clients = [Connection(address) for _ in range(80)]
        process.find("Too many open files")
        self.assertIn("ulimit -n", process.log())
        for client in clients:
            client.close()
        self.assertEqual(process.stop(), 0)

    def test_engines_that_come_late_are_found(self):
        port = free_port()
        gateway = Gateway([f"http://127.0.0.1:{port}"], wait=False)
        self.assertEqual(gateway.admin("/readyz").status, 503)
        self.assertIn(gateway.chat().status, (404, 503))
        engine = Process("late", [BINARY, "engine", "--listen", f"127.0.0.1:{port}",
                                  "--served-model", "m", "--speed", 20])
        wait_for("it is found", lambda: gateway.admin("/readyz").status == 200)
        wait_for("it serves", lambda: gateway.chat().status == 200)
        self.assertEqual(gateway.stop(), 0)
        engine.stop()

    def test_a_hundred_engines_are_found_at_once(self):
        fleet = Fleet(100, speed=20)
        self.addCleanup(fleet.stop)
        begun = time.monotonic()
        gateway = Gateway(fleet.urls)
        wait_for("all are observed", lambda: sum(
            e["observed"] for e in gateway.endpoints()) == 100, 20)
        print(f"[after {time.monotonic() - begun:.2f} s]", end=" ")
        self.assertEqual(gateway.chat().status, 200)
        self.assertEqual(gateway.stop(), 0)


class FakeSocket:
    """A port that is taken."""

    def __enter__(self):
        import socket
        self.socket = socket.socket()
        self.socket.bind(("127.0.0.1", 0))
        self.socket.listen(1)
        return self.socket.getsockname()[1]

    def __exit__(self, *_):
        self.socket.close()


class Admin(Case):
    """The admin listener with a token."""

    @classmethod
    def start(cls):
        cls.fleet = Fleet(1)
        os.environ["E2E_ADMIN_TOKEN"] = "the-admin-token"
        cls.gateway = Gateway(wait=False, config=configuration(
            cls.fleet.urls, gateway={"admin": {"token": {"env": "E2E_ADMIN_TOKEN"}}}))
        plain = cls.gateway.admin
        cls.gateway.admin = lambda path, headers=None, method="GET": plain(
            path, {"authorization": "Bearer the-admin-token", **(headers or {})}, method)
        cls.gateway.plain_admin = plain
        cls.gateway.wait_ready()

    def test_every_page_needs_the_token(self):
        for path in ("/metrics", "/v1/fleet", "/v1/decisions", "/v1/decisions/x", "/v1/config",
                     "/v1/profiles", "/v1/accounts"):
            for headers in (None, {"authorization": "Bearer wrong"},
                            {"authorization": "the-admin-token"}):
                answer = self.gateway.plain_admin(path, headers)
                self.assertIn(answer.status, (401, 403), (path, headers))
            self.assertIn(self.gateway.admin(path).status, (200, 404), path)

    def test_commands_send_the_token(self):
        env = {**os.environ, "SIGNALBOX_ADMIN_TOKEN": "the-admin-token"}
        said = self.gateway.run("get", "endpoints", "--token-env", "E2E_ADMIN_TOKEN", env=env)
        self.assertEqual(said.returncode, 0, said)

    def test_the_token_is_in_no_dump(self):
        self.assertNotIn("the-admin-token", self.gateway.admin("/v1/config").text)
        self.assertNotIn("the-admin-token", self.gateway.process.log())
