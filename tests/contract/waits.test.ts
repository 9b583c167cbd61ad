/** Tasks that wait until a caller signals, or until a time. Source: docs/http.md, "Signal to a task". */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import type { TaskRecord } from '../../shared/contract/control.ts'
import { MAX_SIGNAL_BYTES, MAX_WAIT_CHARACTERS, MAX_WAIT_MESSAGE_CHARACTERS } from '../../shared/contract/signal.ts'
import { errorOf, recordOf } from '../support/answers.ts'
import { runClient } from '../support/client.ts'
import { type Control, startControl } from '../support/control.ts'
import { freePort } from '../support/free-port.ts'
import { tempDir } from '../support/temp.ts'
import { until } from '../support/until.ts'
import { Gate } from './gate.ts'

let control: Control
beforeAll(async () => {
  control = await startControl()
})
afterAll(() => control.dispose())

const HOUR_MS = 3_600_000

const wait = (id: string, params: object = {}, more: object = {}) => ({ id, type: 'wait', params, ...more })
const noop = (id: string, more: object = {}) => ({ id, type: 'noop', ...more })
const after = (...depends_on: string[]) => ({ depends_on })

/** The record once the task waits. */
const waiting = (control: Control, id: string): Promise<TaskRecord> =>
  until(
    () => control.get(id),
    ({ waiting }) => ['answer', 'delay', 'signal'].includes(waiting?.reason ?? ''),
  )

const signal = (control: Control, path: string, body?: string): Promise<Response> =>
  control.fetch(`${path}/signal`, { method: 'POST', ...(body !== undefined && { body }) })

