/** Tasks that wait until somebody approves or rejects them. Source: docs/http.md, "Approve or reject a task". */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import {
  ApprovalResult,
  MAX_APPROVAL_ANSWER_BYTES,
  MAX_APPROVAL_MESSAGE_CHARACTERS,
  MAX_NAMED_APPROVALS,
  MAX_WHO_CHARACTERS,
  MAX_WHY_CHARACTERS,
} from '../../shared/contract/approval.ts'
import type { TaskRecord } from '../../shared/contract/control.ts'
import type { GraphDetails } from '../../shared/contract/graphs.ts'
import { checkedAnswer } from '../support/answer-check.ts'
import { errorOf, recordOf } from '../support/answers.ts'
import { runClient } from '../support/client.ts'
import { type Control, startControl } from '../support/control.ts'
import { EventStreamClient } from '../support/event-stream.ts'
import { tempDir } from '../support/temp.ts'
import { until } from '../support/until.ts'
import { Gate } from './gate.ts'

let control: Control
beforeAll(async () => {
  control = await startControl()
})
afterAll(() => control.dispose())

const ADA = { who: 'ada', why: 'the plan is sound' }

const approval = (id: string, more: object = {}) => ({ id, type: 'approval', ...more })
const noop = (id: string, more: object = {}) => ({ id, type: 'noop', ...more })
const after = (...depends_on: string[]) => ({ depends_on })

/** The record once the task waits for its answer. */
const asked = (control: Control, path: string): Promise<TaskRecord> =>
  until(
    async () => (await (await control.fetch(path)).json()) as TaskRecord,
    ({ waiting }) => waiting?.reason === 'approval',
  )

const answer = (control: Control, path: string, body: unknown = ADA): Promise<Response> =>
  control.fetch(path, { method: 'POST', body: typeof body === 'string' ? body : JSON.stringify(body) })

const resultOf = (result: unknown): ApprovalResult => checkedAnswer(ApprovalResult, result)

