/**
 * `POST /tasks/{id}/retry` and `POST /graphs/{id}/retry`: a failed task runs again in its graph, with what depends on it. The
 * built executables, over kills, with callbacks, tokens and approvals.
 */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Taskmill } from '../../client/client.ts'
import { MAX_RETRIED_SHOWN } from '../../shared/contract/events.ts'
import type { GraphDetails } from '../../shared/contract/graphs.ts'
import { MAX_RETRY_BODY_BYTES } from '../../shared/contract/retry.ts'
import { runClient } from '../support/client.ts'
import { type Control, startControl } from '../support/control.ts'
import { EventStreamClient } from '../support/event-stream.ts'
import { startReceiver } from '../support/receiver.ts'
import { ended, read, statusesOf, submit } from '../support/scoped-graphs.ts'
import { type TempDir, tempDir } from '../support/temp.ts'
import { until } from '../support/until.ts'

let temp: TempDir
beforeEach(() => {
  temp = tempDir()
})
afterEach(() => temp[Symbol.dispose]())

const OPEN = { env: { SERVICE_SHELL_POLICY: 'open' }, flags: ['--callback-policy', 'any'] }
let control: Control
beforeAll(async () => {
  control = await startControl(OPEN)
})
afterAll(() => control.dispose())

/** A step that notes each of its executions, and fails until the file `fixed` is there. */
const flaky = (id: string, more: object = {}) => ({
  ...{ id, type: 'shell', ...more },
  params: { script: `echo ${id} >> ${temp.path}/ran; test -e ${temp.path}/fixed` },
})
const step = (id: string, more: object = {}) => ({
  ...{ id, type: 'shell', ...more },
  params: { script: `echo ${id} >> ${temp.path}/ran` },
})
const after = (...depends_on: string[]) => ({ depends_on })
const fix = () => writeFileSync(join(temp.path, 'fixed'), '')
const ran = () => readFileSync(join(temp.path, 'ran'), 'utf8').trim().split('\n')

const ask = async (service: Control, path: string, headers: Record<string, string> = {}) => {
  const response = await service.fetch(`${path}/retry`, { method: 'POST', headers })
  return { status: response.status, body: (await response.json()) as Record<string, unknown> & { error: string } }
}

const TASKS = () => [
  step('a'),
  flaky('b', { ...after('a'), retry: 1 }),
  step('c', after('b')),
  step('d', after('c')),
  step('e'),
]

test('a failed task runs again in its graph, and what was skipped because of it runs', async () => {
  const id = await submit(control, TASKS())
  const first = await ended(control, id)
  expect(statusesOf(first)).toEqual({ a: 'success', b: 'failed', c: 'skipped', d: 'skipped', e: 'success' })
  const { tasks_total } = await control.metrics()
  fix()
  expect(await ask(control, `/graphs/${id}/tasks/b`)).toEqual({
    ...{ status: 202, body: { graph_id: id, retried: ['b'], pending: 3 } as never },
  })
  const second = await ended(control, id)
  expect(second).toMatchObject({ state: 'success', counts: { success: 5 }, created_at: first.created_at })
  expect(second.finished_at! > first.finished_at!).toBe(true)
  expect(ran().sort()).toEqual(['a', 'b', 'b', 'b', 'c', 'd', 'e'])
  const task = await read(control, id, 'b')
  expect(task).toMatchObject({
    attempt: 3,
    retried: { count: 1 },
    attempts: [{ attempt: 1 }, { attempt: 2 }, { attempt: 3 }],
  })
  expect(task.error).toBeUndefined()
  expect((await read(control, id, 'c')).retried).toBeUndefined()
  const { tasks_total: total, tasks_running } = await control.metrics()
  expect([total, tasks_running]).toEqual([tasks_total, 0])
})

