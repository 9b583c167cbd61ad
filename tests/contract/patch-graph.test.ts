/**
 * `PATCH /graphs/{id}`: a live graph gets other tasks. The built executables, over kills, with tokens and approvals.
 */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Taskmill } from '../../client/client.ts'
import { MAX_PATCHED_SHOWN } from '../../shared/contract/events.ts'
import { MAX_PATCH_TASKS, type PatchResponse } from '../../shared/contract/patch.ts'
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

const OPEN = { env: { SERVICE_SHELL_POLICY: 'open' } }
let control: Control
beforeAll(async () => {
  control = await startControl(OPEN)
})
afterAll(() => control.dispose())

const step = (id: string, more: object = {}) => ({
  ...{ id, type: 'shell', ...more },
  params: { script: `echo ${id} >> ${temp.path}/ran` },
})
const after = (...depends_on: string[]) => ({ depends_on })
/** Runs until it is approved. */
const gate = (id = 'gate') => ({ id, type: 'approval', params: { message: 'go?' } })
const ran = () => readFileSync(join(temp.path, 'ran'), 'utf8').trim().split('\n')

interface Answer {
  readonly status: number
  readonly body: PatchResponse & { readonly error: string }
}

async function patch(
  service: Control,
  id: string,
  body: object,
  headers: Record<string, string> = {},
): Promise<Answer> {
  const response = await service.fetch(`/graphs/${id}`, { method: 'PATCH', body: JSON.stringify(body), headers })
  return { status: response.status, body: (await response.json()) as Answer['body'] }
}

const asked = (service: Control, id: string, task = 'gate') =>
  until(async () => (await read(service, id, task)).waiting?.reason, 'approval')
const approve = (service: Control, id: string, task = 'gate') =>
  service.fetch(`/graphs/${id}/tasks/${task}/approve`, { method: 'POST', body: '{"who":"ada"}' })

test('tasks come, go and change while the graph runs', async () => {
  const id = await submit(control, [
    step('first'),
    gate(),
    step('gone', after('gate')),
    step('other', after('gate')),
    step('late', after('other')),
  ])
  await until(async () => (await read(control, id, 'first')).status, 'success')
  await asked(control, id)
  const { tasks_total } = await control.metrics()
  const answer = await patch(control, id, {
    revision: 0,
    add: [step('now', after('first')), step('new', after('gate', 'now')), step('newest', after('new', 'late'))],
    remove: ['gone'],
    replace: [{ ...step('replacement'), id: 'other', ...after('gate') }],
    change: { late: { retry: 2, priority: 5 } },
  })
  expect(answer).toEqual({
    status: 200,
    body: {
      ...{ graph_id: id, revision: 1, added: ['now', 'new', 'newest'], removed: ['gone'], replaced: ['other', 'late'] },
    } as never,
  })
  await until(async () => (await read(control, id, 'now')).status, 'success') // its dependency had ended
  expect((await control.fetch(`/graphs/${id}/tasks/gone`)).status).toBe(404)
  expect(await read(control, id, 'late')).toMatchObject({ status: 'pending', retry: 2, priority: 5 })
  await approve(control, id)
  const graph = await ended(control, id)
  expect(graph).toMatchObject({ state: 'success', task_count: 7, revision: 1 })
  expect(statusesOf(graph)).toEqual({
    ...{ first: 'success', gate: 'success', other: 'success', late: 'success' },
    ...{ now: 'success', new: 'success', newest: 'success' },
  })
  expect(ran().sort()).toEqual(['first', 'late', 'new', 'newest', 'now', 'replacement'])
  expect((await control.metrics()).tasks_total).toBe(tasks_total + 5)
})

test('a new task whose dependency has failed is skipped, and one with a rule runs', async () => {
  const id = await submit(control, [{ id: 'bad', type: 'shell', params: { script: 'exit 1' } }, gate()])
  await until(async () => (await read(control, id, 'bad')).status, 'failed')
  await patch(control, id, {
    add: [step('lost', after('bad')), { ...step('tidy', after('bad')), run_if: 'always' }, step('both', after('gate'))],
  })
  await until(async () => (await read(control, id, 'tidy')).status, 'success')
  expect((await read(control, id, 'lost')).status).toBe('skipped')
  await approve(control, id)
  expect(statusesOf(await ended(control, id))).toMatchObject({ both: 'success', gate: 'success' })
  expect(ran().sort()).toEqual(['both', 'tidy'])
})

