/** Time limits of HTTP: slow clients are cut off and hold up nobody else. Source: spec, Limits A; contract 4 and 5. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { type Control, startControl } from '../support/control.ts'
import { until } from '../support/until.ts'
import { RawClient } from './raw-client.ts'

setDefaultTimeout(120_000)

let control: Control
beforeAll(async () => {
  control = await startControl()
})
afterAll(() => control.dispose())

const post = (length: number) => `POST /tasks HTTP/1.1\r\nhost: localhost\r\ncontent-length: ${length}\r\n\r\n`

/** Sends `first`, then one of `rest` every 200 ms until the connection is gone; the age it reached in milliseconds. */
async function drip(client: RawClient, first: string, rest: string): Promise<number> {
  client.send(first)
  const dripping = setInterval(() => client.send(rest), 200)
  try {
    return await client.closed
  } finally {
    clearInterval(dripping)
  }
}

/** The limit is 15 s; the service looks at its clock every few seconds. The next longer limit is 30 s. */
function expectAbout15Seconds(ageMs: number): void {
  expect(ageMs).toBeGreaterThan(10_000)
  expect(ageMs).toBeLessThan(29_000)
}

describe('read: 15 s for the whole request', () => {
  test.concurrent('a body that drips is cut off', async () => {
    using client = await RawClient.connect(control)
    expectAbout15Seconds(await drip(client, post(100_000), ' '))
    expect(client.received).not.toMatch(/^HTTP\/1\.1 2/)
  })

  test.concurrent('a chunked body that drips is cut off', async () => {
    using client = await RawClient.connect(control)
    const head = 'POST /tasks HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n'
    expectAbout15Seconds(await drip(client, head, '1\r\n \r\n'))
    expect(client.received).not.toMatch(/^HTTP\/1\.1 2/)
  })

  test.concurrent('headers that drip are cut off', async () => {
    using client = await RawClient.connect(control)
    expectAbout15Seconds(await drip(client, 'GET /health HTTP/1.1\r\n', 'x-more: 1\r\n'))
    expect(client.received).not.toMatch(/^HTTP\/1\.1 2/)
  })

  test.concurrent('a body that stops in the middle is cut off', async () => {
    using client = await RawClient.connect(control)
    client.send(`${post(1000)}{"tasks":[`)
    expectAbout15Seconds(await client.closed)
    expect(client.received).not.toMatch(/^HTTP\/1\.1 2/)
  })

  test.concurrent('a request that comes in parts within the limit is answered', async () => {
    using client = await RawClient.connect(control)
    const body = '{"tasks":[{"id":"in-parts","type":"noop"}]}'
    for (const part of (post(body.length) + body).match(/[\s\S]{1,7}/g)!) {
      client.send(part)
      await Bun.sleep(10) // parts without a pause would arrive as one
    }
    await until(
      () => client.received,
      (received) => received.startsWith('HTTP/1.1 202 '),
    )
    expect((await control.ended('in-parts')).status).toBe('success')
  })
})

describe('a stalled client holds nothing that others need', () => {
  test.concurrent('one that sends no more', async () => {
    const stalled = await Promise.all(Array.from({ length: 200 }, () => RawClient.connect(control)))
    try {
      for (const client of stalled.slice(0, 100)) client.send(`${post(1000)}{"tasks":[`)
      for (const client of stalled.slice(100)) client.send('GET /tas')
      for (let i = 0; i < 20; i++) {
        await control.submit([{ id: `beside-${i}`, type: 'noop' }])
        expect((await control.ended(`beside-${i}`)).status).toBe('success')
      }
      for (const client of stalled) expect(client.received).toBe('')
    } finally {
      for (const client of stalled) client[Symbol.dispose]()
    }
  })

  test.concurrent('one that does not read its answer', async () => {
    await using busy = await startControl()
    const message = 'x'.repeat(1000)
    await busy.submit(Array.from({ length: 20_000 }, (_, i) => ({ id: `t${i}`, type: 'noop', params: { message } })))
    await until(
      () => busy.metrics(),
      (metrics) => metrics.tasks_succeeded === 20_000,
      { patienceMs: 60_000 },
    )
    const stalled = await Promise.all(Array.from({ length: 10 }, () => RawClient.connect(busy)))
    try {
      for (const client of stalled) {
        client.pause()
        client.send('GET /tasks HTTP/1.1\r\nhost: localhost\r\n\r\n')
      }
      for (let i = 0; i < 20; i++) {
        await busy.submit([{ id: `beside-${i}`, type: 'noop' }])
        expect((await busy.ended(`beside-${i}`)).status).toBe('success')
      }
      expect(await busy.list()).toHaveLength(20_020)
      expect(await busy.stop()).toBe(0)
    } finally {
      for (const client of stalled) client[Symbol.dispose]()
    }
  })
})