test('each retry has all retries again, and waits begin anew', async () => {
  const id = await submit(control, [flaky('b', { retry: 1 })])
  await ended(control, id)
  await ask(control, `/graphs/${id}/tasks/b`)
  expect((await ended(control, id)).state).toBe('failed')
  expect(await read(control, id, 'b')).toMatchObject({ attempt: 4, retried: { count: 1 } })
})

test('a clean-up that has run runs again, after what it cleans up for', async () => {
  const id = await submit(control, [flaky('a'), step('tidy', { ...after('a'), run_if: 'always' })])
  await ended(control, id)
  fix()
  expect((await ask(control, `/graphs/${id}/tasks/a`)).body.pending).toBe(2)
  expect((await ended(control, id)).state).toBe('success')
  expect(ran()).toEqual(['a', 'tidy', 'a', 'tidy'])
  expect(await read(control, id, 'tidy')).toMatchObject({ attempt: 2, retried: { count: 1 } })
})

test('tasks of on_end run again at the new end', async () => {
  const on_end = [
    { when: 'failed', command: { script: `echo failed >> ${temp.path}/ran` } },
    { when: 'success', command: { script: `echo succeeded >> ${temp.path}/ran` } },
  ]
  const id = await submit(control, [flaky('a'), step('b', after('a'))], { on_end })
  await ended(control, id)
  fix()
  expect((await ask(control, `/graphs/${id}`)).body).toMatchObject({ retried: ['a'], pending: 4 })
  const graph = await ended(control, id)
  expect(graph.state).toBe('success')
  expect(ran()).toEqual(['a', 'failed', 'a', 'b', 'succeeded'])
})

test('all failed and cancelled tasks of a graph are retried at once, but for tolerated failures', async () => {
  const id = await submit(control, [
    ...[flaky('a'), flaky('b'), step('c', after('a', 'b')), flaky('d', { continue_on_error: true })],
    { id: 'ask', type: 'approval', params: { message: 'go?' } },
  ])
  await until(async () => (await read(control, id, 'c')).status, 'skipped')
  await control.fetch(`/graphs/${id}/tasks/ask/cancel`, { method: 'POST' })
  await ended(control, id)
  fix()
  expect((await ask(control, `/graphs/${id}`)).body).toEqual({
    graph_id: id,
    retried: ['a', 'b', 'ask'],
    pending: 4,
  } as never)
  await until(async () => (await read(control, id, 'ask')).waiting?.reason, 'approval')
  await control.fetch(`/graphs/${id}/tasks/ask/approve`, { method: 'POST', body: '{"who":"ada"}' })
  const graph = await ended(control, id)
  expect(statusesOf(graph)).toEqual({ a: 'success', b: 'success', c: 'success', d: 'failed', ask: 'success' })
  expect(await ask(control, `/graphs/${id}`)).toEqual({
    ...{
      status: 409,
      body: { error: `nothing to retry: no task of graph ${id} has failed or was cancelled` } as never,
    },
  })
})

test('a task is retried while its graph runs', async () => {
  const id = await submit(control, [
    ...[flaky('a'), step('b', after('a'))],
    { id: 'ask', type: 'approval', params: { message: 'go?' } },
  ])
  await until(async () => (await read(control, id, 'b')).status, 'skipped')
  fix()
  expect((await ask(control, `/graphs/${id}/tasks/a`)).status).toBe(202)
  await until(async () => (await read(control, id, 'b')).status, 'success')
  await control.fetch(`/graphs/${id}/tasks/ask/approve`, { method: 'POST', body: '{"who":"ada"}' })
  expect((await ended(control, id)).state).toBe('success')
})

