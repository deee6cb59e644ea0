// SPDX-License-Identifier: Apache-2.0
// The Node package, told by lines what to do: see Bindings/README.md.

import readline from 'node:readline'
import { Center } from '../../node/index.js'

const KINDS = { invalidName: 'invalid', noBus: 'nobus', queueFull: 'full' }
const say = (...words) => process.stdout.write(words.join(' ') + '\n')
const center = new Center()
const observers = new Map()
let mayTake = Promise.resolve()
let takeAgain = () => {}

center.on('connected', () => say('connected'))
center.on('disconnected', () => say('disconnected'))
center.on('statechange', (state) => say('state', state))

function nameOf(word) {
  const bytes = Buffer.from(word.slice(1), 'hex')
  const star = word[0] === 'p' ? '*' : ''
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes) + star
  } catch {
    return '\ud800' + star // Bytes that aren't UTF-8 are no string either; this comes closest.
  }
}

async function consume(key, observation) {
  const names = observation[Symbol.asyncIterator]()
  for (;;) {
    await mayTake
    const { done, value } = await names.next()
    if (done) return
    say('heard', key, 'n' + Buffer.from(value).toString('hex'))
  }
}

const verbs = {
  async observe(key, ...words) {
    const observation = await center.observe(words.map(nameOf))
    observers.set(key, observation)
    consume(key, observation)
  },
  async cancel(key) { observers.get(key).cancel() },
  async post(word) { await center.post(nameOf(word)) },
  async many(count, word) {
    const name = nameOf(word)
    for (let left = Number(count); left > 0; left--) center.postSoon(name)
    await center.flush()
  },
  async slow() { mayTake = new Promise((fulfill) => { takeAgain = fulfill }) },
  async fast() { takeAgain() },
  async report(state) { await center.report(state) }
}

for await (const line of readline.createInterface({ input: process.stdin })) {
  const [verb, ...words] = line.split(' ')
  try {
    await verbs[verb](...words)
    say('done')
  } catch (error) {
    process.stderr.write(`${line}: ${error.stack}\n`)
    say('failed', KINDS[error.code] ?? 'failed')
  }
}
await center.close()
