# SPDX-License-Identifier: Apache-2.0
"""What clients see when engines fail, and what engines see when clients leave."""
import json
import pathlib
import resource as resources
import signal
import select
import threading
import time

from client import Connection, request_bytes
from fake_engine import DONE, PLAIN, FakeEngine, chunked, event, http
from processes import PATIENCE, folder, free_port, wait_for
from world import (CHAT, Case, Fleet, Gateway, chat, check_invariants, configuration, documents,
                   resource)


def post(gateway, body):
    return request_bytes(gateway.address, "POST", CHAT, body)


class Retries(Case):
    """Two engines, one or both of them sick."""

    exact = False

    @classmethod
    def start(cls):
        cls.fleet = Fleet(2)
        cls.gateway = Gateway(config=configuration(
            cls.fleet.urls, gateway={"recovery": {"ejection": "200ms"}}))

    def setUp(self):
        # Each test begins with both engines in service.
        def both_in():
            return self.gateway.chat(chat(f"{time.monotonic()}")).status == 200 and all(
                e["standing"] == "in" for e in self.gateway.endpoints())
        wait_for("both engines are in service", both_in, 20)

    def assert_all_served(self, count=10):
        calls = sum(self.fleet.calls())
        for i in range(count):
            body = chat(f"Try {i}", max_tokens=4)
            answer = self.gateway.chat(body)
            self.assertEqual(answer.status, 200, answer)
            text = answer.json()["choices"][0]["message"]["content"]
            self.assertEqual(text, self.fleet.expect(body)["text"])
        return sum(self.fleet.calls()) - calls

    def test_a_refused_connection_is_tried_elsewhere(self):
        self.fleet.fault(0, refuse=True)
        begun = time.monotonic()
        self.assertEqual(self.assert_all_served(10), 10)
        print(f"[10 in {(time.monotonic() - begun) * 1e3:.0f} ms]", end=" ")

    def test_500_502_503_are_tried_elsewhere(self):
        for status in (500, 502, 503):
            self.fleet.fault(0, status=status)
            self.assert_all_served(12)
            self.fleet.heal()

    def test_forty_calls_survive_an_engine_that_answers_500(self):
        self.fleet.fault(0, status=500)
        self.assert_all_served(40)

    def test_half_a_plain_answer_is_tried_elsewhere(self):
        self.fleet.fault(0, cut_plain=True)
        for i in range(6):
            before = sum(self.fleet.calls())
            answer = self.gateway.chat(chat(f"Half {i}"))
            self.assertEqual(answer.status, 200, answer)
            self.assertLessEqual(sum(self.fleet.calls()) - before, 2)

    def test_a_stream_that_breaks_before_its_first_event_is_tried_elsewhere(self):
        for reset in (False, True):
            self.fleet.fault(0, cut_after_events=0, reset=reset)
            for i in range(4):
                body = chat(f"First {i}", stream=True)
                answer = self.gateway.chat(body)
                self.assertEqual(answer.deltas(), self.fleet.expect(body)["text"], answer)
            self.fleet.heal()

    def test_bytes_that_are_no_http_are_tried_elsewhere(self):
        self.fleet.fault(0, garbage=True)
        self.assert_all_served(8)

    def test_an_answer_that_is_no_json_is_tried_elsewhere(self):
        self.fleet.fault(0, garbage_json=True)
        self.assert_all_served(8)

    def test_when_all_are_overloaded_two_calls_are_enough(self):
        self.fleet.fault(None, status=503, retry_after=7)
        before = sum(self.fleet.calls())
        answer = self.gateway.chat()
        self.assertEqual(answer.status, 503, answer)
        self.assertLessEqual(sum(self.fleet.calls()) - before, 2)
        self.assertIn("busy", answer.json()["error"]["message"])
        self.assertEqual(answer["retry-after"], "7")

    def test_429_is_passed_on_after_one_call(self):
        self.fleet.fault(None, status=429, retry_after=3)
        before = sum(self.fleet.calls())
        answer = self.gateway.chat()
        self.assertEqual((answer.status, answer["retry-after"]), (429, "3"), answer)
        self.assertEqual(sum(self.fleet.calls()) - before, 1)

    def test_a_storm_is_not_multiplied_and_ends_at_once(self):
        self.fleet.fault(None, status=503)
        before, statuses = sum(self.fleet.calls()), []

        def ask():
            for _ in range(5):
                statuses.append(self.gateway.chat().status)
        threads = [threading.Thread(target=ask) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        calls = sum(self.fleet.calls()) - before
        print(f"[40 requests became {calls} calls]", end=" ")
        self.assertLessEqual(calls, 80)
        self.assertEqual(set(statuses), {503})
        self.fleet.heal()
        for _ in range(5):
            self.assertEqual(self.gateway.chat().status, 200)

    def test_when_no_engine_can_be_reached_the_client_is_told(self):
        for engine in (1, 0):
            self.fleet.fault(engine, refuse=True, for_ms=1500)
        answer = self.gateway.chat()
        self.assertIn(answer.status, (502, 503), answer)
        self.assertTrue(answer.json()["error"]["message"])
        told = self.gateway.admin_json(f"/v1/decisions/{answer['x-request-id']}")["decisions"]
        self.assertEqual([d["kind"] for d in told], ["place", "place", "none"])
        said = self.gateway.run("explain", answer["x-request-id"]).stdout
        self.assertIn("->  nowhere", said)
        self.assertIn("had failed it already", said)
        self.assertNotIn("*", said[said.index("->  nowhere"):], "nothing was chosen")
        wait_for("service is back", lambda: self.gateway.chat().status == 200, 5)


class ShortOutage(Case):
    """Both engines are gone for a moment while requests wait."""

    exact = False

    @classmethod
    def start(cls):
        cls.fleet = Fleet(2, speed=1)
        cls.gateway = Gateway(config=configuration(cls.fleet.urls, pool={"concurrency_max": 1}))

    def test_who_waits_is_served_when_it_is_over(self):
        answers = []

        def ask(i):
            answers.append(self.gateway.chat(chat(f"Waiting {i}", max_tokens=30)))
        threads = [threading.Thread(target=ask, args=(i,)) for i in range(40)]
        for thread in threads:
            thread.start()
        wait_for("many wait", lambda: self.gateway.totals()["waiting"] > 25)
        for engine in (0, 1):
            self.fleet.fault(engine, crash=True, for_ms=600)
        for thread in threads:
            thread.join()
        lost = [answer for answer in answers if answer.status != 200]
        print(f"[{len(lost)} of 40 lost]", end=" ")
        self.assertLess(len(lost), 20)
        for answer in lost:
            self.assertEqual((answer.status, answer["retry-after"]), (502, "1"))


class Streams(Case):
    """Streams that do not end as they should."""

    exact = False

    @classmethod
    def start(cls):
        cls.fleet = Fleet(2)
        cls.gateway = Gateway(config=configuration(
            cls.fleet.urls, gateway={"timeouts": {"event_idle": "600ms", "first_token": "800ms"},
                                     "recovery": {"ejection": "500ms"}}))

    def broken(self, connection=None):
        """A stream that ends by an error event: its deltas."""
        body = chat("Break me.", stream=True, max_tokens=30, ignore_eos=True)
        answer = (connection.request("POST", CHAT, body) if connection
                  else self.gateway.chat(body))
        self.assertEqual((answer.status, answer.end), (200, "chunked"), answer)
        self.assertNotIn("[DONE]", answer.text)
        self.assertIn("error", json.loads(answer.events()[-1]), answer)
        self.assertEqual(sum('"error"' in e for e in answer.events()), 1, answer)
        whole = self.fleet.expect(body)["text"]
        parts = [e for e in answer.events() if '"choices"' in e]
        text = "".join(json.loads(e)["choices"][0]["delta"].get("content") or "" for e in parts)
        self.assertTrue(whole.startswith(text) and len(text) < len(whole), text)
        return text

    def outcome_of(self, run):
        before = self.gateway.outcomes()
        run()
        self.gateway.settle()
        after = self.gateway.outcomes()
        return {k: v - before.get(k, 0) for k, v in after.items() if v != before.get(k, 0)}

    def test_a_killed_stream_ends_with_an_error_and_no_done(self):
        self.fleet.fault(None, cut_after_events=5)
        self.assertEqual(self.outcome_of(self.broken), {"truncated": 1})

    def test_a_reset_stream_ends_with_an_error_and_no_done(self):
        # A reset may overtake the first events: then it is no stream yet, and no engine answers.
        self.fleet.fault(None, cut_after_events=5, reset=True)
        for i in range(6):
            answer = self.gateway.chat(chat(f"Reset {i}", stream=True, max_tokens=30))
            self.assertNotIn("[DONE]", answer.text)
            if answer.status == 200:
                self.assertIn("error", json.loads(answer.events()[-1]), answer)
            else:
                self.assertEqual(answer.status, 502, answer)

    def test_an_error_event_is_a_failure_although_done_follows(self):
        self.fleet.fault(None, error_event_after=4)
        self.assertEqual(self.outcome_of(self.broken), {"truncated": 1})

    def test_a_stream_breaks_the_same_way_on_a_connection_that_was_used_before(self):
        for fault in ({"cut_after_events": 5}, {"error_event_after": 4}):
            with self.gateway.connect() as c:
                self.fleet.heal()
                self.assertEqual(c.request("POST", CHAT, chat()).status, 200)
                self.fleet.fault(None, **fault)
                self.broken(c)

    def test_an_error_event_at_the_very_start_is_no_200(self):
        self.fleet.fault(None, error_event_after=0)
        answer = self.gateway.chat(chat(stream=True))
        self.assertIn(answer.status, (500, 502, 503), answer)
        self.assertIn("error", answer.json())

    def test_silence_inside_a_stream_ends_it(self):
        self.fleet.fault(None, stall_after_events=3)
        self.assertEqual(self.outcome_of(self.broken), {"truncated": 1})

    def test_silence_before_the_first_token_is_504(self):
        self.fleet.fault(None, stall_ms=3000)
        answer = self.gateway.chat(chat(stream=True))
        self.assertEqual(answer.status, 504, answer)
        self.fleet.heal()
        wait_for("the engines step again", lambda: self.gateway.chat().status == 200)

    def test_a_cutting_engine_soon_gets_little(self):
        self.fleet.fault(0, cut_after_events=5)
        before = self.fleet.calls()[0]
        for i in range(30):
            self.gateway.chat(chat(f"Cut {i}", stream=True, max_tokens=12))
        got = self.fleet.calls()[0] - before
        print(f"[{got} of 30 streams went to the cutter]", end=" ")
        self.assertLess(got, 6)

    def test_a_messages_stream_that_breaks_has_anthropics_error(self):
        self.fleet.fault(None, cut_after_events=4)
        answer = self.gateway.post("/v1/messages", {
            "model": "m", "max_tokens": 30, "stream": True,
            "messages": [{"role": "user", "content": "Break."}]})
        self.assertEqual(answer.status, 200, answer)
        self.assertNotIn("message_stop", answer.text)
        self.assertEqual(json.loads(answer.events()[-1])["type"], "error", answer)
        self.assertIn("event: error", answer.text)

    def test_a_stream_without_any_end_is_not_whole(self):
        # [DONE] behind content is an end of its own; nothing at all, or [DONE] alone, is none.
        fake = FakeEngine(close=True)
        gateway = Gateway(config=configuration(
            [fake.url], pool={"engine": "openai"},
            gateway={"recovery": {"failures_in_a_row": 100}}), name="endless")
        try:
            fake.reply = chunked([event("A"), event("B"), DONE])
            self.assertEqual(gateway.chat(chat(stream=True)).events()[-1], "[DONE]")
            fake.reply = chunked([event("A"), event("B")])
            answer = gateway.chat(chat(stream=True))
            self.assertEqual(answer.status, 200)
            self.assertIn("error", json.loads(answer.events()[-1]), answer)
            fake.reply = chunked([DONE])
            answer = gateway.chat(chat(stream=True))
            self.assertNotIn("[DONE]", answer.text)
            gateway.settle()
            outcomes = gateway.outcomes()
            self.assertEqual((outcomes["completed"], outcomes["truncated"]), (1, 1), outcomes)
        finally:
            gateway.stop()
            fake.stop()


class Ejection(Case):
    """A failing engine goes out, is probed, and comes back."""

    exact = False

    @classmethod
    def start(cls):
        cls.fleet = Fleet(2)
        cls.gateway = Gateway(config=configuration(
            cls.fleet.urls, gateway={"recovery": {"ejection": "1s"}}))

    def test_out_after_failures_and_back_within_seconds(self):
        self.fleet.fault(0, status=500)

        def ejected():
            for i in range(10):
                self.assertEqual(self.gateway.chat(chat(f"{i}{time.monotonic()}")).status, 200)
            return any(e["standing"] != "in" for e in self.gateway.endpoints())
        wait_for("the sick engine is out", ejected, 20)
        self.fleet.heal()

        def back():
            for i in range(6):
                self.assertEqual(self.gateway.chat(chat(f"{i}{time.monotonic()}")).status, 200)
            return all(e["standing"] == "in" for e in self.gateway.endpoints())
        wait_for("the healed engine is in", back, 20)

    def test_all_out_and_the_least_bad_still_serves(self):
        self.fleet.fault(None, status=500)
        for _ in range(20):
            self.assertIn(self.gateway.chat().status, (500, 502, 503))
        self.fleet.heal()
        begun = time.monotonic()
        wait_for("a recovered fleet serves", lambda: self.gateway.chat().status == 200, 3)
        print(f"[served again after {time.monotonic() - begun:.2f} s]", end=" ")


class Absent(Case):
    """Engines that nobody answers for: known from looks alone, before any request meets them."""

    exact = False

    @classmethod
    def start(cls):
        cls.fleet = Fleet(1)
        dead = [f"http://127.0.0.1:{free_port()}" for _ in range(12)]
        cls.gateway = Gateway(config=configuration(dead + cls.fleet.urls), wait=False)

    def test_no_request_is_wasted_on_them(self):
        wait_for("all are looked at", lambda: sum(
            e["unreachable"] for e in self.gateway.endpoints()) == 12)
        wait_for("the live one is", lambda: sum(
            e["observed"] for e in self.gateway.endpoints()) == 1)
        for i in range(30):
            self.assertEqual(self.gateway.chat(chat(f"{i}")).status, 200)
        self.assertFalse([k for k in self.gateway.metrics()
                          if k.startswith("signalbox_attempt_failures_total")])


class Fallbacks(Case):
    """A target that answers every look and fails every request."""

    exact = False

    @classmethod
    def start(cls):
        cls.fleet, cls.spare = Fleet(1, model="big"), Fleet(1, model="small")
        cls.gateway = Gateway(config=documents(
            resource("Model", "big"), resource("Model", "small"),
            resource("Pool", "p", model="big", endpoints=cls.fleet.urls),
            resource("Pool", "q", model="small", endpoints=cls.spare.urls),
            resource("Route", "m", targets=[{"model": "big"}], fallback=["small"])))

    @classmethod
    def tearDownClass(cls):
        super().tearDownClass()
        cls.spare.stop()

    def test_no_client_sees_a_target_that_fails(self):
        self.fleet.fault(0, status=500)
        for i in range(40):
            self.assertEqual(self.gateway.chat(chat(f"fails {i}")).status, 200)
        self.assertLess(self.fleet.calls()[0], 12, "the fallback is known to be better")
        self.fleet.heal()

    def test_no_client_sees_a_target_that_is_gone(self):
        self.fleet.fault(0, refuse=True, for_ms=1000)
        for i in range(10):
            self.assertEqual(self.gateway.chat(chat(f"gone {i}")).status, 200)
        self.gateway.process.find(r"an engine does not answer")
        target = self.fleet.engines[0]
        wait_for("it is back", lambda: not self.gateway.endpoint(target)["unreachable"])


class Strangers(Case):
    """Engines that are up and not what they should be."""

    exact = False

    @classmethod
    def start(cls):
        cls.fleet = Fleet(1)
        cls.stranger = Fleet(1, model="another")
        cls.fake = FakeEngine()
        cls.gateway = Gateway(config=configuration(
            cls.fleet.urls + cls.stranger.urls + [cls.fake.url],
            pool={"api_key": {"env": "UPSTREAM"}}), env={"UPSTREAM": "sk-ours"})

    @classmethod
    def tearDownClass(cls):
        super().tearDownClass()
        cls.fake.stop()
        cls.stranger.stop()

    def test_an_engine_that_lists_other_models_gets_nothing_and_is_named(self):
        self.fake.reply = http()
        self.gateway.process.find(r"serves another and not 'm': it gets no requests")
        stranger = self.stranger.engines[0]
        wait_for("it is out", lambda: not self.gateway.endpoint(stranger)["serves"])
        before = self.stranger.calls()
        for i in range(20):
            self.assertEqual(self.gateway.chat(chat(f"{i}")).status, 200)
        self.assertEqual(self.stranger.calls(), before)

    def test_who_refuses_our_key_or_knows_no_model_is_tried_elsewhere(self):
        refusal = b'{"error":{"message":"no","type":"x","code":"y"}}'
        for status in ("401 Unauthorized", "404 Not Found"):
            self.fake.reply = http(refusal, status)
            before = len(self.fake.requests)
            for i in range(30):
                self.assertEqual(self.gateway.chat(chat(f"{status} {i}")).status, 200)
            self.assertLess(len(self.fake.requests) - before, 12)
            self.fake.reply = http()

    def test_who_sends_clients_elsewhere_or_an_error_as_an_answer_is_tried_elsewhere(self):
        error = b'{"error":{"message":"boom","type":"t","code":500}}'
        gateway = Gateway(name="elsewhere", config=configuration(
            self.fleet.urls + [self.fake.url], gateway={"recovery": {"ejection": "200ms"}}))
        self.addCleanup(gateway.stop)
        for name, reply in (
                ("redirect", http(b"", "307 Moved", fields=["location: http://127.0.0.1:1/"])),
                ("plain error", http(error)),
                ("streamed error", chunked([b"data: " + error + b"\n\n", DONE]))):
            self.fake.reply = reply
            before = len(self.fake.requests)

            def asked():
                answer = gateway.chat(chat(f"{time.monotonic()}", stream=name == "streamed error"))
                self.assertEqual(answer.status, 200, answer)
                self.assertNotIn("boom", answer.text)
                return len(self.fake.requests) > before + 1
            wait_for(f"the fake is asked: {name}", asked, 20)
        self.fake.reply = http()


class Hanging(Case):
    """An engine that accepts and says nothing: a stopped process."""

    @classmethod
    def start(cls):
        cls.fleet, cls.other = Fleet(1), Fleet(1)
        cls.gateway = Gateway(config=configuration(cls.fleet.urls + cls.other.urls))

    def tearDown(self):
        check_invariants(self, self.gateway, [self.fleet, self.other])
        self.other.stop()

    def test_it_does_not_take_all_who_know_it(self):
        body = chat("A long beginning that one engine holds. " * 400, stream=True)
        for _ in range(4):
            self.assertEqual(self.gateway.chat(body).status, 200)
        holder, other = sorted((self.fleet, self.other), key=lambda f: f.calls(), reverse=True)
        before = other.calls()[0]
        holder.process.send_signal(signal.SIGSTOP)
        clients = [self.gateway.connect() for _ in range(30)]
        try:
            for client in clients:
                client.send(post(self.gateway, body))
                time.sleep(0.1)
            self.assertGreater(other.calls()[0] - before, 10)
        finally:
            holder.process.send_signal(signal.SIGCONT)
        for client in clients:
            self.assertEqual(client.read_answer().status, 200)


class Restart(Case):
    """An engine that restarts has forgotten everything."""

    exact = False

    @classmethod
    def start(cls):
        cls.fleet = Fleet(1)
        cls.gateway = Gateway(cls.fleet.urls)

    def test_a_restart_empties_what_we_think_it_holds(self):
        text = "A long beginning that is kept. " * 200
        self.assertEqual(self.gateway.chat(chat(text)).status, 200)
        second = self.gateway.chat(chat(text)).json()["usage"]
        self.assertGreater(second["prompt_tokens_details"]["cached_tokens"], 1000)
        self.assertGreater(self.gateway.endpoints()[0]["cached_tokens"], 1000)
        # A process that is younger than the clock of its metrics is not told from its successor.
        time.sleep(1.2)
        self.fleet.fault(0, crash=True, for_ms=300)
        wait_for("the index is empty",
                 lambda: self.gateway.endpoints()[0]["cached_tokens"] == 0, 15)
        wait_for("it serves again", lambda: self.gateway.chat(chat("x")).status == 200)
        third = self.gateway.chat(chat(text))
        self.assertEqual(third.json()["usage"]["prompt_tokens_details"]["cached_tokens"], 0)
        decision = self.gateway.admin_json(f"/v1/decisions/{third['x-request-id']}")
        self.assertEqual(decision["decisions"][0]["predicted"]["cached_tokens"], 0)


class Leaving(Case):
    """Clients that leave, in every phase. The engine's work ends with our connection."""

    exact = False

    @classmethod
    def start(cls):
        # One answer takes long everywhere: 3 s of prefill, then 20 ms a token.
        cls.fleet = Fleet(1, speed=1, fixed_ttft_ms=3000, fixed_itl_ms=20)
        cls.gateway = Gateway(cls.fleet.urls)

    def leave(self, body, after, how="close", seen=lambda s: s["active"] == 1):
        """Leaves when `after` was read and the engine is busy. Milliseconds until the engine saw
        it."""
        aborted = self.fleet.stats()["aborted"]
        connection = self.gateway.connect()
        connection.send(post(self.gateway, body))
        if after:
            connection.read_until(after)
        wait_for("the engine works", lambda: seen(self.fleet.stats()))
        begun = time.monotonic()
        connection.close() if how == "close" else connection.reset()
        wait_for("the engine noticed", lambda: self.fleet.stats()["aborted"] == aborted + 1, 2,
                 every=0.002)
        took = (time.monotonic() - begun) * 1e3
        print(f"[{took:.0f} ms]", end=" ")
        return took

    def test_during_prefill_streaming(self):
        self.leave(chat("p1", stream=True), b"")

    def test_during_prefill_plain(self):
        self.leave(chat("p2"), b"")

    def test_during_prefill_by_reset(self):
        self.leave(chat("p3"), b"", "reset")

    def test_while_tokens_flow(self):
        self.leave(chat("p4", stream=True, max_tokens=500, ignore_eos=True), b'"content":" ')

    def test_while_tokens_flow_by_reset(self):
        self.leave(chat("p5", stream=True, max_tokens=500, ignore_eos=True), b'"content":" ',
                   "reset")

    def test_a_second_request_on_a_connection_may_take_its_time(self):
        with self.gateway.connect() as c:
            for i in range(2):
                answer = c.request("POST", CHAT, chat(f"second {i}", max_tokens=2))
                self.assertEqual(answer.status, 200, answer)

    def test_half_a_body_and_gone_reaches_no_engine(self):
        calls = self.fleet.calls()
        connection = self.gateway.connect()
        connection.send(post(self.gateway, chat("half"))[:-5])
        connection.close()
        time.sleep(0.2)
        self.assertEqual(self.fleet.calls(), calls)

    def test_the_outcome_is_that_the_client_left(self):
        before = self.gateway.outcomes().get("client_gone", 0)
        self.leave(chat("p6", stream=True), b"")
        self.gateway.settle()
        self.assertEqual(self.gateway.outcomes()["client_gone"], before + 1)
        last = [r for r in self.gateway.access_records() if r["outcome"] == "client_gone"][-1]
        self.assertEqual(last["status"], 499)


class Draining(Case):
    """A pool whose answers are paid for anyway lets them end."""

    exact = False

    @classmethod
    def start(cls):
        cls.fleet = Fleet(1, speed=1, fixed_itl_ms=10, fixed_ttft_ms=10)
        cls.gateway = Gateway(config=configuration(
            cls.fleet.urls, pool={"on_client_abort": "drain"}))

    def test_the_engine_finishes_although_the_client_left(self):
        with self.gateway.connect() as leaving:
            leaving.send(post(self.gateway, chat(stream=True, max_tokens=60, ignore_eos=True)))
            leaving.read_until(b"data: ")
        wait_for("the engine finished", lambda: self.fleet.stats()["finished"] == 1)
        self.assertEqual(self.fleet.stats()["aborted"], 0)
        self.gateway.settle()
        self.assertEqual(self.gateway.outcomes(), {"client_gone": 1})


    def test_so_does_one_whose_client_left_with_a_full_buffer(self):
        fake = FakeEngine(chunked([event("x" * 1000)] * 30_000 + [event(None, "stop"), DONE]))
        gateway = Gateway(config=configuration(
            [fake.url], pool={"engine": "openai", "on_client_abort": "drain"}))
        try:
            with Connection(gateway.address, receive_buffer=4096) as leaving:
                leaving.send(post(gateway, chat(stream=True)))
                leaving.read_until(b"data: ")
                time.sleep(1)
            # Long before silence would end it: the engine is read to its end.
            gateway.settle(5)
            self.assertEqual(gateway.outcomes(), {"client_gone": 1})
            self.assertEqual(gateway.stop(), 0)
        finally:
            fake.stop()


class Blasts(Case):
    """Engines that send faster than a turn takes, and clients that leave in that very turn."""

    exact = False

    @classmethod
    def start(cls):
        cls.fake = FakeEngine(chunked([event("x" * 60_000)] * 100 + [event(None, "stop"), DONE]))
        cls.gateway = Gateway(config=configuration([cls.fake.url], pool={"engine": "openai"}))

    @classmethod
    def tearDownClass(cls):
        cls.fake.stop()
        super().tearDownClass()

    def test_leaving_in_the_middle_of_a_blast(self):
        for i in range(30):
            connections = [self.gateway.connect() for _ in range(4)]
            for c in connections:
                c.send(post(self.gateway, chat(f"{i}", stream=True)))
            for c in connections:
                c.read_until(b"data: ")
                c.reset() if i % 2 else c.close()
        self.assertEqual(self.gateway.chat(chat(stream=True)).events()[-1], "[DONE]")


class OpenEnds(Case):
    """Engines that have said all and leave their answer open."""

    exact = False

    @classmethod
    def start(cls):
        cls.held = []

        def hold(connection, request):
            connection.sendall(chunked([event("A"), event(None, "stop"), DONE], end=False))
            cls.held.append(connection.dup())
            return b""
        cls.fake = FakeEngine(hold)
        cls.gateway = Gateway(config=configuration(
            [cls.fake.url], pool={"engine": "openai"},
            gateway={"timeouts": {"event_idle": "5m"}}))

    @classmethod
    def tearDownClass(cls):
        cls.fake.stop()
        for connection in cls.held:
            connection.close()
        super().tearDownClass()

    def test_the_answer_is_whole(self):
        self.whole()

    def test_so_it_is_when_the_connection_breaks(self):
        def cut(connection, request):
            connection.sendall(chunked([event("A"), event(None, "stop"), DONE], end=False))
            time.sleep(0.1)
            return b""
        hold, self.fake.reply = self.fake.reply, cut
        try:
            self.whole()
        finally:
            self.fake.reply = hold

    def test_so_it_is_when_the_connection_breaks_before_the_end_is_said(self):
        def cut(connection, request):
            connection.sendall(chunked([event("A"), event(None, "stop"), b'data: {"half'],
                                       end=False))
            time.sleep(0.1)
            return b""
        hold, self.fake.reply = self.fake.reply, cut
        def counted():
            return self.gateway.admin_json("/v1/accounts")["all"]["estimated_completion_tokens"]
        before = counted()
        try:
            self.whole()
            self.assertEqual(counted(), before + 1, "no usage came: what was relayed counts")
        finally:
            self.fake.reply = hold

    def whole(self):
        before = self.gateway.outcomes().get("completed", 0)
        answer = self.gateway.chat(chat(stream=True))
        self.assertEqual((answer.end, answer.events()[-1]), ("chunked", "[DONE]"), answer)
        self.gateway.settle()
        self.assertEqual(self.gateway.outcomes(), {"completed": before + 1})


class OwnLimits(Case):
    """What we lack ourselves is held against no engine."""

    @classmethod
    def start(cls):
        cls.left = threading.Event()
        cls.fake = FakeEngine(http())
        cls.gateway = Gateway(config=configuration(
            [cls.fake.url], pool={"engine": "llamacpp"},
            gateway={"limits": {"answer_assembled": "64KiB", "upstream_idle": 0}}))

    @classmethod
    def tearDownClass(cls):
        cls.fake.stop()
        super().tearDownClass()

    def test_an_answer_too_large_to_assemble_ends_at_once_and_says_so(self):
        def endless(connection, request):
            connection.sendall(chunked([event("x")], end=False))
            piece = event("y" * 1000)
            try:
                while True:
                    connection.sendall(b"%x\r\n%s\r\n" % (len(piece), piece))
            except OSError:
                self.left.set()
            return b""
        before = self.gateway.outcomes().get("gateway_limit", 0)
        usual, self.fake.reply = self.fake.reply, endless
        try:
            answer = self.gateway.chat()
        finally:
            self.fake.reply = usual
        self.assertEqual((answer.status, answer.json()["error"]["code"]),
                         (502, "answer_too_large"))
        self.assertTrue(self.left.wait(20), "the engine is told to stop")
        self.gateway.settle()
        self.assertEqual(self.gateway.outcomes()["gateway_limit"], before + 1)
        self.assertEqual(self.gateway.endpoints()[0]["failure_risk"], 0)

    def test_a_lack_of_descriptors_is_no_failure_of_engines(self):
        before = self.gateway.outcomes()
        pid = self.gateway.process.pid
        limit = resources.prlimit(pid, resources.RLIMIT_NOFILE)
        with self.gateway.connect() as client:
            client.send(post(self.gateway, chat()))
            self.assertEqual(client.read_answer().status, 200)
            resources.prlimit(pid, resources.RLIMIT_NOFILE, (8, limit[1]))
            try:
                for _ in range(6):
                    client.send(post(self.gateway, chat()))
                    answer = client.read_answer()
                    self.assertEqual((answer.status, answer.json()["error"]["code"]),
                                     (503, "gateway_limit"))
            finally:
                resources.prlimit(pid, resources.RLIMIT_NOFILE, limit)
            client.send(post(self.gateway, chat()))
            self.assertEqual(client.read_answer().status, 200)
        engine = self.gateway.endpoints()[0]
        self.assertEqual((engine["standing"], engine["failure_risk"]), ("in", 0))
        self.assertEqual(self.gateway.outcomes().get("gateway_limit", 0),
                         before.get("gateway_limit", 0) + 6)


class Reloads(Case):
    """The configuration changes while requests are held."""

    exact = False

    @classmethod
    def start(cls):
        cls.go = threading.Event()

        def slow(connection, request):
            cls.go.wait(20)
            return http(PLAIN)
        cls.slow, cls.quick = FakeEngine(slow), FakeEngine()
        cls.gateway = None

    @classmethod
    def tearDownClass(cls):
        cls.slow.stop()
        cls.quick.stop()
        super().tearDownClass()

    def test_who_waits_goes_to_an_engine_that_came_later(self):
        keys = pathlib.Path(folder()) / "reload-keys"
        keys.write_text("sk-one\n")

        def document(urls):
            return configuration(urls, pool={"engine": "openai", "concurrency_max": 1},
                                 more=[resource("Tenant", "one", keys=[{"file": str(keys)}])])
        type(self).gateway = gateway = Gateway(config=document([self.slow.url]))
        key = {"authorization": "Bearer sk-one"}
        with gateway.connect() as first, gateway.connect() as second, gateway.connect() as third:
            first.send(request_bytes(gateway.address, "POST", CHAT, chat("1"), key))
            wait_for("the engine has it", lambda: len(self.slow.requests) == 1)
            for c in (second, third):
                c.send(request_bytes(gateway.address, "POST", CHAT, chat("2"), key))
            wait_for("two wait", lambda: gateway.totals()["waiting"] == 2)
            gateway.config_path.write_text(document([self.slow.url, self.quick.url]))
            for c in (second, third):
                answer = c.read_answer()
                self.assertEqual((answer.status, answer.body), (200, PLAIN), answer)
            self.go.set()
            self.assertEqual(first.read_answer().status, 200)
        self.assertEqual(len(self.quick.requests), 2)


class Silence(Case):
    """An engine that falls silent, at each point of its answer."""

    exact = False

    @classmethod
    def start(cls):
        cls.fake = FakeEngine(close=True)
        cls.gateway = Gateway(config=configuration(
            [cls.fake.url], pool={"engine": "openai"},
            gateway={"timeouts": {"event_idle": "500ms", "first_token": "700ms",
                                  "plain_answer": "1h"},
                     "recovery": {"failures_in_a_row": 100}}))
        cls.over = threading.Event()

    @classmethod
    def tearDownClass(cls):
        cls.over.set()
        super().tearDownClass()
        cls.fake.stop()

    def outcome_of(self, run):
        before = self.gateway.outcomes()
        run()
        self.gateway.settle()
        return {k: v - before.get(k, 0) for k, v in self.gateway.outcomes().items()
                if v != before.get(k, 0)}

    def silent_after(self, data):
        def reply(connection, request):
            connection.sendall(data)
            self.over.wait(60)
        self.fake.reply = reply

    def test_inside_a_plain_answer_it_counts_from_byte_to_byte(self):
        for cut in (len(http()) - len(PLAIN) + 1, len(http()) - 1):
            self.silent_after(http()[:cut])

            def run():
                self.assertEqual(self.gateway.chat().status, 504)
            self.assertEqual(self.outcome_of(run), {"engine_timeout": 1})

    def test_inside_a_stream_it_truncates_whether_a_token_had_come_or_not(self):
        for events in ([event("")], [event(""), event("Hi")]):
            self.silent_after(chunked(events, end=False))

            def run():
                answer = self.gateway.chat(chat(stream=True))
                self.assertEqual(answer.status, 200)
                self.assertIn("error", json.loads(answer.events()[-1]), answer)
            self.assertEqual(self.outcome_of(run), {"truncated": 1})

    def test_behind_a_last_event_that_lacks_its_blank_line(self):
        boom = b'data: {"error":{"message":"boom","code":500}}'
        pad = b'data: {"pad":"' + b"p" * 800_000 + b'"}'
        for last, says in ((boom, "boom"), (boom + b"\n", "boom"), (pad, "broke off"),
                           (pad + b"\n", "broke off")):
            self.silent_after(chunked([event("Hi"), last], end=False))

            def run(says=says):
                answer = self.gateway.chat(chat(stream=True))
                self.assertEqual(answer.end, "chunked")
                # Ours is not glued to the engine's.
                for whole in answer.text.strip().split("\n\n"):
                    self.assertEqual(whole.count("data: "), 1)
                self.assertIn(says, json.loads(answer.events()[-1])["error"]["message"])
            self.assertEqual(self.outcome_of(run), {"truncated": 1})

    def test_comments_inside_a_stream_are_silence(self):
        comment = b"8\r\n: ping\n\n\r\n"

        def reply(connection, request):
            connection.sendall(chunked([event("Hi")], end=False))
            while not self.over.wait(0.05):
                connection.sendall(comment)
        self.fake.reply = reply

        def run():
            answer = self.gateway.chat(chat(stream=True))
            self.assertEqual(answer.status, 200)
            self.assertIn("error", json.loads(answer.events()[-1]), answer)
        self.assertEqual(self.outcome_of(run), {"truncated": 1})

    def test_between_head_and_body_of_a_plain_answer_an_engine_may_think(self):
        whole = http()
        head = len(whole) - len(PLAIN)

        def reply(connection, request):
            connection.sendall(whole[:head])
            time.sleep(1.5)
            connection.sendall(whole[head:])
        self.fake.reply = reply
        answer = self.gateway.chat()
        self.assertEqual((answer.status, answer.body), (200, PLAIN), answer)

    def test_a_plain_answer_that_drips_has_its_whole_time_and_no_more(self):
        def reply(connection, request):
            connection.sendall(http()[:-len(PLAIN)])
            for byte in PLAIN[:-1]:
                connection.sendall(bytes([byte]))
                if self.over.wait(0.05):
                    return
        self.fake.reply = reply
        gateway = Gateway(config=configuration(
            [self.fake.url], pool={"engine": "openai"},
            gateway={"timeouts": {"event_idle": "1h", "plain_answer": "1s"}}), name="drip")
        try:
            self.assertEqual(gateway.chat().status, 504)
        finally:
            gateway.stop()


class KeptAlive(Case):
    """A stream that pauses: its client gets comments, wherever the pause is."""

    exact = False

    def test_comments_come_between_events_and_inside_one_that_is_held(self):
        rest = event("B", "stop")

        def reply(connection, request):
            connection.sendall(chunked([event("A"), rest[:20]], end=False))
            time.sleep(0.8)
            connection.sendall(b"%x\r\n%s\r\n" % (len(rest) - 20, rest[20:])
                               + b"%x\r\n%s\r\n0\r\n\r\n" % (len(DONE), DONE))
        self.fake.reply = reply
        answer = self.gateway.chat(chat(stream=True))
        self.assertGreaterEqual(answer.body.count(b":\n\n"), 2, answer.body)
        self.assertEqual(answer.body.replace(b":\n\n", b""), event("A") + rest + DONE)

    @classmethod
    def start(cls):
        cls.fake = FakeEngine(close=True)
        cls.gateway = Gateway(config=configuration(
            [cls.fake.url], pool={"engine": "openai"},
            gateway={"sse": {"keep_alive_comment": "200ms"}}))

    @classmethod
    def tearDownClass(cls):
        super().tearDownClass()
        cls.fake.stop()


class SlowClients(Case):
    """Those who send or read slowly cost a bounded buffer and a deadline."""

    exact = False

    @classmethod
    def start(cls):
        cls.fleet = Fleet(1, speed=1000, answer_tokens_mean=100000, idle_close_s=0)
        cls.gateway = Gateway(config=configuration(cls.fleet.urls, gateway={
            "timeouts": {"request_head": "700ms", "body_idle": "700ms", "request_body": "2s",
                         "write_idle": "20s",
                         "event_idle": "1s", "keep_alive_idle": "2s"}}))

    def test_a_reader_that_stops_holds_a_bounded_buffer(self):
        self.gateway.chat(chat(stream=True))
        before = self.gateway.process.rss()
        connection = Connection(self.gateway.address, receive_buffer=4096)
        body = chat(stream=True, max_tokens=90_000, ignore_eos=True)
        connection.send(post(self.gateway, body))
        connection.read_until(b"data: ")
        time.sleep(2)
        grown = self.gateway.process.rss() - before
        print(f"[{grown / 2**20:.1f} MiB more]", end=" ")
        self.assertLess(grown, 8 << 20)
        # What was held comes whole and in order once it reads on.
        rest = connection.buffer
        while b"[DONE]" not in rest[-200:]:
            data = connection.socket.recv(1 << 20)
            self.assertTrue(data, f"the stream broke: {rest[-300:]}")
            rest = (rest + data) if len(rest) < 4096 else rest[-4096:] + data
        connection.close()

    def test_a_slow_head_is_closed_by_its_deadline(self):
        with self.gateway.connect() as c:
            c.send(b"POST %s HTTP/1.1\r\nhost: x\r\n" % CHAT.encode())
            begun = time.monotonic()
            for _ in range(40):
                try:
                    c.send(b"x")
                except OSError:
                    break
                time.sleep(0.05)
            self.assertTrue(c.closed_by_peer())
            self.assertLess(time.monotonic() - begun, 8 * PATIENCE)
            self.assertTrue(c.buffer == b"" or c.buffer.startswith(b"HTTP/1.1 408"), c.buffer)
        line = self.told(408, "head")
        self.assertGreater(line["total_ms"], 500, "from its first byte")

    def test_a_body_that_stalls_is_closed(self):
        calls = self.fleet.calls()
        with self.gateway.connect() as c:
            c.send(post(self.gateway, chat("stalls"))[:-3])
            self.assertTrue(c.closed_by_peer())
        self.assertEqual(self.fleet.calls(), calls)
        line = self.told(408, "body")
        self.assertGreater(line["total_ms"], 500, "from its first byte")

    def test_a_body_that_drips_has_its_whole_time_and_no_more(self):
        calls = self.fleet.calls()
        for chunks in (False, True):
            with self.gateway.connect() as c:
                whole = post(self.gateway, chat("drips" * 1000))
                head, body = whole.split(b"\r\n\r\n", 1)
                if chunks:
                    head = b"\r\n".join(line for line in head.split(b"\r\n")
                                       if not line.lower().startswith(b"content-length"))
                    head += b"\r\ntransfer-encoding: chunked"
                c.send(head + b"\r\n\r\n")
                for byte in body[:-1]:
                    c.send(b"1\r\n%c\r\n" % byte if chunks else bytes([byte]))
                    if select.select([c.socket], [], [], 0.05)[0]:
                        break
                else:
                    self.fail("it waits for ever")
                self.assertTrue(c.closed_by_peer())
                self.assertIn(b"HTTP/1.1 408", c.buffer)
                self.assertIn(b"too long", c.buffer)
        self.assertEqual(self.fleet.calls(), calls)
        self.assertGreater(self.told(408, "body")["total_ms"], 1500, "all its time")

    def told(self, status, part):
        """The last line of the access log with this status."""
        lines = wait_for(f"the log tells of the {part}", lambda: [
            r for r in self.gateway.access_records() if r["status"] == status])
        self.assertEqual((lines[-1]["outcome"], lines[-1]["method"], lines[-1]["path"],
                          lines[-1]["client"]), ("refused", "POST", CHAT, "127.0.0.1"))
        return lines[-1]

    def test_a_connection_that_says_nothing_is_closed(self):
        with self.gateway.connect() as c:
            self.assertTrue(c.closed_by_peer())

    def test_a_connection_without_a_request_is_given_longer_than_a_head(self):
        with self.gateway.connect() as c:
            time.sleep(1.2)
            self.assertEqual(c.request("GET", "/v1/models").status, 200)


class ManyBodies(Case):
    """Bodies on their way share a bound: beyond it one is turned away, not the process ended."""

    @classmethod
    def start(cls):
        cls.fleet = Fleet(1, speed=1000)
        cls.gateway = Gateway(config=configuration(cls.fleet.urls, gateway={
            "limits": {"body": "1MiB", "bodies": "1MiB"}}))

    def begin(self, size, chunks=False):
        """A connection on which most of a request came."""
        whole = post(self.gateway, chat("large", padding="x" * size))
        head, body = whole.split(b"\r\n\r\n", 1)
        if chunks:
            head = b"\r\n".join(line for line in head.split(b"\r\n")
                               if not line.lower().startswith(b"content-length"))
            head += b"\r\ntransfer-encoding: chunked"
            body = b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body)
        connection = self.gateway.connect()
        connection.send(head + b"\r\n\r\n" + body[:-8])
        return connection, body[-8:]

    def held(self):
        return self.gateway.metrics()["signalbox_request_body_bytes"]

    def test_a_length_that_is_only_announced_takes_no_room(self):
        waiting = [self.gateway.connect() for _ in range(5)]
        for connection in waiting:
            connection.send(post(self.gateway, chat("large", padding="x" * 900_000))[:300])
        body = chat("others", padding="x" * 500_000)
        self.assertEqual(self.gateway.chat(body).status, 200)
        for connection in waiting:
            connection.close()
        wait_for("what left is given back", lambda: self.held() == 0)

    def test_a_body_beyond_all_that_may_be_held_is_refused_until_there_is_room(self):
        for chunks in (False, True):
            with self.subTest(chunks=chunks):
                [calls] = self.fleet.calls()
                first, rest = self.begin(700_000, chunks)
                with first:
                    wait_for("the body is counted", lambda: self.held() > 690_000)
                    second, _ = self.begin(600_000, chunks)
                    with second:
                        answer = second.read_answer()
                        self.assertEqual(answer.status, 503)
                        self.assertEqual(answer["retry-after"], "1")
                        self.assertEqual(answer.json()["error"]["code"], "gateway_limit")
                    self.assertEqual(self.gateway.chat(chat("small")).status, 200)
                    first.send(rest)
                    self.assertEqual(first.read_answer().status, 200)
                    wait_for("it is given back with the answer", lambda: self.held() == 0)
                third, rest = self.begin(600_000, chunks)
                with third:
                    third.send(rest)
                    self.assertEqual(third.read_answer().status, 200)
                    wait_for("it is given back as well", lambda: self.held() == 0)
                fourth, _ = self.begin(700_000, chunks)
                wait_for("the body is counted", lambda: self.held() > 690_000)
                fourth.close()
                wait_for("what left is given back", lambda: self.held() == 0)
                self.assertEqual(self.fleet.calls(), [calls + 3])
