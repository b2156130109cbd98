'use strict'
// What the tests share: a key of its own for each test, a client with it, and the
// ledger's view of what that client did.

const assert = require('node:assert/strict')

// Which of the installed releases is tested; found through NODE_PATH.
const OpenAI = require(process.env.OPENAI_PACKAGE || 'openai')

const env = {
  base: process.env.CONFORMANCE_BASE_URL,
  admin: process.env.CONFORMANCE_ADMIN_URL,
  adminKey: process.env.CONFORMANCE_ADMIN_KEY,
  fake: process.env.CONFORMANCE_FAKE_URL,
  play: process.env.CONFORMANCE_PLAY_URL,
}

const patience = 30_000 // ms; bounds everything that is waited for
const fakeInput = 2_000 // nano-dollars per token of the stack's models
const fakeOutput = 8_000

class Bundle {
  constructor(key) {
    this.key = key
    this.calls = 0 // what really left, retries included
    this.sent = undefined // the last body
    this.told = new Map() // what the client was told, by request id
    this.client = this.clientWith({})
  }

  clientWith(options) {
    const counting = (url, init) => {
      this.calls++
      this.sent = init.body
      return fetch(url, init)
    }
    return new OpenAI({ apiKey: this.key, baseURL: env.base, fetch: counting, ...options })
  }

  // book notes what the ledger has to show for an answer.
  book(response, usage) {
    const id = response.headers.get('x-penstock-request-id')
    assert.ok(id, 'an answer without a request id')
    this.told.set(id, { input: usage.prompt_tokens, output: usage.completion_tokens, status: 'success' })
    return id
  }

  // rows waits until the key has n records, and returns all.
  async rows(n) {
    for (const deadline = Date.now() + patience; ;) {
      const rows = await admin('GET', `/spend/logs?api_key=${encodeURIComponent(this.key)}`)
      if (rows.length >= n) return rows
      assert.ok(Date.now() < deadline, `there are ${rows.length} records of ${n}`)
      await new Promise((resolve) => setTimeout(resolve, 50))
    }
  }

  // audit compares /spend/logs with what the client was told: the same requests, the
  // same tokens, and their price.
  async audit() {
    const rows = await this.rows(this.told.size)
    const seen = new Map(rows.map((r) => [r.request_id, { input: r.prompt_tokens, output: r.completion_tokens, status: r.status }]))
    assert.deepEqual(seen, this.told)
    assert.equal(rows.length, this.told.size)
    for (const row of rows) assert.deepEqual([nano(row), row.estimated], [price(row), false])
  }
}

const nano = (row) => Math.round(row.spend * 1e9)
const price = (row) => row.prompt_tokens * fakeInput + row.completion_tokens * fakeOutput

// admin calls the admin API.
async function admin(method, path, body) {
  const response = await fetch(env.admin + path, {
    method,
    headers: { authorization: `Bearer ${env.adminKey}`, 'content-type': 'application/json' },
    body: body && JSON.stringify(body),
  })
  const text = await response.text()
  assert.equal(response.status, 200, `${path} answers ${text}`)
  return JSON.parse(text)
}

// setup makes a key with the given fields of /key/generate.
async function setup(fields = {}) {
  const made = await admin('POST', '/key/generate', fields)
  return new Bundle(made.key)
}

const read = async (url) => {
  const response = await fetch(url)
  assert.equal(response.status, 200, url)
  return response.text()
}

// played is an answer as it was recorded; received is a body as the provider got it.
const played = (file) => read(`${env.play}/answers/${file}`)
const received = (id) => read(`${env.play}/received/${id}`)

// fakeRow is a request as the fake upstream saw it.
async function fakeRow(id) {
  const rows = (await read(`${env.fake}/ledger`)).trim().split('\n').map((line) => JSON.parse(line))
  return rows.find((row) => row.request_id === id)
}

const chat = (model) => ({ model, messages: [{ role: 'user', content: 'How are you?' }] })

module.exports = { OpenAI, setup, admin, played, received, fakeRow, nano, price, chat }