test('children keep their places behind tasks that come and go', async () => {
  const member = { id: 'm', type: 'shell', params: { script: `echo m >> ${temp.path}/ran` } }
  const id = await submit(control, [
    gate(),
    step('gone', after('gate')),
    { id: 'each', for_each: [1, 2], tasks: [gate('ask'), { ...member, ...after('ask') }] },
  ])
  const child = (n: number) => control.fetch(`/graphs/${id}/tasks/${encodeURIComponent(`each[${n}]/ask`)}`)
  await until(async () => (await child(1)).status, 200)
  await asked(control, id, 'each[1]/ask')
  await patch(control, id, { add: [step('x', after('each')), step('y')], remove: ['gone'] })
  await patch(control, id, { remove: ['gate'] })
  await until(async () => (await read(control, id, 'y')).status, 'success')
  for (const task of ['each[0]/ask', 'each[1]/ask']) await approve(control, id, encodeURIComponent(task))
  const graph = await ended(control, id)
  expect([graph.state, graph.revision]).toEqual(['success', 2])
  expect(ran()).toEqual(['y', 'm', 'm', 'x'])
})

test('the last pending task may go: then the graph has ended', async () => {
  const id = await submit(control, [step('a'), gate()])
  await until(async () => (await read(control, id, 'a')).status, 'success')
  expect((await patch(control, id, { remove: ['gate'] })).status).toBe(200)
  expect(await ended(control, id)).toMatchObject({ state: 'success', task_count: 1 })
  expect((await patch(control, id, { add: [step('b')] })).body.error).toBe(
    `graph ${id} has ended: run it again (POST /graphs/${id}/rerun), or retry what failed (POST /graphs/${id}/retry)`,
  )
})

test('a dry run says what the patch would make of the graph, and changes nothing', async () => {
  const id = await submit(control, [gate(), step('a', after('gate')), step('b', after('a'))])
  const body = { add: [step('n', after('a'))], remove: ['b'], change: { a: { priority: 1 } } }
  const dry = async (given: object) => {
    const sent = { method: 'PATCH', body: JSON.stringify(given), headers: { 'idempotency-key': 'dry' } }
    const response = await control.fetch(`/graphs/${id}?dry_run=true`, sent)
    return { status: response.status, body: (await response.json()) as Answer['body'] }
  }
  const said = { graph_id: id, revision: 1, added: ['n'], removed: ['b'], replaced: ['a'] }
  const order = { waves: [['gate'], ['a'], ['n']], critical_path: ['gate', 'a', 'n'] }
  for (let n = 0; n < 2; n++) expect(await dry(body)).toEqual({ status: 200, body: { ...said, ...order } as never })
  expect((await dry({ remove: ['a'] })).body.error).toBe('task b depends on unknown task a')
  expect((await dry({ ...body, revision: 1 })).status).toBe(409)
  expect((await read(control, id, 'b')).status).toBe('pending')
  expect(await patch(control, id, body, { 'idempotency-key': 'dry' })).toEqual({ status: 200, body: said as never })
  await control.fetch(`/graphs/${id}/cancel`, { method: 'POST' })
})

test('programs and the command line patch', async () => {
  const client = new Taskmill({ url: control.url })
  const id = await submit(control, [gate(), step('gone', after('gate'))])
  const added = [{ ...step('n'), ...after('gate') }]
  expect(await client.patchGraph(id, { add: added }, { dryRun: true })).toMatchObject({
    waves: [['gate'], ['gone', 'n']],
  })
  expect(await client.patchGraph(id, { add: added }, { idempotencyKey: 'k' })).toMatchObject({
    revision: 1,
    added: ['n'],
  })
  await expect(client.patchGraph(id, { revision: 0, remove: ['n'] })).rejects.toThrow('has the revision 1 by now')
  writeFileSync(join(temp.path, 'patch.yaml'), 'remove: [gone]\nchange: {n: {timeout: soon}}\n')
  const run = async (args: readonly string[], stdin?: string) => {
    const { exitCode, envelope } = await runClient(['patch', ...args], { url: control.url, cwd: temp.path, stdin })
    return [exitCode, envelope.data ?? envelope.error!.message]
  }
  expect(await run([id, 'patch.yaml'])).toEqual([
    ...[1, 'patch.yaml: line 2, column 23: change.n.timeout: expected integer of milliseconds (30000), got "soon"'],
  ])
  const patchFile = '{"revision": 0, "remove": ["gone"]}'
  expect(await run([id, '--revision', '1', '--dry-run', '-'], patchFile)).toEqual([
    ...[0, expect.objectContaining({ revision: 2, removed: ['gone'], waves: [['gate'], ['n']] })],
  ])
  expect(await run([id, '-'], patchFile)).toEqual([1, expect.stringContaining('has the revision 1 by now')])
  const said = { graph_id: id, revision: 2, added: [], removed: ['gone'], replaced: [] }
  expect(await run([id, '--revision', '1'], patchFile)).toEqual([0, said])
  expect(await run([id, '--format', 'yaml'], '- a')).toEqual([
    ...[1, 'standard input is a list, or several documents: expected one object with add, remove, replace or change'],
  ])
  expect(await run([])).toEqual([2, 'no graph id: give it as argument'])
  await control.fetch(`/graphs/${id}/cancel`, { method: 'POST' })
})