describe('an approval', () => {
  test('is found by its graph, whatever else there is', async () => {
    await using control = await startControl()
    await control.submit([approval('sure')])
    await control.submit([noop('other')])
    const again = {
      type: 'file',
      params: { action: 'read', path: 'missing' },
      retry: 1,
      backoff: { initial_ms: 60_000 },
    }
    await control.submit([{ id: 'again', ...again }])
    await asked(control, '/tasks/sure')
    await until(async () => (await control.get('again')).waiting?.reason, 'backoff')
    const found = async (query: string) => {
      const graphs = (await (await control.fetch(`/graphs?${query}`)).json()) as GraphDetails[]
      return graphs.map(({ waiting }) => waiting)
    }
    expect(await found('waiting=approval')).toEqual([{ approval: 1 }])
    expect(await found('waiting=approval,backoff')).toEqual([{ backoff: 1 }, { approval: 1 }])
    expect(await found('waiting=backoff&state=failed')).toEqual([])
    const { envelope } = await runClient(['graphs', '--waiting', 'approval'], { url: control.url })
    expect(envelope.data?.graphs).toMatchObject([{ waiting: { approval: 1 } }])
    const refused = await control.fetch('/graphs?waiting=people')
    expect(await errorOf(refused)).toBe('400 invalid waiting "people": expected approval, backoff')
    expect(await errorOf(await control.fetch('/graphs?state=unreadable&waiting=approval'))).toBe(
      '400 state=unreadable cannot be combined with other filters',
    )
    await answer(control, '/tasks/sure/approve')
    expect(await found('waiting=approval')).toEqual([])
  })

  test('waits without a slot, and succeeds once it is approved', async () => {
    await using control = await startControl({ flags: ['--max-concurrency', '1'] })
    using gate = new Gate()
    await control.submit([gate.task('busy')])
    await until(() => gate.arrivals, 1)
    await control.submit([approval('sure', { params: { message: 'Deploy build 42?' } }), noop('deploy', after('sure'))])
    const waits = await asked(control, '/tasks/sure')
    expect(waits).toMatchObject({ status: 'pending', waiting: { reason: 'approval', detail: 'Deploy build 42?' } })
    expect(waits.run_status).toBeUndefined()
    expect((await control.get('deploy')).waiting).toEqual({ reason: 'dependencies', tasks: ['sure'] })

    const approved = await recordOf(await answer(control, '/tasks/sure/approve'))
    const result = resultOf(approved.result)
    expect(approved).toMatchObject({ status: 'success', attempt: 1, result: { approved: true, ...ADA } })
    expect(Math.abs(Date.parse(result.at) - Date.parse(approved.finished_at!))).toBeLessThan(1_000)
    expect(approved.waiting).toBeUndefined()
    gate.open()
    for (const { status } of await control.allEnded()) expect(status).toBe('success')
  })

  test('fails once it is rejected, whatever its retries are', async () => {
    await control.submit([
      approval('sure', { retry: 3, backoff: { initial_ms: 0 } }),
      noop('deploy', after('sure')),
      noop('tell', { ...after('sure'), run_if: 'failed' }),
      approval('mute'),
    ])
    for (const id of ['sure', 'mute']) await asked(control, `/tasks/${id}`)
    const rejected = await recordOf(await answer(control, '/tasks/sure/reject', { who: 'bob', why: 'not on a Friday' }))
    expect(rejected).toMatchObject({
      ...{ status: 'failed', error: 'rejected by bob: not on a Friday', attempt: 1 },
      result: { approved: false, who: 'bob', why: 'not on a Friday' },
      runtime: { error: { code: 'denied', message: 'rejected by bob: not on a Friday', retryable: false } },
    })
    const mute = await recordOf(await answer(control, '/tasks/mute/reject', { who: 'bob', why: null }))
    expect(mute.error).toBe('rejected by bob')
    expect(mute.result).not.toHaveProperty('why')
    expect((await control.ended('deploy')).error).toBe('dependency sure failed')
    expect((await control.ended('tell')).status).toBe('success')
  })

  test('keeps its first answer', async () => {
    await control.submit([approval('sure')])
    await asked(control, '/tasks/sure')
    const first = await recordOf(await answer(control, '/tasks/sure/approve'))
    expect(await recordOf(await answer(control, '/tasks/sure/approve'))).toEqual(first)
    const { at } = resultOf(first.result)
    const conflict = `409 task sure was approved by ada at ${at}`
    expect(await errorOf(await answer(control, '/tasks/sure/reject'))).toBe(conflict)
    expect(await errorOf(await answer(control, '/tasks/sure/approve', { who: 'bob' }))).toBe(conflict)
    expect(await errorOf(await answer(control, '/tasks/sure/approve', { who: 'ada', why: 'other' }))).toBe(conflict)
    expect(await control.get('sure')).toEqual(first)
  })

  test('takes one of many answers that arrive at once', async () => {
    await control.submit([approval('sure')])
    await asked(control, '/tasks/sure')
    const verbs = Array.from({ length: 20 }, (_, i) => (i % 2 === 0 ? 'approve' : 'reject'))
    const answers = await Promise.all(verbs.map((verb, i) => answer(control, `/tasks/sure/${verb}`, { who: `w${i}` })))
    const taken = answers.flatMap(({ status }, i) => (status === 200 ? i : []))
    expect(taken).toHaveLength(1)
    expect(answers.filter(({ status }) => status === 409)).toHaveLength(19)
    const { who } = resultOf((await control.get('sure')).result)
    expect(who).toBe(`w${taken[0]}`)
  })

  test('is asked for each element of a list', async () => {
    using dir = tempDir()
    const options = { dataDir: join(dir.path, 'data') }
    const messages = ['to staging?', 'to production?', 'to the moon?']
    const params = { message: { $item: '' } }
    const child = (graph: string, i: number) => `/graphs/${graph}/tasks/${encodeURIComponent(`sure[${i}]`)}`
    let graph: string
    {
      await using control = await startControl(options)
      const tasks = [approval('sure', { for_each: messages, max_parallel: 2, params }), noop('next', after('sure'))]
      graph = (await control.submit(tasks)).graph_id
      for (const i of [0, 1]) {
        expect((await asked(control, child(graph, i))).waiting).toEqual({ reason: 'approval', detail: messages[i]! })
      }
      expect(await errorOf(await answer(control, `${child(graph, 2)}/approve`))).toStartWith('409 ')
      for (const path of ['/tasks/sure/approve', `/graphs/${graph}/tasks/sure/reject`]) {
        expect(await errorOf(await answer(control, path))).toBe(
          '409 task sure has for_each: answer its children one by one, such as sure[0]',
        )
      }
      await recordOf(await answer(control, `${child(graph, 0)}/approve`))
      await asked(control, child(graph, 2))
      control.process.kill('SIGKILL')
      await control.process.exited
    }
    await using control = await startControl(options)
    for (const i of [1, 2]) {
      expect((await asked(control, child(graph, i))).waiting?.detail).toBe(messages[i]!)
      await recordOf(await answer(control, `${child(graph, i)}/${i === 2 ? 'reject' : 'approve'}`))
    }
    const sure = await control.ended('sure')
    expect([sure.status, sure.error]).toEqual(['failed', '1 of 3 failed: sure[2]'])
    expect(sure.result).toMatchObject([{ approved: true }, { approved: true }, null])
    expect((await control.ended('next')).status).toBe('skipped')
  })

  test('of a graph with its own ids is answered below the graph', async () => {
    const submit = async () => {
      const response = await control.post({ scope: 'graph', tasks: [approval('a/b')] })
      return ((await response.json()) as { graph_id: string }).graph_id
    }
    const [one, two] = [await submit(), await submit()]
    const path = (graph: string) => `/graphs/${graph}/tasks/${encodeURIComponent('a/b')}`
    for (const graph of [one, two]) await asked(control, path(graph))
    expect((await answer(control, `/tasks/${encodeURIComponent('a/b')}/approve`)).status).toBe(404)
    expect((await recordOf(await answer(control, `${path(one)}/approve`))).status).toBe('success')
    expect((await recordOf(await answer(control, `${path(two)}/reject`))).status).toBe('failed')
    expect((await answer(control, '/graphs/nope/tasks/x/approve')).status).toBe(404)
  })

  test('asks with the values of its placeholders', async () => {
    const response = await control.post({
      params: { stage: 'Go?' },
      tasks: [
        noop('plan', { params: { message: `step 1\n${'x'.repeat(1_000)}` } }),
        noop('large', { params: { message: 'y'.repeat(100_000) } }),
        approval('from', { ...after('plan'), params: { message: { $from: 'plan', path: '/result/message' } } }),
        approval('param', { params: { message: { $param: 'stage' } } }),
        approval('wrong', { ...after('plan'), params: { message: { $from: 'plan' } } }),
        approval('long', { ...after('large'), params: { message: { $from: 'large', path: '/result/message' } } }),
        approval('missing', {
          ...after('plan'),
          params: { message: { $from: 'plan', path: '/result/nope' } },
          retry: 2,
        }),
      ],
    })
    expect(response.status).toBe(202)
    const from = await asked(control, '/tasks/from')
    expect(from.resolved_input).toEqual({ message: `step 1\n${'x'.repeat(1_000)}` })
    expect(from.waiting?.detail).toBe(`step 1\n${'x'.repeat(492)}…`)
    expect((await asked(control, '/tasks/param')).waiting?.detail).toBe('Go?')
    const limit = `parse approval params: message: expected string of at most ${MAX_APPROVAL_MESSAGE_CHARACTERS} characters`
    for (const [id, error] of Object.entries({
      wrong: limit,
      long: limit,
      missing: 'params.message: task plan has no /result/nope, and there is no default',
    })) {
      const ended = await control.ended(id)
      expect([ended.status, ended.error, ended.runtime?.error?.code]).toEqual(['failed', error, 'invalid_input'])
    }
    const record = await recordOf(await answer(control, '/tasks/from/approve'))
    expect(record.resolved_input).toEqual(from.resolved_input)
  })

  test('is checked at submission', async () => {
    const warned = await control.submit([approval('long', { params: { message: 7 } })])
    expect(warned.warnings).toEqual([
      {
        task_id: 'long',
        message: `parse approval params: message: expected string of at most ${MAX_APPROVAL_MESSAGE_CHARACTERS} characters`,
      },
    ])
    const unknown = await control.post({ tasks: [approval('a', { params: { mesage: 'x' } })] })
    expect(await errorOf(unknown)).toBe(
      '400 unknown parameter "mesage" of approval in task a (did you mean "message"?)',
    )
    const tool = await control.submit([approval('tool', { tool_name: 'x' })])
    expect(tool.warnings?.[0]?.message).toBe('type approval has no tool "x"')
    expect((await control.ended('tool')).error).toBe('type approval has no tool "x"')
  })

  test('follows run_if, when and continue_on_error', async () => {
    await control.submit([
      { id: 'fails', type: 'file', params: { action: 'read', path: '/no/such/file' } },
      approval('anyway', { ...after('fails'), run_if: 'failed' }),
      approval('never', after('fails')),
      noop('choose', { params: { message: 'yes' } }),
      approval('met', { ...after('choose'), when: { $from: 'choose', path: '/result/message', equals: 'yes' } }),
      approval('unmet', { ...after('choose'), when: { $from: 'choose', path: '/result/message', equals: 'no' } }),
      approval('optional', { continue_on_error: true }),
      noop('next', after('optional')),
    ])
    for (const id of ['anyway', 'met', 'optional']) await asked(control, `/tasks/${id}`)
    expect((await control.ended('never')).error).toBe('dependency fails failed')
    expect((await control.ended('unmet')).error).toBe('condition not met: choose/result/message')
    await recordOf(await answer(control, '/tasks/optional/reject'))
    expect((await control.ended('next')).status).toBe('success')
    for (const id of ['anyway', 'met']) await recordOf(await answer(control, `/tasks/${id}/approve`))
  })

  test('that was given is reused when its graph runs again', async () => {
    const { graph_id } = await control.submit([
      approval('sure'),
      { id: 'fails', type: 'file', params: { action: 'read', path: '/no/such/file' }, ...after('sure') },
      approval('rejected', after('sure')),
    ])
    await asked(control, '/tasks/sure')
    const given = await recordOf(await answer(control, '/tasks/sure/approve'))
    await asked(control, '/tasks/rejected')
    await recordOf(await answer(control, '/tasks/rejected/reject'))
    for (const id of ['fails', 'rejected']) await control.ended(id)
    const rerun = await control.fetch(`/graphs/${graph_id}/rerun`, { method: 'POST' })
    expect(((await rerun.json()) as { reused: string[] }).reused).toEqual(['sure'])
    expect(await control.get('sure')).toMatchObject({
      ...{ status: 'success', result: given.result, started_at: given.started_at },
      reused_from: { graph_id, task_id: 'sure' },
    })
    await asked(control, '/tasks/rejected')
    expect((await recordOf(await answer(control, '/tasks/rejected/approve'))).status).toBe('success')
  })

  test('that is cancelled or deleted cannot be answered', async () => {
    await using control = await startControl()
    await control.submit([approval('a'), noop('next', after('a')), approval('b'), noop('then', after('b'))])
    for (const id of ['a', 'b']) await asked(control, `/tasks/${id}`)
    expect((await control.fetch('/tasks/a/cancel', { method: 'POST' })).status).toBe(202)
    const ended = '409 task a has ended without an answer: task cancelled'
    expect(await errorOf(await answer(control, '/tasks/a/approve'))).toBe(ended)
    expect((await control.ended('next')).error).toBe('dependency a cancelled')
    expect((await control.fetch('/tasks/b', { method: 'DELETE' })).status).toBe(204)
    expect((await answer(control, '/tasks/b/approve')).status).toBe(404)
    expect((await control.ended('then')).error).toBe('dependency b deleted')
    const text = await (await control.fetch('/metrics', { headers: { accept: 'text/plain' } })).text()
    expect(text).toContain('\nservice_control_approvals_waiting 0\n')
  })

  test('is told by events, with the reason and the message', async () => {
    await using stream = await EventStreamClient.open(`${control.url}/events`)
    await control.submit([approval('sure', { params: { message: 'Go?' }, timeout: 3_600_000 })])
    const told = await until(() =>
      stream.events.find((event) => event.event === 'task_changed' && event.waiting?.reason === 'approval'),
    )
    const { waiting } = await control.get('sure')
    expect(told).toMatchObject({ task_id: 'sure', status: 'pending', waiting: waiting as object })
    await recordOf(await answer(control, '/tasks/sure/approve'))
    await until(
      () => stream.events,
      (events) => events.some((event) => event.event === 'task_changed' && event.status === 'success'),
    )
  })
})

