# SPDX-License-Identifier: Apache-2.0
"""The official Python SDKs, unmodified, against BASE_URL. Run by e2e/clients/run."""
import asyncio
import os
import unittest

import anthropic
import openai
from langchain_openai import ChatOpenAI

BASE, MODEL = os.environ["BASE_URL"], os.environ["MODEL"]
HELLO = [{"role": "user", "content": "What is gravity? Answer in one sentence."}]


class OpenAi(unittest.TestCase):
    client = openai.OpenAI(base_url=BASE + "/v1", api_key="any", timeout=120)

    def test_models(self):
        self.assertIn(MODEL, [m.id for m in self.client.models.list()])
        self.assertEqual(self.client.models.retrieve(MODEL).id, MODEL)

    def test_chat(self):
        answer = self.client.chat.completions.create(model=MODEL, messages=HELLO, max_tokens=24,
                                                     temperature=0)
        self.assertTrue(answer.choices[0].message.content)
        self.assertEqual(answer.usage.completion_tokens, 24)
        self.assertTrue(answer._request_id)

    def test_chat_stream_with_usage(self):
        text, usage, finish = "", None, None
        for chunk in self.client.chat.completions.create(
                model=MODEL, messages=HELLO, max_tokens=24, temperature=0, stream=True,
                stream_options={"include_usage": True}):
            usage = chunk.usage or usage
            for choice in chunk.choices:
                text += choice.delta.content or ""
                finish = choice.finish_reason or finish
        self.assertTrue(text)
        self.assertEqual((usage.completion_tokens, finish), (24, "length"))

    def test_completions(self):
        answer = self.client.completions.create(model=MODEL, prompt="One, two,", max_tokens=6)
        self.assertTrue(answer.choices[0].text)

    def test_responses(self):
        answer = self.client.responses.create(model=MODEL, input="Name a color.",
                                              max_output_tokens=16)
        self.assertTrue(answer.output_text)
        events = [e.type for e in self.client.responses.create(
            model=MODEL, input="Name a color.", max_output_tokens=16, stream=True)]
        self.assertEqual(events[-1], "response.completed")

    def test_errors_are_the_sdks_own_classes(self):
        with self.assertRaises(openai.NotFoundError) as caught:
            self.client.chat.completions.create(model="none", messages=HELLO)
        self.assertEqual(caught.exception.code, "model_not_found")
        with self.assertRaises(openai.BadRequestError):
            self.client.chat.completions.create(model=MODEL, messages=HELLO, n=1000)

    def test_a_stream_that_is_left(self):
        stream = self.client.chat.completions.create(model=MODEL, messages=HELLO, stream=True,
                                                     max_tokens=400)
        next(iter(stream))
        stream.close()

    def test_eight_at_once(self):
        async def all_of_them():
            async with openai.AsyncOpenAI(base_url=BASE + "/v1", api_key="any",
                                          timeout=120) as client:
                return await asyncio.gather(*(client.chat.completions.create(
                    model=MODEL, max_tokens=8, messages=[{"role": "user", "content": f"Say {i}"}])
                    for i in range(8)))
        self.assertEqual(len(asyncio.run(all_of_them())), 8)


class Anthropic(unittest.TestCase):
    client = anthropic.Anthropic(base_url=BASE, api_key="any", timeout=120)

    def test_messages(self):
        answer = self.client.messages.create(model=MODEL, max_tokens=16, messages=HELLO)
        self.assertTrue(answer.content[0].text)
        self.assertGreater(answer.usage.input_tokens, 0)

    def test_messages_stream(self):
        with self.client.messages.stream(model=MODEL, max_tokens=16, messages=HELLO) as stream:
            text = "".join(stream.text_stream)
            final = stream.get_final_message()
        self.assertTrue(text)
        self.assertEqual(final.content[0].text, text)
        self.assertEqual(final.stop_reason == "max_tokens", final.usage.output_tokens == 16)

    def test_count_tokens(self):
        counted = self.client.messages.count_tokens(model=MODEL, messages=HELLO)
        self.assertGreater(counted.input_tokens, 5)

    def test_errors_are_the_sdks_own_classes(self):
        with self.assertRaises(anthropic.NotFoundError):
            self.client.messages.create(model="none", max_tokens=16, messages=HELLO)


class LangChain(unittest.TestCase):
    model = ChatOpenAI(base_url=BASE + "/v1", api_key="any", model=MODEL, max_tokens=12,
                       temperature=0, stream_usage=True, timeout=120)

    def test_invoke(self):
        answer = self.model.invoke("Name a color.")
        self.assertTrue(answer.content)
        self.assertEqual(answer.usage_metadata["output_tokens"] > 0, True)

    def test_stream(self):
        chunks = list(self.model.stream("Name a color."))
        self.assertTrue("".join(c.content for c in chunks))
        self.assertTrue(any(c.usage_metadata for c in chunks))


if __name__ == "__main__":
    unittest.main(verbosity=2)