describe('a patch is refused, and nothing happens', () => {
  let id: string
  beforeEach(async () => {
    id = await submit(control, [step('done'), gate(), step('next', after('gate')), step('last', after('next'))])
    await until(async () => (await read(control, id, 'done')).status, 'success')
  })
  afterEach(async () => {
    expect(statusesOf((await (await control.fetch(`/graphs/${id}`)).json()) as never)).toEqual({
      ...{ done: 'success', gate: 'pending', next: 'pending', last: 'pending' },
    })
    await control.fetch(`/graphs/${id}/cancel`, { method: 'POST' })
  })

  test.each([
    [{}, 400, 'the patch changes nothing: name tasks in add, remove, replace or change'],
    [{ remove: ['next'] }, 400, 'task last depends on unknown task next'],
    [{ remove: ['done'] }, 409, 'task done has ended (success): add a task with another id'],
    [{ remove: ['nobody'] }, 400, 'remove: the graph has no task "nobody"'],
    [{ change: { next: { depends_on: [] } } }, 400, 'change: "depends_on" of task next is none of'],
    [{ change: { next: { retry: -1 } } }, 400, 'task next: retry must be a non-negative integer'],
    [
      { add: [{ id: 'done', type: 'shell', params: { script: 'true' } }] },
      409,
      'add: the graph has a task done already',
    ],
    [{ add: [{ id: 'n', type: 'nothing' }] }, 400, 'unknown task type: nothing'],
    [{ add: [{ id: 'n', type: 'shell' }], adds: [] }, 400, 'unknown field "adds" (did you mean "add"?)'],
    [
      { replace: [{ id: 'next', type: 'shell', params: { script: 'true' }, depends_on: ['last'] }] },
      ...([400, 'cycle detected in task graph'] as const),
    ],
    [{ revision: 1, remove: ['last'] }, 409, 'has the revision 0 by now: read it again'],
    [{ add: 1 }, 400, 'invalid JSON: add: expected'],
  ] as const)('%j', async (body, status, error) => {
    const answer = await patch(control, id, body)
    expect([answer.status, answer.body.error]).toEqual([status, expect.stringContaining(error)])
  })
})

test('a task between two attempts, and one with children, have started', async () => {
  const bad = { type: 'shell', params: { script: 'exit 1' }, retry: 1, backoff: { initial_ms: 60_000 } }
  const id = await submit(control, [
    { id: 'bad', ...bad },
    { id: 'each', for_each: [1], tasks: [gate('ask')] },
  ])
  await until(async () => (await read(control, id, 'bad')).waiting?.reason, 'backoff')
  await until(async () => (await read(control, id, 'each')).status, 'running')
  for (const task of ['bad', 'each']) {
    const { status, body } = await patch(control, id, { remove: [task] })
    expect([status, body.error]).toEqual([409, `task ${task} has started: cancel it, and add a task with another id`])
  }
  await control.fetch(`/graphs/${id}/cancel`, { method: 'POST' })
})

test('a graph whose cancel has begun gets no tasks that the cancel would not reach, until a retry', async () => {
  await using own = await startControl({ ...OPEN, flags: ['--kill-grace', '60s'] })
  const [up, stop] = [join(temp.path, 'up'), join(temp.path, 'stop')]
  const script = `trap '' TERM; touch ${up}; until [ -e ${stop} ]; do sleep 0.02; done`
  const id = await submit(own, [{ id: 'slow', type: 'shell', params: { script } }, gate()])
  await until(() => existsSync(up), true)
  await own.fetch(`/graphs/${id}/cancel`, { method: 'POST' })
  const refused = await patch(own, id, { add: [step('late')] })
  expect([refused.status, refused.body.error]).toEqual([409, expect.stringContaining(`graph ${id} is cancelled: `)])
  writeFileSync(stop, '')
  expect((await ended(own, id)).state).toBe('cancelled')
  await own.fetch(`/graphs/${id}/retry`, { method: 'POST' })
  expect((await patch(own, id, { add: [step('late')] })).status).toBe(200)
  await until(async () => (await read(own, id, 'late')).status, 'success')
})