describe('an answer', () => {
  test('is refused with the reason', async () => {
    using gate = new Gate()
    await control.submit([gate.task('busy'), approval('later', after('busy')), approval('now'), noop('none')])
    await asked(control, '/tasks/now')
    const who = `who: expected string of 1 to ${MAX_WHO_CHARACTERS} characters, none of them a control character`
    const why = `why: expected string of at most ${MAX_WHY_CHARACTERS} characters`
    const required = 'who is required: the name of whoever answers the approval'
    for (const [path, body, error] of [
      ['none/approve', ADA, '409 task none is no approval: its type is os'],
      ['busy/reject', ADA, '409 task busy is no approval: its type is os'],
      ['later/approve', ADA, '409 task later cannot be answered yet: it depends on busy'],
      ['nope/approve', ADA, '404 task not found: nope'],
      ['now/approve', '', '400 invalid JSON: the body is empty'],
      ['now/approve', '[]', '400 invalid JSON: expected object, got array'],
      ['now/approve', {}, `400 ${required}`],
      ['now/approve', { who: null }, `400 ${required}`],
      ['now/approve', { who: '' }, `400 invalid JSON: ${who}`],
      ['now/approve', { who: '  ' }, `400 invalid JSON: ${who}`],
      ['now/approve', { who: 7 }, `400 invalid JSON: ${who}`],
      ['now/approve', { who: 'a\u001b[31m' }, `400 invalid JSON: ${who}`],
      ['now/approve', { who: 'x'.repeat(MAX_WHO_CHARACTERS + 1) }, `400 invalid JSON: ${who}`],
      ['now/reject', { who: 'ada', why: 'x'.repeat(MAX_WHY_CHARACTERS + 1) }, `400 invalid JSON: ${why}`],
      ['now/reject', { who: 'ada', why: ['no'] }, `400 invalid JSON: ${why}`],
      ['now/approve', { who: 'ada\ud800' }, '400 who has half of a character (a lone surrogate)'],
      ['now/approve', { who: 'ada', why: '\udfff' }, '400 why has half of a character (a lone surrogate)'],
      ['now/reject', { who: 'ada', reason: 'no' }, '400 unknown field "reason" (did you mean "why"?)'],
    ] as const) {
      expect(await errorOf(await answer(control, `/tasks/${path}`, body))).toBe(error)
    }
    const large = await answer(control, '/tasks/now/approve', { who: 'x', why: 'x'.repeat(MAX_APPROVAL_ANSWER_BYTES) })
    expect(large.status).toBe(413)
    expect((await control.fetch('/tasks/now/approve')).status).toBe(405)
    expect((await control.get('now')).waiting?.reason).toBe('approval')
    const longest = { who: 'ü'.repeat(MAX_WHO_CHARACTERS), why: '\u0000\n'.repeat(MAX_WHY_CHARACTERS / 2) }
    const record = await recordOf(await answer(control, '/tasks/now/reject', longest))
    expect(record.error).toBe(`rejected by ${longest.who}: ${longest.why}`)
    gate.open()
    await control.ended('busy')
    await asked(control, '/tasks/later')
    await recordOf(await answer(control, '/tasks/later/approve', { who: '__proto__', metadata: { ticket: 7 } }))
  })

  test('is on disk before it is acknowledged', async () => {
    using dir = tempDir()
    const options = { dataDir: join(dir.path, 'data'), flags: ['--persist-interval', '1h'] }
    {
      await using control = await startControl(options)
      await control.submit([approval('yes'), approval('no'), noop('next', after('yes'))])
      for (const id of ['yes', 'no']) await asked(control, `/tasks/${id}`)
      const answers = [answer(control, '/tasks/yes/approve'), answer(control, '/tasks/no/reject')]
      for (const response of await Promise.all(answers)) expect(response.status).toBe(200)
      control.process.kill('SIGKILL')
      await control.process.exited
    }
    await using control = await startControl(options)
    expect(await control.get('yes')).toMatchObject({ status: 'success', result: { approved: true, ...ADA } })
    expect((await control.get('no')).error).toBe('rejected by ada: the plan is sound')
    expect((await control.ended('next')).status).toBe('success')
    expect((await answer(control, '/tasks/yes/approve')).status).toBe(200)
    expect((await answer(control, '/tasks/yes/reject')).status).toBe(409)
  })
})