describe('of a task with children', () => {
  /** Fails for the elements x and y, until the file `fixed` is there. */
  const each = (id: string, more: object = {}) => ({
    ...{ id, type: 'shell', ...more },
    params: {
      script: `echo ${id} $ITEM >> ${temp.path}/ran; case $ITEM in [xy]) test -e ${temp.path}/fixed;; esac && echo $ITEM`,
      env: { ITEM: { $item: '' } },
    },
  })

  test('the children that did not succeed run again, for the list of before, also after kills', async () => {
    using dir = tempDir()
    await using first = await startControl({ ...OPEN, dataDir: dir.path })
    const list = { id: 'list', type: 'shell', params: { command: 'echo', args: ['["a", "x", "y"]'] } }
    const for_each = { $from: 'list', path: '/result/stdout', as: 'json' }
    const id = await submit(first, [list, each('map', { ...after('list'), for_each }), step('sum', after('map'))])
    expect((await ended(first, id)).counts).toEqual({ success: 2, failed: 3, skipped: 1 })
    await first.stop()
    await using second = await startControl({ ...OPEN, dataDir: dir.path })
    expect(await ask(second, `/graphs/${id}`)).toEqual({
      ...{ status: 202, body: { graph_id: id, retried: ['map'], pending: 4 } as never },
    })
    expect((await ended(second, id)).counts).toEqual({ success: 2, failed: 3, skipped: 1 })
    fix()
    await second.fetch('/pause', { method: 'POST', body: '{}' })
    expect((await ask(second, `/graphs/${id}`)).status).toBe(202)
    await second.stop('SIGKILL')
    await using third = await startControl({ ...OPEN, dataDir: dir.path })
    const statuses: string[] = []
    for (const name of ['map[0]', 'map[1]', 'map[2]', 'sum']) statuses.push((await read(third, id, name)).status)
    expect(statuses).toEqual(['success', 'pending', 'pending', 'pending'])
    await third.fetch('/resume', { method: 'POST', body: '{}' })
    expect((await ended(third, id)).counts).toEqual({ success: 6 })
    expect(
      ran()
        .filter((line) => line.startsWith('map'))
        .sort(),
    ).toEqual(['a', 'x', 'x', 'x', 'y', 'y', 'y'].map((item) => `map ${item}`))
    const map = await read(third, id, 'map')
    expect(map).toMatchObject({ attempt: 3, child_count: 3, retried: { count: 2 } })
    expect((map.result as readonly { stdout: string }[]).map(({ stdout }) => stdout)).toEqual(['a\n', 'x\n', 'y\n'])
    expect((await read(third, id, 'map[0]')).attempt).toBe(1)
    expect(await read(third, id, 'map[1]')).toMatchObject({ attempt: 3, retried: { count: 2 } })
  })

  test('one child runs again alone, and its parent is counted anew', async () => {
    const id = await submit(control, [each('map', { for_each: ['a', 'x', 'y'] }), step('sum', after('map'))])
    await ended(control, id)
    fix()
    expect((await ask(control, `/graphs/${id}/tasks/map%5B1%5D`)).body).toEqual({
      graph_id: id,
      retried: ['map[1]'],
      pending: 3,
    } as never)
    await ended(control, id)
    expect((await read(control, id, 'map')).error).toBe('1 of 3 failed: map[2]')
    expect((await ask(control, `/graphs/${id}/tasks/map%5B2%5D`)).body.pending).toBe(3)
    expect((await ended(control, id)).state).toBe('success')
    expect(ran().length).toBe(6)
  })

  test('of each element of a group what did not succeed runs again, and what depends on it', async () => {
    const tasks = [
      step('prepare'),
      each('work', after('prepare')),
      step('tidy', { ...after('work'), run_if: 'always' }),
    ]
    const id = await submit(control, [{ id: 'all', for_each: ['a', 'x'], max_parallel: 1, tasks }])
    await ended(control, id)
    fix()
    expect((await ask(control, `/graphs/${id}/tasks/all`)).body).toMatchObject({ retried: ['all'], pending: 3 })
    expect((await ended(control, id)).state).toBe('success')
    expect(ran()).toEqual([...['prepare', 'work a', 'tidy', 'prepare', 'work x', 'tidy'], ...['work x', 'tidy']])
  })

  test('all of them run again if something runs again that it depends on, or end with it if it is skipped', async () => {
    const parts = [flaky('first'), { id: 'all', ...after('first'), run_if: 'failed', tasks: [step('mend')] }]
    const id = await submit(control, parts)
    await ended(control, id)
    expect((await ask(control, `/graphs/${id}/tasks/first`)).body.pending).toBe(3)
    await ended(control, id)
    expect(ran()).toEqual(['first', 'mend', 'first', 'mend'])
    fix()
    expect((await ask(control, `/graphs/${id}/tasks/first`)).body.pending).toBe(3)
    const graph = await ended(control, id)
    expect(graph.state).toBe('success')
    expect(graph.counts).toEqual({ success: 1, skipped: 1, cancelled: 1 })
  })

  test('fail_fast counts failures since the retry only', async () => {
    const id = await submit(control, [each('map', { for_each: ['x', 'a', 'y'], max_parallel: 1, fail_fast: true })])
    await ended(control, id)
    expect((await ask(control, `/graphs/${id}/tasks/map%5B1%5D`)).body.error).toBe(
      'task map[0] failed, too, and ends map at once (fail_fast): retry task map',
    )
    expect((await ask(control, `/graphs/${id}/tasks/map`)).status).toBe(202)
    await ended(control, id)
    expect(ran()).toEqual(['map x', 'map x'])
    fix()
    await ask(control, `/graphs/${id}`)
    expect((await ended(control, id)).state).toBe('success')
    expect(ran().slice(2)).toEqual(['map x', 'map a', 'map y'])
  })

  test('a task whose list is empty runs again, too', async () => {
    const id = await submit(control, [
      flaky('first'),
      { ...step('none'), ...after('first'), run_if: 'always', for_each: [] },
    ])
    await ended(control, id)
    expect((await ask(control, `/graphs/${id}/tasks/first`)).body.pending).toBe(2)
    expect((await ended(control, id)).counts).toEqual({ failed: 1, success: 1 })
    expect(await read(control, id, 'none')).toMatchObject({ attempt: 2, child_count: 0, result: [] })
  })

  test('a cancel before it runs again cancels the children', async () => {
    const id = await submit(control, [
      flaky('first'),
      { id: 'all', ...after('first'), run_if: 'always', tasks: [step('a')] },
    ])
    await ended(control, id)
    await control.fetch('/pause', { method: 'POST', body: '{}' })
    await ask(control, `/graphs/${id}/tasks/first`)
    await control.fetch(`/graphs/${id}/tasks/all/cancel`, { method: 'POST' })
    await until(async () => (await read(control, id, 'all/a')).status, 'cancelled')
    await control.fetch('/resume', { method: 'POST', body: '{}' })
    expect(statusesOf(await ended(control, id))).toEqual({ first: 'failed', all: 'cancelled', 'all/a': 'cancelled' })
  })

  test('a list that may be another one, and children that are gone, are refused', async () => {
    const list = { id: 'list', type: 'shell', continue_on_error: true, params: { script: 'echo [1]; exit 3' } }
    const for_each = { $from: 'list', path: '/result/stdout', as: 'json' }
    const id = await submit(control, [list, each('map', { ...after('list'), for_each })])
    await ended(control, id)
    expect((await ask(control, `/graphs/${id}/tasks/list`)).body.error).toBe(
      `task map, which runs again with list, has run for its list: run the graph again (POST /graphs/${id}/rerun)`,
    )
    const other = await submit(control, [each('map', { for_each: ['x', 'y'] })])
    await ended(control, other)
    await control.fetch(`/graphs/${other}/tasks/map%5B1%5D`, { method: 'DELETE' })
    expect((await ask(control, `/graphs/${other}`)).body.error).toBe(
      'task map[1] was deleted, and task map cannot succeed without it: submit the graph again',
    )
  })
})

