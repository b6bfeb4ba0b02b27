# SPDX-License-Identifier: Apache-2.0
"""What clients of a healthy fleet get: every API, plain and streamed, byte for byte.

The emulated engines know every byte of their answers (/emulator/expect), so each test compares
what came through the gateway with what an engine must have said.
"""
import json

from world import CHAT, Case, Fleet, Gateway, chat


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

    def test_a_streamed_chat_has_every_token_and_one_end(self):
        body = chat("Count to ten.", stream=True, max_tokens=40)
        answer = self.gateway.chat(body)
        self.assertEqual((answer.status, answer.end), (200, "chunked"), answer)
        self.assertTrue(answer["content-type"].startswith("text/event-stream"))
        self.assertEqual(answer.deltas(), self.fleet.expect(body)["text"])
        self.assertEqual(answer.events()[-1], "[DONE]")
        self.assertEqual(answer.text.count("[DONE]"), 1)
        self.assertIsNone(answer.usage(), "usage that the client did not ask for")

    def test_usage_reaches_the_client_that_asks_for_it(self):
        body = chat("Use it.", stream=True, stream_options={"include_usage": True})
        answer = self.gateway.chat(body)
        self.assertEqual(answer.usage()["completion_tokens"], self.fleet.expect(body)["tokens"])