describe('over a restart', () => {
  test.each([
    ['journal', '1h'],
    ['state file', '20ms'],
  ])('an approval waits on, with the same message: %s', async (source, interval) => {
    using dir = tempDir()
    const dataDir = join(dir.path, 'data')
    const options = { dataDir, flags: ['--persist-interval', interval] }
    const stateFile = join(dataDir, 'state.json')
    let before: TaskRecord
    {
      await using control = await startControl(options)
      const message = { $from: 'plan', path: '/result/message' }
      await control.submit([
        noop('plan', { params: { message: 'Go?' } }),
        approval('sure', { ...after('plan'), params: { message }, timeout: 3_600_000 }),
        noop('next', after('sure')),
      ])
      before = await asked(control, '/tasks/sure')
      // What it refers to may go meanwhile: it was asked for already.
      expect((await control.fetch('/tasks/plan', { method: 'DELETE' })).status).toBe(204)
      if (source === 'state file') {
        await until(
          () => existsSync(stateFile) && readFileSync(stateFile, 'utf8'),
          (text) => text !== false && text.includes('"asked_at":') && !text.includes('"plan": {'),
        )
      }
      control.process.kill('SIGKILL')
      await control.process.exited
    }
    await using control = await startControl(options)
    expect(await asked(control, '/tasks/sure')).toEqual(before)
    const approved = await recordOf(await answer(control, '/tasks/sure/approve'))
    expect(Date.parse(approved.started_at!) + 3_600_000).toBe(Date.parse(before.waiting!.until!))
    expect((await control.ended('next')).status).toBe('success')
  })

  test('the time counts from when it was ready', async () => {
    using dir = tempDir()
    const options = { dataDir: join(dir.path, 'data') }
    const timeout = 4_000
    let until_: string
    let untilLong: string
    {
      await using control = await startControl(options)
      await control.submit([approval('late', { timeout, retry: 2 }), approval('long', { timeout: 3_600_000 })])
      until_ = (await asked(control, '/tasks/late')).waiting!.until!
      untilLong = (await asked(control, '/tasks/long')).waiting!.until!
      await control.stop('SIGTERM')
    }
    {
      await using control = await startControl(options)
      // On a busy machine the time of the other one may be over by now.
      expect((await asked(control, '/tasks/long')).waiting!.until).toBe(untilLong)
      control.process.kill('SIGKILL')
      await control.process.exited
    }
    // Its time is over while no service runs.
    await until(
      () => Date.now(),
      (now) => now > Date.parse(until_),
    )
    await using control = await startControl(options)
    const ended = await control.ended('late')
    expect(ended).toMatchObject({
      ...{ status: 'failed', attempt: 1, started_at: new Date(Date.parse(until_) - timeout).toISOString() },
      error: `task timed out after ${timeout}ms: nobody approved or rejected it`,
      runtime: { error: { code: 'timeout' } },
    })
    const late = `409 task late has ended without an answer: ${ended.error}`
    expect(await errorOf(await answer(control, '/tasks/late/approve'))).toBe(late)
    await asked(control, '/tasks/long')
  })
})