test('of two patches for one revision the second is refused, and a key repeats the answer', async () => {
  const id = await submit(control, [gate()])
  const bodies = [1, 2].map((n) => ({ revision: 0, add: [step(`n${n}`)] }))
  const answers = await Promise.all(bodies.map((body) => patch(control, id, body)))
  expect(answers.map(({ status }) => status)).toEqual([200, 409])
  const headers = { 'idempotency-key': 'once' }
  const first = await patch(control, id, { add: [step('keyed')] }, headers)
  expect(await patch(control, id, { add: [step('keyed')] }, headers)).toEqual(first)
  expect((await patch(control, id, { add: [step('else')] }, headers)).status).toBe(422)
  await control.fetch(`/graphs/${id}/cancel`, { method: 'POST' })
})

test('a list of a patch has a limit, and the answer names the first ids', async () => {
  const id = await submit(control, [gate()])
  const noop = (count: number) => Array.from({ length: count }, (_, i) => ({ id: `n${i}`, type: 'noop' }))
  expect((await patch(control, id, { add: noop(MAX_PATCH_TASKS + 1) })).status).toBe(400)
  const { body } = await patch(control, id, { add: noop(MAX_PATCHED_SHOWN + 1) })
  expect([body.added.length, body.truncated]).toEqual([MAX_PATCHED_SHOWN, true])
  await asked(control, id)
  await approve(control, id)
  expect((await ended(control, id)).counts).toEqual({ success: MAX_PATCHED_SHOWN + 2 })
})

test('a callback tells of a task and of its replacement, each once, also after a restart', async () => {
  using dir = tempDir()
  await using receiver = startReceiver()
  const start = () => startControl({ ...OPEN, flags: ['--callback-policy', 'any'], dataDir: dir.path })
  await using first = await start()
  const callback = { url: receiver.url, events: ['task_failed', 'approval_asked'] }
  const bad = { id: 'bad', type: 'shell', params: { script: 'exit 1' } }
  const id = await submit(first, [step('gone', { not_before: 60_000 }), bad, gate()], { callback })
  const told = () => [...new Set(receiver.received.map(({ headers }) => headers.get('x-taskmill-delivery')))]
  const names = (...ids: string[]) => ids.map((name) => `${id}-${name}`).sort()
  await until(() => told().sort(), names('task_failed-1', 'approval_asked-2'))
  await patch(first, id, { remove: ['gone'], replace: [{ ...gate(), timeout: 60_000 }] })
  const all = names('task_failed-1', 'approval_asked-2', 'approval_asked-gate-of-1')
  await until(() => told().sort(), all)
  await first.stop('SIGKILL')
  await using second = await start()
  await patch(second, id, { add: [{ ...bad, id: 'worse' }] })
  await until(() => told().sort(), [...all, `${id}-task_failed-worse-of-2`].sort())
})

test('an event tells the difference', async () => {
  const id = await submit(control, [gate(), step('a', after('gate'))])
  await using stream = await EventStreamClient.open(`${control.url}/graphs/${id}/events`)
  await asked(control, id)
  await patch(control, id, { add: [step('b', after('gate'))], remove: ['a'] })
  await approve(control, id)
  await stream.once((events) => events.some(({ event }) => event === 'graph_ended'))
  expect(stream.events.filter(({ event }) => event === 'graph_changed')).toMatchObject([
    { graph_id: id, revision: 1, added: ['b'], removed: ['a'], replaced: [] },
  ])
})

test.each([true, false])('patches survive a kill of the service, packed: %p', async (isPacked) => {
  using dir = tempDir()
  const start = () => startControl({ ...OPEN, dataDir: dir.path })
  await using first = await start()
  const later = ['b', 'c', 'd'].map((name) => step(name, after('gate')))
  const id = await submit(first, [step('a'), gate(), ...later])
  await asked(first, id)
  const headers = { 'idempotency-key': 'kept' }
  const body = { add: [step('n', after('a', 'gate'))], remove: ['b'], change: { c: { priority: 3 } } }
  const answer = await patch(first, id, body, headers)
  await until(async () => (await read(first, id, 'a')).status, 'success')
  await first.stop(isPacked ? 'SIGTERM' : 'SIGKILL')
  await using second = await start()
  const again = await patch(second, id, { add: [step('b', after('n'))], remove: ['d'] })
  expect(again.body).toMatchObject({ revision: 2, added: ['b'], removed: ['d'] })
  await second.stop('SIGKILL')
  await using third = await start()
  expect(await patch(third, id, body, headers)).toEqual(answer)
  expect(await read(third, id, 'c')).toMatchObject({ status: 'pending', priority: 3 })
  await asked(third, id)
  await approve(third, id)
  const graph = await ended(third, id)
  expect(graph).toMatchObject({ state: 'success', revision: 2 })
  expect(ran().sort()).toEqual(['a', 'b', 'c', 'n'])
})