test('programs and the command line retry', async () => {
  const client = new Taskmill({ url: control.url })
  const id = await submit(control, [flaky('a'), step('b', after('a'))])
  await ended(control, id)
  expect(await client.retryTask({ graph_id: id, task_id: 'a' })).toEqual({ graph_id: id, retried: ['a'], pending: 2 })
  await ended(control, id)
  expect(await client.retryGraph(id)).toEqual({ graph_id: id, retried: ['a'], pending: 2 })
  await ended(control, id)
  fix()
  const { exitCode, envelope } = await runClient(['retry', `${id}/a`], { url: control.url })
  expect([exitCode, envelope]).toMatchObject([0, { ok: true, data: { graph_id: id, retried: ['a'], pending: 2 } }])
  expect((await ended(control, id)).state).toBe('success')
  const again = await runClient(['retry', id], { url: control.url })
  expect(again.exitCode).not.toBe(0)
  expect(JSON.stringify(again.envelope)).toContain('nothing to retry')
})

describe('a retry with a key', () => {
  const keyed = (service: Control, path: string, key: string, body?: string) =>
    service.fetch(`${path}/retry`, { method: 'POST', headers: { 'idempotency-key': key }, ...(body && { body }) })

  test('happens once, however often it is sent, also after a kill', async () => {
    using dir = tempDir()
    await using first = await startControl({ ...OPEN, dataDir: dir.path })
    const id = await submit(first, [flaky('a'), step('b', after('a'))])
    await ended(first, id)
    const task = `/graphs/${id}/tasks/a`
    const [one, two] = await Promise.all([keyed(first, task, 'k'), keyed(first, task, 'k')])
    const answer = await one!.text()
    expect([one!.status, two!.status, await two!.text()]).toEqual([202, 202, answer])
    await ended(first, id)
    expect(await (await keyed(first, task, 'k')).text()).toBe(answer)
    expect((await keyed(first, `/graphs/${id}`, 'k')).status).toBe(202) // another request
    await ended(first, id)
    await first.stop('SIGKILL')
    await using second = await startControl({ ...OPEN, dataDir: dir.path })
    expect(await (await keyed(second, task, 'k')).text()).toBe(answer)
    expect(await read(second, id, 'a')).toMatchObject({ attempt: 3, retried: { count: 2 } })
    await second.stop()
    await using third = await startControl({ ...OPEN, dataDir: dir.path })
    expect(await (await keyed(third, task, 'k')).text()).toBe(answer)
    expect((await keyed(third, task, 'k', '{"revision":0}')).status).toBe(422)
    expect(await read(third, id, 'a')).toMatchObject({ attempt: 3, retried: { count: 2 } })
  })

  test('or for a revision, from programs and the command line', async () => {
    const id = await submit(control, [flaky('a'), { id: 'ask', type: 'approval', params: { message: 'go?' } }])
    const failed = () => until(async () => (await read(control, id, 'a')).status, 'failed')
    await failed()
    const added = JSON.stringify({ add: [{ id: 'b', type: 'noop', depends_on: ['a'] }] })
    expect((await control.fetch(`/graphs/${id}`, { method: 'PATCH', body: added })).status).toBe(200)
    const client = new Taskmill({ url: control.url })
    const changed = `graph ${id} has the revision 1 by now: read it again (GET /graphs/${id})`
    expect(client.retryGraph(id, { revision: 0 })).rejects.toThrow(changed)
    const options = { revision: 1, idempotencyKey: 'program' }
    const answer = await client.retryGraph(id, options)
    await failed()
    expect(await client.retryGraph(id, options)).toEqual(answer)
    const flags = (revision: string) => ['retry', `${id}/a`, '--revision', revision, '--idempotency-key', 'line']
    expect((await runClient(flags('7'), { url: control.url })).envelope).toMatchObject({
      ok: false,
      error: { message: changed },
    })
    for (let i = 0; i < 2; i++) {
      const { envelope } = await runClient(flags('1'), { url: control.url })
      expect(envelope).toMatchObject({ ok: true, data: { retried: ['a'] } })
      await failed()
    }
    expect(await read(control, id, 'a')).toMatchObject({ attempt: 3, retried: { count: 2 } })
    await control.fetch(`/graphs/${id}/cancel`, { method: 'POST' })
  })

  test('is refused with fields that nobody knows, and with a large body', async () => {
    const id = await submit(control, [flaky('a')])
    await ended(control, id)
    const path = `/graphs/${id}`
    const { error } = (await (await keyed(control, path, 'x', '{"revison":1}')).json()) as { error: string }
    expect(error).toBe('unknown field "revison" (did you mean "revision"?)')
    const large = await keyed(control, path, 'x', `{"revision":${' '.repeat(MAX_RETRY_BODY_BYTES)}0}`)
    expect(large.status).toBe(413)
    expect((await keyed(control, path, 'x', '{"revision":-1}')).status).toBe(400)
  })
})