test('a timeout counts from when the task is ready, not from its submission', async () => {
  using gate = new Gate()
  await control.submit([gate.task('busy'), approval('sure', { ...after('busy'), timeout: 300 })])
  await until(() => gate.arrivals, 1)
  const submitted = Date.parse((await control.get('sure')).created_at)
  await until(
    () => Date.now(),
    (now) => now > submitted + 400,
  )
  expect((await control.get('sure')).status).toBe('pending')
  gate.open()
  const { started_at, finished_at, runtime } = await control.ended('sure')
  expect(runtime?.error?.code).toBe('timeout')
  expect(Date.parse(finished_at!) - Date.parse(started_at!)).toBeGreaterThanOrEqual(299)
  expect(Date.parse(started_at!)).toBeGreaterThan(submitted + 400)
})

test('wait_for=approval answers once only approvals can let a task or a graph go on, and names them', async () => {
  using gate = new Gate()
  const { graph_id } = await control.submit([
    gate.task('build'),
    approval('é,', { depends_on: ['build'] }),
    noop('last', { depends_on: ['é,'] }),
  ])
  const paths = ['/tasks/last', `/graphs/${graph_id}/tasks/last`, `/graphs/${graph_id}`]
  const awaited = (query: string) =>
    Promise.all(paths.map(async (path) => (await control.fetch(`${path}?${query}`)).headers.get('x-awaited-approvals')))
  expect(await awaited('wait_for=approval')).toEqual([null, null, null])
  const waiting = awaited('wait_ms=60000&wait_for=approval')
  gate.open()
  expect(await waiting).toEqual(['%C3%A9%2C', '%C3%A9%2C', '%C3%A9%2C'])
  expect(await awaited('wait_for=approval')).toEqual(await waiting)
  expect(await awaited('wait_ms=1')).toEqual([null, null, null])
  expect((await answer(control, `/tasks/${encodeURIComponent('é,')}/approve`)).status).toBe(200)
  expect(await awaited('wait_ms=60000&wait_for=approval')).toEqual([null, null, null])
  const refused = await control.fetch('/tasks/last?wait_for=people')
  expect([refused.status, await refused.json()]).toEqual([
    400,
    { error: 'invalid wait_for "people": expected end or approval' },
  ])
})