describe('a wait for a signal', () => {
  test('holds no slot, and succeeds with the value of the signal, which others refer to', async () => {
    await using control = await startControl({ flags: ['--max-concurrency', '1'] })
    using gate = new Gate()
    await control.submit([gate.task('busy')])
    await until(() => gate.arrivals, 1)
    const value = { build: 42, by: [null, 'é'] }
    await control.submit([
      wait('built', { message: 'the image' }),
      noop('next', { ...after('built'), params: { message: { $from: 'built', path: '/result/by/1' } } }),
    ])
    const waits = await waiting(control, 'built')
    expect(waits).toMatchObject({ status: 'pending', waiting: { reason: 'signal', detail: 'the image' } })
    expect(waits.waiting!.until).toBeUndefined()
    const ended = await recordOf(await signal(control, '/tasks/built', JSON.stringify(value)))
    expect(ended).toMatchObject({ status: 'success', attempt: 1, result: value })
    expect(ended.started_at! >= waits.created_at && ended.started_at! <= ended.finished_at!).toBe(true)
    gate.open()
    expect((await control.ended('next')).result).toMatchObject({ message: 'é' })
  })

  test.each(['null', '7', '"done"', 'false', '[]', undefined])('has any JSON value as its result: %s', async (body) => {
    const id = `any-${body ?? 'none'}`
    const path = `/tasks/${encodeURIComponent(id)}`
    await control.submit([wait(id)])
    await waiting(control, id)
    const result = body === undefined ? null : JSON.parse(body)
    const record = await recordOf(await signal(control, path, body))
    expect([record.status, record.result ?? null]).toEqual(['success', result])
    // The same one again: its answer may have been lost.
    expect(await recordOf(await signal(control, path, body))).toEqual(record)
    expect(await errorOf(await signal(control, path, '{"other": true}'))).toBe(
      `409 task ${id} has ended already: success with another result`,
    )
  })

  test('is refused with the reason', async () => {
    const { graph_id } = await control.submit([
      noop('no-wait'),
      wait('first'),
      wait('behind', {}, after('first')),
      wait('clock', { until: HOUR_MS, signal: false }),
      wait('each', {}, { for_each: [1, 2] }),
      wait('gone'),
    ])
    for (const id of ['first', 'clock', 'gone']) await waiting(control, id)
    await control.fetch('/tasks/gone/cancel', { method: 'POST' })
    const cases = {
      'no-wait': '409 task no-wait is no wait: its type is os',
      behind: '409 task behind cannot be signalled yet: it depends on first',
      clock: '409 task clock waits for a time, not for a signal: submit it with signal true to end it earlier',
      each: '409 task each has for_each: signal its children one by one, such as each[0]',
      gone: '409 task gone has ended already: task cancelled',
      nowhere: '404 task not found: nowhere',
    }
    for (const [id, error] of Object.entries(cases)) {
      expect(await errorOf(await signal(control, `/tasks/${id}`))).toBe(error)
    }
    expect(await errorOf(await signal(control, '/tasks/first', '{'))).toStartWith('400 invalid JSON')
    const large = JSON.stringify('x'.repeat(MAX_SIGNAL_BYTES))
    expect((await signal(control, '/tasks/first', large)).status).toBe(413)
    await recordOf(await signal(control, '/tasks/first', JSON.stringify('x'.repeat(MAX_SIGNAL_BYTES - 2))))
    await waiting(control, 'behind')
    for (const i of [0, 1]) {
      const path = `/graphs/${graph_id}/tasks/${encodeURIComponent(`each[${i}]`)}`
      const look = async () => ((await (await control.fetch(path)).json()) as TaskRecord).waiting?.reason
      await until(look, 'signal')
      await recordOf(await signal(control, path, String(i)))
    }
    expect((await control.ended('each')).result).toEqual([0, 1])
  })

  test('is checked at submission', async () => {
    const long = 'x'.repeat(MAX_WAIT_MESSAGE_CHARACTERS + 1)
    const cases: [object, string][] = [
      [{ until: '2030-02-30T00:00:00Z' }, 'until: 2030-02-30T00:00:00Z does not exist'],
      [{ until: 'tomorrow' }, 'until: expected integer of milliseconds'],
      [{ until: -1 }, 'until: expected integer of milliseconds'],
      [{ signal: 'yes' }, 'signal: expected boolean'],
      [{ signal: false }, 'signal: nothing else would end the task (add until or http, or leave signal out)'],
      [{ message: long }, `message: expected string of at most ${MAX_WAIT_MESSAGE_CHARACTERS} characters`],
    ]
    const tasks = cases.map(([params], i) => wait(`fault-${i}`, params))
    const { warnings = [] } = await control.submit(tasks)
    for (const [i, [, error]] of cases.entries()) {
      expect(warnings[i]).toEqual({ task_id: `fault-${i}`, message: expect.stringContaining(error) })
      expect((await control.ended(`fault-${i}`)).error).toBe(warnings[i]!.message)
    }
    const unknown = await control.post({ tasks: [wait('w', { untill: 1 })] })
    expect(await errorOf(unknown)).toBe('400 unknown parameter "untill" of wait in task w (did you mean "until"?)')
    const cached = await control.post({ tasks: [wait('w', {}, { cache: { key: 'k' } })] })
    expect(await errorOf(cached)).toContain('task w: cache is not for waits: each has its own end')
  })

  test('fails after its timeout, and ends by a cancel', async () => {
    await control.submit([
      wait('late', {}, { timeout: 20, retry: 3 }),
      noop('tell', { ...after('late'), run_if: 'failed' }),
    ])
    expect(await control.ended('late')).toMatchObject({
      ...{ status: 'failed', attempt: 1, error: 'task timed out after 20ms: what it waits for did not come' },
      runtime: { error: { code: 'timeout' } },
    })
    expect((await control.ended('tell')).status).toBe('success')
    await control.submit([wait('stopped')])
    await waiting(control, 'stopped')
    await control.fetch('/tasks/stopped/cancel', { method: 'POST' })
    expect((await control.ended('stopped')).status).toBe('cancelled')
  })
})

describe('a wait for a time', () => {
  test('succeeds with null once the delay after its dependencies is over', async () => {
    await control.submit([
      wait('short', { until: 30 }),
      wait('past', { until: '2001-02-03T04:05:06Z' }),
      wait('now', { until: 0 }),
    ])
    for (const id of ['short', 'past', 'now']) {
      const { status, result, started_at, finished_at } = await control.ended(id)
      expect([status, result ?? null]).toEqual(['success', null])
      if (id === 'short') expect(Date.parse(finished_at!) - Date.parse(started_at!)).toBeGreaterThanOrEqual(30)
    }
  })

  test('tells when that is, and may take a signal too', async () => {
    const time = '2099-12-31T23:59:59.000Z'
    await control.submit([wait('day', { until: time }), wait('either', { until: HOUR_MS, signal: true })])
    expect((await waiting(control, 'day')).waiting).toEqual({ reason: 'delay', until: time })
    const { waiting: why } = await waiting(control, 'either')
    expect(why!.reason).toBe('signal')
    expect(Date.parse(why!.until!)).toBeGreaterThan(Date.now())
    expect((await recordOf(await signal(control, '/tasks/either', '1'))).result).toBe(1)
  })
})

