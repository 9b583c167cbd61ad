/**
 * Time limits of HTTP at the runtime: slow clients are cut off and hold up nobody, long waits are not cut.
 * Source: contract 4 (Timeouts against slow clients) and 5 (Time limits of HTTP).
 */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import type { TaskStatusResponse } from '../../shared/contract/runtime.ts'
import type { Control } from '../support/control.ts'
import { type Runtime, startRuntime } from '../support/runtime.ts'
import { SLEEP, script } from '../support/runtime-tasks.ts'
import { until } from '../support/until.ts'
import { RawClient } from './raw-client.ts'

let runtime: Runtime
beforeAll(async () => {
  runtime = await startRuntime({ flags: ['--max-running-tasks', '16'] })
})
afterAll(() => runtime.dispose())

const connect = () => RawClient.connect({ url: runtime.url } as Control)
const post = (length: number) => `POST /api/v1/tasks HTTP/1.1\r\nhost: localhost\r\ncontent-length: ${length}\r\n\r\n`

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

describe('read: 15 s for the whole request, dripping included', () => {
  test.concurrent('a body that drips is cut off', async () => {
    using client = await connect()
    expectAbout15Seconds(await drip(client, post(100_000), ' '))
    expect(client.received).not.toMatch(/^HTTP\/1\.1 2/)
  })

  test.concurrent('a chunked body that drips is cut off', async () => {
    using client = await connect()
    const head = 'POST /api/v1/tasks HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n'
    expectAbout15Seconds(await drip(client, head, '1\r\n \r\n'))
    expect(client.received).not.toMatch(/^HTTP\/1\.1 2/)
  })

  test.concurrent('headers that drip are cut off', async () => {
    using client = await connect()
    expectAbout15Seconds(await drip(client, 'GET /healthz HTTP/1.1\r\n', 'x-more: 1\r\n'))
    expect(client.received).not.toMatch(/^HTTP\/1\.1 2/)
  })

  test.concurrent('a request that comes in parts within the limit is answered', async () => {
    using client = await connect()
    const body = JSON.stringify({ task_id: 'in-parts', ...script('true') })
    for (const part of (post(body.length) + body).match(/[\s\S]{1,7}/g)!) {
      client.send(part)
      await Bun.sleep(10) // parts without a pause would arrive as one
    }
    await until(
      () => client.received,
      (received) => received.startsWith('HTTP/1.1 200 '),
    )
    expect((await runtime.ended('in-parts')).status).toBe('success')
  })
})

describe('long-poll and log streams have limits of their own', () => {
  test.concurrent('a wait of 35 s on a task that goes on is answered after 35 s', async () => {
    const id = await runtime.submit(SLEEP)
    const start = performance.now()
    const task = await runtime.json<TaskStatusResponse>(`/api/v1/tasks/${id}?wait_ms=35000`)
    expect(task.status).toBe('running')
    expect(performance.now() - start).toBeGreaterThanOrEqual(34_900)
    await runtime.kill(id)
  })

  test.concurrent('a follower of a task that is silent for 35 s hears what comes then', async () => {
    const id = await runtime.script('echo on; sleep 35; echo off')
    const response = await runtime.fetch(`/api/v1/tasks/${id}/logs?stream=stdout&follow=true`)
    expect(await response.text()).toBe('on\noff\n')
  })
})

describe('a stalled client holds nothing that others need', () => {
  test.concurrent('200 that send no more', async () => {
    const stalled = await Promise.all(Array.from({ length: 200 }, connect))
    try {
      for (const client of stalled.slice(0, 100)) client.send(`${post(1000)}{"execution":`)
      for (const client of stalled.slice(100)) client.send('GET /api/v1/ta')
      for (let i = 0; i < 10; i++) expect((await runtime.runScript('echo x')).stdout).toBe('x\n')
      for (const client of stalled) expect(client.received).toBe('')
    } finally {
      for (const client of stalled) client[Symbol.dispose]()
    }
  })

  test.concurrent('some that do not read what they asked for', async () => {
    const { task_id } = await runtime.runScript('seq 1 1000000')
    const stalled = await Promise.all(Array.from({ length: 20 }, connect))
    try {
      for (const [i, client] of stalled.entries()) {
        client.pause()
        const path = i % 2 === 0 ? task_id : `${task_id}/logs?stream=stdout`
        client.send(`GET /api/v1/tasks/${path} HTTP/1.1\r\nhost: localhost\r\n\r\n`)
      }
      for (let i = 0; i < 10; i++) expect((await runtime.runScript('echo x')).stdout).toBe('x\n')
    } finally {
      for (const client of stalled) client[Symbol.dispose]()
    }
  })

  test.concurrent('500 that wait for a task, and all are answered', async () => {
    const id = await runtime.submit(SLEEP)
    // Not by `fetch`, which has no more than 256 requests under way.
    const waiting = await Promise.all(Array.from({ length: 500 }, connect))
    try {
      const head = `GET /api/v1/tasks/${id}?wait_ms=60000 HTTP/1.1\r\nhost: localhost\r\n\r\n`
      for (const client of waiting) client.send(head)
      expect((await runtime.runScript('echo x')).stdout).toBe('x\n')
      await runtime.kill(id)
      await until(() => waiting.filter(({ received }) => received.includes('"status":"cancelled"')).length, 500)
    } finally {
      for (const client of waiting) client[Symbol.dispose]()
    }
  })
})