test('ten thousand approvals wait, and other tasks run beside them', async () => {
  const count = 10_000
  await using control = await startControl({ flags: ['--max-concurrency', '1'] })
  const approvals = Array.from({ length: count }, (_, i) => approval(`a${i}`, { timeout: 3_600_000 }))
  const response = await control.post({ scope: 'graph', tasks: approvals })
  const { graph_id } = (await response.json()) as { graph_id: string }
  await until(
    async () => await (await control.fetch('/metrics', { headers: { accept: 'text/plain' } })).text(),
    (text) => text.includes(`\nservice_control_approvals_waiting ${count}\n`),
  )
  const named = (await control.fetch(`/graphs/${graph_id}?wait_for=approval`)).headers.get('x-awaited-approvals')
  expect(named?.split(',')).toHaveLength(MAX_NAMED_APPROVALS)
  await control.submit([noop('beside')])
  expect((await control.ended('beside')).status).toBe('success')
  for (const i of [0, 5_000, count - 1]) {
    const verb = `/graphs/${graph_id}/tasks/a${i}/approve`
    expect((await answer(control, verb)).status).toBe(200)
  }
  expect((await control.fetch(`/graphs/${graph_id}/cancel`, { method: 'POST' })).status).toBe(202)
  const { counts } = (await (await control.fetch(`/graphs/${graph_id}?wait_ms=20000`)).json()) as GraphDetails
  expect(counts).toEqual({ success: 3, cancelled: count - 3 })
})
