// SPDX-License-Identifier: Apache-2.0
// What waits for a center is settled when the center is closed.

import { Center } from 'notifybus'

const patience = 60_000

for (let turns = 0; turns < 8; turns++) {
  const center = new Center()
  await center.observe('com.example.first')
  // They begin while it waits for the bus.
  const closing = center.close()
  for (let turn = 0; turn < turns; turn++) await null
  const waits = [
    center.next('com.example.a'),
    center.observe('com.example.b'),
    (async () => { for await (const name of await center.observe('com.example.c')) console.log(name) })()
  ]
  const settled = Promise.allSettled(waits)
  await closing
  let timer
  const late = new Promise((fulfill) => { timer = setTimeout(fulfill, patience) })
  const outcomes = await Promise.race([settled, late])
  clearTimeout(timer)
  if (!outcomes) throw new Error('a promise waits for a closed center')
  for (const { reason } of outcomes) if (reason && reason.code !== 'closed') throw reason
}