describe('a retry is refused', () => {
  const refusal = async (path: string) => {
    const { status, body } = await ask(control, path)
    return [status, body.error]
  }

  test('for a task that did not fail or has not ended, with what to do', async () => {
    const id = await submit(control, [flaky('bad'), step('good'), step('late', after('bad'))])
    await ended(control, id)
    const at = `/graphs/${id}/tasks`
    const rerun = `run its graph again (POST /graphs/${id}/rerun`
    expect(await refusal(`${at}/good`)).toEqual([409, `task good succeeded: to run it again, ${rerun} with "from")`])
    expect(await refusal(`${at}/late`)).toEqual([
      ...[409, 'task late was skipped (dependency bad failed): retry the task that failed'],
    ])
    expect(await refusal(`${at}/nobody`)).toEqual([404, `task not found: nobody in graph ${id}`])
    const live = await submit(control, [{ id: 'ask', type: 'approval', params: { message: 'go?' } }])
    expect(await refusal(`/graphs/${live}/tasks/ask`)).toEqual([
      ...[409, 'task ask has not ended: it is pending (cancel it first)'],
    ])
  })

  test('if the id was taken over, or a dependency was deleted', async () => {
    const { graph_id } = await control.submit([flaky('taken')])
    await ended(control, graph_id)
    await control.submit([step('taken')])
    expect(await refusal(`/graphs/${graph_id}/tasks/taken`)).toEqual([
      ...[409, 'another graph has taken the id of task taken since: submit the graph again, with "scope": "graph"'],
    ])
    const id = await submit(control, [step('first'), flaky('second', after('first'))])
    await ended(control, id)
    await control.fetch(`/graphs/${id}/tasks/first`, { method: 'DELETE' })
    expect(await refusal(`/graphs/${id}/tasks/second`)).toEqual([
      ...[409, 'task first was deleted, and task second depends on it: submit the graph again'],
    ])
  })

  test('while what depends on the task runs', async () => {
    const id = await submit(control, [
      flaky('a'),
      { id: 'clean', type: 'approval', params: { message: 'tidy?' }, ...after('a'), run_if: 'always' },
    ])
    await until(async () => (await read(control, id, 'clean')).waiting?.reason, 'approval')
    expect(await refusal(`/graphs/${id}/tasks/a`)).toEqual([
      ...[
        409,
        'task clean, which runs again with it, is about to start: try again when it has ended, or cancel it first',
      ],
    ])
  })

  test('if its group is full and must not wait', async () => {
    const concurrency = { group: 'one', limit: 1, on_full: 'refuse' }
    const id = await submit(control, [flaky('a')], { concurrency })
    await ended(control, id)
    const holder = await submit(control, [{ id: 'ask', type: 'approval', params: { message: 'go?' } }], { concurrency })
    expect(await refusal(`/graphs/${id}`)).toEqual([
      ...[409, `concurrency: group "one" is full (limit 1): graph ${holder} has not ended`],
    ])
    await control.fetch(`/graphs/${holder}/cancel`, { method: 'POST' })
    await ended(control, holder)
    expect((await ask(control, `/graphs/${id}`)).status).toBe(202)
    await ended(control, id)
  })
})

