'use strict'
// Streams: deltas, usage, tool calls, and a client that leaves.

const assert = require('node:assert/strict')
const test = require('node:test')
const { OpenAI, setup, played, fakeRow, nano, price, chat } = require('./bundle.js')

// collect reads all of a stream.
async function collect(b, body) {
  const { data, response } = await b.client.chat.completions.create({ ...body, stream: true }).withResponse()
  const got = { response, content: '', calls: [], usages: [], chunks: 0 }
  for await (const chunk of data) {
    got.chunks++
    got.model = chunk.model
    if (chunk.usage) got.usages.push(chunk.usage)
    for (const choice of chunk.choices) {
      got.content += choice.delta.content ?? ''
      got.finish = choice.finish_reason ?? got.finish
      for (const part of choice.delta.tool_calls ?? []) {
        const call = (got.calls[part.index] ??= { id: part.id, type: part.type, function: { name: part.function.name, arguments: '' } })
        call.function.arguments += part.function.arguments
      }
    }
  }
  return got
}

for (const [why, options, asked] of [
  ['usage asked for', { stream_options: { include_usage: true } }, true],
  ['usage refused', { stream_options: { include_usage: false } }, false],
  ['usage not mentioned', {}, false],
]) {
  test(`a stream: ${why}`, async () => {
    const b = await setup({ max_budget: 1 })
    const { data: whole, response } = await b.client.chat.completions.create(chat('house-name')).withResponse()
    b.book(response, whole.usage)
    const got = await collect(b, { ...chat('house-name'), ...options })
    assert.equal(got.content, whole.choices[0].message.content)
    assert.deepEqual([got.finish, got.model], ['stop', 'fake-renamed'])
    assert.deepEqual(got.usages, asked ? [whole.usage] : [])
    assert.equal(got.response.headers.get('x-penstock-response-cost'), null, 'it is not known yet')
    b.book(got.response, whole.usage)
    await b.audit()
  })
}

test('a long stream', async () => {
  const b = await setup({ max_budget: 1 })
  const got = await collect(b, { ...chat('fake-out-3000'), stream_options: { include_usage: true } })
  assert.equal(got.content.trim().split(' ').length, 3000)
  assert.equal(got.chunks, 3003) // role, deltas, finish, usage
  b.book(got.response, got.usages[0])
  await b.audit()
})

for (const name of ['tools', 'unicode']) {
  test(`recorded ${name}: the deltas give the whole answer`, async () => {
    const b = await setup()
    const whole = JSON.parse(await played(`${name}.json`))
    const got = await collect(b, chat(`played-${name}`))
    const { message, finish_reason } = whole.choices[0]
    assert.equal(got.content, message.content ?? '')
    assert.deepEqual(got.calls, message.tool_calls ?? [])
    assert.equal(got.finish, finish_reason)
    assert.deepEqual(got.usages, [])
    b.book(got.response, whole.usage)
    await b.audit()
  })
}

test("the client's own collector of streams", async () => {
  const b = await setup()
  const whole = JSON.parse(await played('tools.json'))
  const runner = b.client.chat.completions.stream({ ...chat('played-tools'), stream_options: { include_usage: true } })
  const got = await runner.finalChatCompletion()
  const calls = got.choices[0].message.tool_calls.map(({ id, type, function: f }) => ({ id, type, function: { name: f.name, arguments: f.arguments } }))
  assert.deepEqual(calls, whole.choices[0].message.tool_calls)
  const [row] = await b.rows(1)
  const { prompt_tokens, completion_tokens } = await runner.totalUsage()
  assert.deepEqual([row.prompt_tokens, row.completion_tokens], [prompt_tokens, completion_tokens])
})

test('a stream that the provider breaks off is an error, never a short answer', async () => {
  const b = await setup({ max_budget: 1 })
  const { data, response } = await b.client.chat.completions.create({ ...chat('fake-reset-mid-out-20'), stream: true }).withResponse()
  let deltas = 0
  await assert.rejects(async () => {
    for await (const chunk of data) if (chunk.choices[0].delta.content) deltas++
  }, (error) => error instanceof OpenAI.APIError && error.code === 'upstream_error')
  assert.equal(deltas, 10)
  const [row] = await b.rows(1)
  assert.equal(row.request_id, response.headers.get('x-penstock-request-id'))
  assert.deepEqual([row.status, row.completion_tokens, row.estimated, nano(row)], ['upstream_aborted', deltas, true, price(row)])
})

for (const [why, leave] of [
  ['AbortController', (stream) => stream.controller.abort()],
  ['leaving the loop', () => 'break'],
]) {
  test(`a client that leaves by ${why} pays for what it got`, async () => {
    const b = await setup({ max_budget: 1 })
    const body = { ...chat('fake-out-1000-pace-20ms'), stream: true }
    const { data, response } = await b.client.chat.completions.create(body).withResponse()
    let deltas = 0
    try {
      for await (const chunk of data) {
        if (!chunk.choices[0].delta.content) continue
        if (++deltas === 3 && leave(data) === 'break') break
      }
    } catch (error) {
      assert.ok(error instanceof OpenAI.APIUserAbortError, error)
    }
    const [row] = await b.rows(1)
    assert.equal(row.request_id, response.headers.get('x-penstock-request-id'))
    assert.deepEqual([row.status, row.estimated, nano(row)], ['client_closed', true, price(row)])
    assert.ok(row.completion_tokens >= deltas && row.completion_tokens < 1000, `${row.completion_tokens} tokens`)
    const seen = await fakeRow(row.request_id)
    assert.ok(!seen.complete && seen.sent_tokens >= row.completion_tokens && seen.sent_tokens < 1000, JSON.stringify(seen))
  })
}
