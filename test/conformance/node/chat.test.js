'use strict'
// Whole answers, the model list, and what was recorded, byte for byte.

const assert = require('node:assert/strict')
const test = require('node:test')
const { setup, played, received, chat } = require('./bundle.js')

for (const [why, model, echoed] of [
  ['a model by its own name', 'fake', 'fake'],
  ["the provider's name for a model comes back, not ours", 'house-name', 'fake-renamed'],
  ["a wildcard's model", 'fake-out-5', 'fake-out-5'],
]) {
  test(`a whole answer: ${why}`, async () => {
    const b = await setup({ max_budget: 1 })
    const { data, response } = await b.client.chat.completions.create(chat(model)).withResponse()
    b.book(response, data.usage)
    assert.match(data.id, /^chatcmpl-/)
    assert.equal(data.model, echoed)
    assert.equal(data.choices[0].finish_reason, 'stop')
    const words = data.choices[0].message.content.trim().split(' ').length
    assert.equal(data.usage.completion_tokens, words)
    assert.ok(data.usage.prompt_tokens > 0)
    assert.equal(data.usage.total_tokens, data.usage.prompt_tokens + words)
    assert.ok(response.headers.get('x-penstock-response-cost'))
    assert.ok(response.headers.get('x-penstock-output-cap'), 'the client gave no cap')
    await b.audit()
    const [row] = await b.rows(1)
    assert.deepEqual([row.upstream_id, row.stream], [data.id, false])
  })
}

test('models are those that the key may use', async () => {
  const b = await setup({ models: ['fake', 'house-name'] })
  const ids = []
  for await (const model of b.client.models.list()) ids.push(model.id)
  assert.deepEqual(ids.sort(), ['fake', 'house-name'])
})

const tools = [{
  type: 'function',
  function: { name: 'weather', description: 'Wetter in °C', parameters: { type: 'object', properties: { city: { type: 'string' } } } },
}]

for (const name of ['tools', 'unicode']) {
  test(`recorded ${name}: bytes pass unchanged in both directions`, async () => {
    const b = await setup()
    const body = { ...chat(`played-${name}`), tools, x_vendor: { weight: 1.5, text: 'Grüße aus 東京 👩‍👩‍👧‍👦 \u2028 <&> \u0007' } }
    const response = await b.client.chat.completions.create(body).asResponse()
    const text = await response.text()
    assert.equal(text, await played(`${name}.json`))
    const id = b.book(response, JSON.parse(text).usage)
    assert.equal(await received(id), b.sent)

    const streaming = { ...body, stream: true, stream_options: { include_usage: true } }
    const stream = await b.client.chat.completions.create(streaming).asResponse()
    assert.equal(await stream.text(), await played(`${name}.sse`))
    const streamID = b.book(stream, JSON.parse(text).usage)
    assert.equal(await received(streamID), b.sent)
    await b.audit()
  })
}