test('a graph with ids of its own is signalled below the graph, and by the client', async () => {
  const answer = await control.post({ scope: 'graph', tasks: [wait('a'), wait('b')] })
  const { graph_id } = (await answer.json()) as { graph_id: string }
  const path = `/graphs/${graph_id}/tasks`
  await until(async () => ((await (await control.fetch(`${path}/b`)).json()) as TaskRecord).waiting?.reason, 'signal')
  expect((await recordOf(await signal(control, `${path}/a`, '"x"'))).result).toBe('x')
  const client = (...args: string[]) => runClient(['signal', `${graph_id}/b`, ...args], { url: control.url })
  const wrong = await client('--value', 'done')
  expect(wrong.envelope).toMatchObject({
    ok: false,
    error: { message: expect.stringContaining('--value: expected JSON') },
  })
  const { exitCode, envelope } = await client('--value', '{"ok": true}')
  expect([exitCode, envelope]).toMatchObject([0, { ok: true, data: { status: 'success', result: { ok: true } } }])
})

test('waits go on over a kill, with the same times; a signal that was acknowledged is kept', async () => {
  using dir = tempDir()
  const options = { dataDir: join(dir.path, 'data'), flags: ['--persist-interval', '1h'] }
  let before: TaskRecord[]
  let soon: string
  {
    await using control = await startControl(options)
    await control.submit([
      noop('plan', { params: { message: 'the build' } }),
      wait('signalled'),
      wait('open', { message: { $from: 'plan', path: '/result/message' } }, { ...after('plan'), timeout: HOUR_MS }),
      wait('clock', { until: HOUR_MS }),
      wait('soon', { until: 1_000 }),
    ])
    before = await Promise.all(['open', 'clock'].map((id) => waiting(control, id)))
    await waiting(control, 'signalled')
    soon = (await control.get('soon')).waiting?.until ?? new Date().toISOString()
    expect((await signal(control, '/tasks/signalled', '{"n": 1}')).status).toBe(200)
    control.process.kill('SIGKILL')
    await control.process.exited
  }
  await until(
    () => Date.now(),
    (now) => now > Date.parse(soon),
  )
  await using control = await startControl(options)
  expect(await control.get('signalled')).toMatchObject({ status: 'success', result: { n: 1 } })
  expect(await Promise.all(['open', 'clock'].map((id) => waiting(control, id)))).toEqual(before)
  expect((await control.ended('soon')).status).toBe('success')
  expect((await recordOf(await signal(control, '/tasks/open', '2'))).result).toBe(2)
})

