// SPDX-License-Identifier: Apache-2.0
// The official Node SDKs, unmodified, against BASE_URL. Run by e2e/clients/run.
import assert from 'node:assert/strict';
import { createRequire } from 'node:module';
import path from 'node:path';
import test from 'node:test';
import { pathToFileURL } from 'node:url';

const { BASE_URL: base, MODEL: model, NODE_FOLDER: folder } = process.env;
const require = createRequire(path.join(folder, 'package.json'));
const load = (name) => import(pathToFileURL(require.resolve(name)));
const { default: OpenAI } = await load('openai');
const { default: Anthropic } = await load('@anthropic-ai/sdk');
const { generateText, streamText } = await load('ai');
const { createOpenAICompatible } = await load('@ai-sdk/openai-compatible');

const messages = [{ role: 'user', content: 'What is gravity? Answer in one sentence.' }];
const openai = new OpenAI({ baseURL: `${base}/v1`, apiKey: 'any', timeout: 120000 });
const anthropic = new Anthropic({ baseURL: base, apiKey: 'any', timeout: 120000 });
const compatible = createOpenAICompatible({
  name: 'signalbox', baseURL: `${base}/v1`, apiKey: 'any', includeUsage: true,
});

// The model may come to an end of its own before the limit; then it says so.
function checkEnd(tokens, limit, cut) {
  assert.ok(tokens > 0 && tokens <= limit, `${tokens} tokens of at most ${limit}`);
  if (tokens < limit) assert.ok(!cut);
}

test('openai: models and chat', async () => {
  const ids = [];
  for await (const entry of openai.models.list()) ids.push(entry.id);
  assert.ok(ids.includes(model));
  const answer = await openai.chat.completions.create({ model, messages, max_tokens: 16 });
  assert.ok(answer.choices[0].message.content);
  checkEnd(answer.usage.completion_tokens, 16, answer.choices[0].finish_reason === 'length');
});

test('openai: a stream with usage', async () => {
  const stream = await openai.chat.completions.create({
    model, messages, max_tokens: 16, stream: true, stream_options: { include_usage: true },
  });
  let text = '';
  let usage;
  let reason;
  for await (const chunk of stream) {
    text += chunk.choices[0]?.delta?.content ?? '';
    reason = chunk.choices[0]?.finish_reason ?? reason;
    usage = chunk.usage ?? usage;
  }
  assert.ok(text);
  checkEnd(usage.completion_tokens, 16, reason === 'length');
});

test('openai: responses', async () => {
  const stream = await openai.responses.create({
    model, input: 'Name a color.', max_output_tokens: 16, stream: true,
  });
  let last;
  for await (const event of stream) last = event.type;
  assert.equal(last, 'response.completed');
});

test('openai: an unknown model', async () => {
  await assert.rejects(openai.chat.completions.create({ model: 'none', messages }),
    (error) => error instanceof OpenAI.NotFoundError && error.code === 'model_not_found');
});

test('anthropic: messages, plain and streamed', async () => {
  const answer = await anthropic.messages.create({ model, max_tokens: 16, messages });
  assert.ok(answer.content[0].text);
  const stream = anthropic.messages.stream({ model, max_tokens: 16, messages });
  const final = await stream.finalMessage();
  assert.ok(final.content[0].text);
  checkEnd(final.usage.output_tokens, 16, final.stop_reason === 'max_tokens');
});

test('ai sdk: generateText and streamText', async () => {
  const answer = await generateText({
    model: compatible(model), prompt: 'Name a color.', maxOutputTokens: 12,
  });
  assert.ok(answer.text);
  const stream = streamText({
    model: compatible(model), prompt: 'Name a color.', maxOutputTokens: 12,
  });
  let text = '';
  for await (const part of stream.textStream) text += part;
  assert.ok(text);
  const usage = await stream.usage;
  assert.ok(usage.outputTokens > 0);
});
