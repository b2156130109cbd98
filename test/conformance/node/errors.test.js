'use strict'
// Refusals as the client's typed errors, and how often the client tries.

const assert = require('node:assert/strict')
const test = require('node:test')
const { OpenAI, setup, admin, nano, chat } = require('./bundle.js')

async function refused(b, promise, type, want, calls = 1) {
  const before = b.calls
  const error = await promise().then(() => assert.fail('it was not refused'), (e) => e)
  assert.ok(error instanceof type, `${error.constructor.name}: ${error.message}`)
  assert.deepEqual({ status: error.status, code: error.code, param: error.param ?? null }, { param: null, ...want })
  assert.equal(b.calls - before, calls, 'requests that left')
  assert.ok(error.type && error.message, 'an error tells what is wrong')
  assert.ok(!JSON.stringify(error.error).includes(b.key), "and nobody's key")
}

const create = (b, body, options) => () => b.client.chat.completions.create(body, options)

for (const [why, headers, code] of [
  ['an unknown key', () => ({ Authorization: 'Bearer sk-unknown' }), 'invalid_api_key'],
  ['a key where nobody looks for it', (key) => ({ Authorization: null, 'x-auth-token': key }), 'missing_api_key'],
  ["a key that is no bearer's", (key) => ({ Authorization: `Basic ${key}` }), 'missing_api_key'],
  ['a wrong bearer beside a right key', (key) => ({ Authorization: 'Bearer sk-unknown', 'x-api-key': key }), 'invalid_api_key'],
]) {
  test(`401: ${why}`, async () => {
    const b = await setup()
    await refused(b, create(b, chat('fake'), { headers: headers(b.key) }), OpenAI.AuthenticationError, { status: 401, code })
  })
}

test('a key in the other headers', async () => {
  const b = await setup()
  for (const name of ['x-api-key', 'api-key', 'x-litellm-api-key']) {
    const { data, response } = await b.client.chat.completions
      .create(chat('fake'), { headers: { Authorization: null, [name]: b.key } }).withResponse()
    b.book(response, data.usage)
  }
  await b.audit()
})

test('a blocked key', async () => {
  const b = await setup()
  await admin('POST', '/key/block', { key: b.key })
  await refused(b, create(b, chat('fake')), OpenAI.AuthenticationError, { status: 401, code: 'blocked_api_key' })
})

test('403: a model that the list of the key does not name', async () => {
  const b = await setup({ models: ['fake'] })
  await refused(b, create(b, chat('house-name')), OpenAI.PermissionDeniedError, { status: 403, code: 'model_not_allowed', param: 'model' })
})

test('404: an unknown model, an unknown route', async () => {
  const b = await setup()
  await refused(b, create(b, chat('nobody-serves-this')), OpenAI.NotFoundError, { status: 404, code: 'model_not_found', param: 'model' })
  await refused(b, () => b.client.files.retrieve('file-1'), OpenAI.NotFoundError, { status: 404, code: 'unknown_route' })
})

for (const [why, change, param] of [
  ['messages of the wrong type', { messages: 'Hello!' }, 'messages'],
  ['no messages', { messages: undefined }, 'messages'],
  ['no model', { model: undefined }, 'model'],
  ['a cap that is no number', { max_tokens: 'many' }, 'max_tokens'],
  ['stream that is no boolean', { stream: 'yes' }, 'stream'],
]) {
  test(`400: ${why}`, async () => {
    const b = await setup()
    await refused(b, create(b, { ...chat('fake'), ...change }), OpenAI.BadRequestError, { status: 400, code: 'invalid_body', param })
  })
}

test("a provider's error passes, and is tried again as the client does", async () => {
  const b = await setup()
  await refused(b, create(b, chat('fake-500'), { maxRetries: 1 }), OpenAI.InternalServerError, { status: 500, code: 'fake_error' }, 2)
})

test('429: the money is spent, and the client does not try again', async () => {
  const b = await setup({ max_budget: 0.03 })
  // Its hold and its cost are 0.03 dollars exactly.
  const body = { model: 'three-cents', messages: [{ role: 'user', content: 'Hello!' }], max_tokens: 91 }
  await b.client.chat.completions.create(body)
  const want = { status: 429, code: 'budget_exceeded' }
  await refused(b, create(b, body), OpenAI.RateLimitError, want)
  await refused(b, create(b, { ...body, stream: true }), OpenAI.RateLimitError, want)
  const rows = await b.rows(1)
  assert.deepEqual(rows.map(nano), [30_000_000])
})