describe('a wait for an answer', () => {
  /** A service whose answer changes. */
  const world = () => {
    const seen: string[] = []
    const state = { status: 503, body: 'starting' }
    const server = Bun.serve({
      port: 0,
      hostname: '127.0.0.1',
      async fetch(request) {
        seen.push(`${request.method} ${new URL(request.url).pathname} ${await request.text()}`)
        return new Response(state.body, { status: state.status })
      },
    })
    return {
      seen,
      state,
      url: `http://127.0.0.1:${server.port}/build/42`,
      [Symbol.asyncDispose]: () => server.stop(true),
    }
  }
  const often = { backoff: { initial_ms: 5, factor: 1 } }

  test('looks until its status is below 400, holds no slot, and has the answer as its result', async () => {
    await using control = await startControl({ flags: ['--max-concurrency', '1'] })
    await using there = world()
    using gate = new Gate()
    await control.submit([gate.task('busy')])
    await until(() => gate.arrivals, 1)
    await control.submit([
      wait('up', { message: 'the build', http: { url: there.url } }, often),
      noop('next', { ...after('up'), params: { message: { $from: 'up', path: '/result/body' } } }),
    ])
    await until(
      () => there.seen.length,
      (looks) => looks >= 3,
    )
    const { status, waiting: why } = await until(
      () => control.get('up'),
      ({ waiting }) => waiting?.detail !== 'the build',
    )
    expect([status, why]).toEqual(['pending', { reason: 'answer', detail: 'the build: http status 503' }])
    expect(await errorOf(await signal(control, '/tasks/up'))).toBe(
      '409 task up waits for an answer, not for a signal: submit it with signal true to end it earlier',
    )
    Object.assign(there.state, { status: 200, body: 'ready' })
    const ended = await control.ended('up')
    expect(ended).toMatchObject({ status: 'success', attempt: 1, result: { status_code: 200, body: 'ready' } })
    expect(new Set(there.seen)).toEqual(new Set(['GET /build/42 ']))
    gate.open()
    expect((await control.ended('next')).result).toMatchObject({ message: 'ready' })
  })

  test('looks until a value of the answer is as expected', async () => {
    await using there = world()
    const http = { url: there.url, method: 'POST', body: '{"ask": 1}' }
    await control.submit([
      wait('done', { http, expect: { path: '/json/state', equals: 'done' } }, often),
      wait('gone', { http: { url: there.url }, expect: { in: [404, 410] } }, often),
      wait('text', { http: { url: there.url }, expect: { path: '/body', matches: '*done*' } }, often),
    ])
    await until(
      () => control.get('done'),
      ({ waiting }) => waiting?.detail === 'the answer has no /json/state',
    )
    Object.assign(there.state, { status: 404, body: '{"state": "building"}' })
    expect((await control.ended('gone')).result).toMatchObject({ status_code: 404 })
    await until(
      () => control.get('done'),
      ({ waiting }) => waiting?.detail === '/json/state is "building"',
    )
    there.state.body = '{"state": "done"}'
    for (const id of ['done', 'text'])
      expect((await control.ended(id)).result).toMatchObject({ body: there.state.body })
    expect(there.seen).toContain('POST /build/42 {"ask": 1}')
  })

  test('goes on while nobody answers, and over a kill; a signal, a time or a cancel ends it as well', async () => {
    using dir = tempDir()
    const options = { dataDir: join(dir.path, 'data') }
    await using there = world()
    const http = { url: there.url }
    const nobody = { url: `http://127.0.0.1:${await freePort()}/` }
    {
      await using control = await startControl(options)
      await control.submit([
        wait('open', { http }, often),
        wait('told', { http, signal: true }, often),
        wait('late', { http, until: 50 }, often),
        wait('stopped', { http }, often),
        wait('timed', { http }, { ...often, timeout: 50 }),
        wait('alone', { http: nobody }, often),
      ])
      await waiting(control, 'told')
      expect((await recordOf(await signal(control, '/tasks/told', '1'))).result).toBe(1)
      expect((await control.ended('late')).status).toBe('success')
      expect((await control.ended('timed')).error).toBe('task timed out after 50ms: what it waits for did not come')
      await control.fetch('/tasks/stopped/cancel', { method: 'POST' })
      expect((await control.ended('stopped')).status).toBe('cancelled')
      await until(
        () => control.get('alone'),
        ({ waiting }) => /refused|connect/i.test(waiting?.detail ?? ''),
      )
      control.process.kill('SIGKILL')
      await control.process.exited
    }
    await using control = await startControl(options)
    there.state.status = 204
    there.state.body = ''
    expect((await control.ended('open')).result).toMatchObject({ status_code: 204 })
  })

  test('fails at once if it can never come', async () => {
    await using control = await startControl({ flags: ['--http-policy', 'public'] })
    await using there = world()
    const url = there.url
    const cases: [object, string][] = [
      [{ http: { url } }, 'denied'],
      [{ http: { url: 'ftp://example.org' } }, 'invalid_input'],
      [{ http: { url, save_to: 'x' } }, 'invalid_input'],
      [{ http: { url }, expect: {} }, 'invalid_input'],
      [{ http: { url }, expect: { path: 'state', equals: 1 } }, 'invalid_input'],
      [{ http: { url, body: 'x'.repeat(MAX_WAIT_CHARACTERS), method: 'POST' } }, 'invalid_input'],
      [{ expect: { equals: 200 } }, 'invalid_input'],
    ]
    const { warnings = [] } = await control.submit(cases.map(([params], i) => wait(`never-${i}`, params)))
    for (const [i, [, code]] of cases.entries()) {
      const { error, runtime } = await control.ended(`never-${i}`)
      expect([i, runtime?.error?.code, error]).toEqual([i, code, warnings[i]!.message])
    }
    expect(there.seen).toEqual([])
  })
})