test('a graph that waits for its place runs its retried tasks once it has one, also after a restart', async () => {
  using dir = tempDir()
  const concurrency = { group: 'one', limit: 1 }
  await using first = await startControl({ ...OPEN, dataDir: dir.path })
  const id = await submit(first, [flaky('a'), step('b', after('a'))], { concurrency })
  await ended(first, id)
  const holder = await submit(first, [{ id: 'ask', type: 'approval', params: { message: 'go?' } }], { concurrency })
  await until(async () => (await read(first, holder, 'ask')).waiting?.reason, 'approval')
  fix()
  expect((await ask(first, `/graphs/${id}`)).status).toBe(202)
  expect((await read(first, id, 'a')).waiting).toEqual({ reason: 'group', group: 'one', graphs: [holder] })
  await first.stop('SIGKILL')
  await using second = await startControl({ ...OPEN, dataDir: dir.path })
  expect((await read(second, id, 'a')).waiting).toEqual({ reason: 'group', group: 'one', graphs: [holder] })
  await second.fetch(`/graphs/${holder}/cancel`, { method: 'POST' })
  expect((await ended(second, id)).state).toBe('success')
})

test('a kill leaves all of a large retry', async () => {
  using dir = tempDir()
  await using first = await startControl({ ...OPEN, dataDir: dir.path })
  const count = 3 * MAX_RETRIED_SHOWN
  const asks = Array.from({ length: count }, (_, i) => ({
    id: `ask-${i}`,
    type: 'approval',
    params: { message: 'go?' },
  }))
  const id = await submit(first, asks)
  await first.fetch(`/graphs/${id}/cancel`, { method: 'POST' })
  await ended(first, id)
  const { body } = await ask(first, `/graphs/${id}`)
  expect(body).toMatchObject({ pending: count, truncated: true })
  expect((body.retried as readonly string[]).length).toBe(MAX_RETRIED_SHOWN)
  await first.stop('SIGKILL')
  await using second = await startControl({ ...OPEN, dataDir: dir.path })
  const graph = (await (await second.fetch(`/graphs/${id}`)).json()) as GraphDetails
  expect([graph.state, graph.counts]).toEqual(['running', { pending: count }])
})

test('events and callbacks tell of the retry and of the new end, also after a kill', async () => {
  using dir = tempDir()
  await using receiver = startReceiver()
  await using first = await startControl({ ...OPEN, dataDir: dir.path })
  const callback = { url: receiver.url, events: ['graph_ended', 'task_failed'] }
  const id = await submit(first, [flaky('b'), step('c', after('b'))], { callback })
  await receiver.has(2)
  await using stream = await EventStreamClient.open(`${first.url}/graphs/${id}/events`)
  await ask(first, `/graphs/${id}/tasks/b`)
  await receiver.has(4)
  await stream.once((events) => events.some(({ event }) => event === 'graph_ended'))
  await first.stop('SIGKILL')
  await using second = await startControl({ ...OPEN, dataDir: dir.path })
  fix()
  expect((await ask(second, `/graphs/${id}`)).status).toBe(202)
  expect((await ended(second, id)).state).toBe('success')
  const named = (ids: readonly string[]) => ids.map((name) => `${id}-${name}`)
  const deliveries = named([
    'graph_ended',
    'graph_ended-again-1',
    'graph_ended-again-2',
    'task_failed-0',
    'task_failed-0-again-1',
  ])
  await until(
    () => [...new Set(receiver.received.map(({ headers }) => headers.get('x-taskmill-delivery')))].sort(),
    (ids) => Bun.deepEquals(ids, deliveries),
  )
  const told = stream.events.filter(({ event }) => event === 'tasks_retried' || event === 'graph_ended')
  expect(told).toMatchObject([
    { event: 'tasks_retried', retried: ['b'], tasks: 2 },
    { event: 'graph_ended', state: 'failed' },
  ])
})
