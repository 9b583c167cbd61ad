/** POST /tasks/{id}/cancel in every state of a task, against the built service. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import type { CancelResponse } from '../../shared/contract/control.ts'
import { type Control, startControl } from '../support/control.ts'
import { waitFor } from '../support/runtime-tasks.ts'
import { isAlive, until } from '../support/until.ts'

let control: Control
/** Kills nothing that a busy machine has not yet let end. */
let patient: Control

beforeAll(async () => {
  const env = { SERVICE_SHELL_POLICY: 'open' }
  control = await startControl({ env, flags: ['--max-concurrency', '100', '--kill-grace', '200ms'] })
  patient = await startControl({ env, flags: ['--kill-grace', '10m'] })
})
afterAll(() => Promise.all([control.dispose(), patient.dispose()]))

const newId = () => crypto.randomUUID()
const aLongSleep = { type: 'sleep', params: { duration_ms: 600_000 } }

async function cancel(id: string, service = control): Promise<{ status: number; tasks: CancelResponse['tasks'] }> {
  const response = await service.fetch(`/tasks/${encodeURIComponent(id)}/cancel`, { method: 'POST' })
  return { status: response.status, tasks: ((await response.json()) as CancelResponse).tasks }
}

const requested = (id: string, status: string) => ({
  task_id: id,
  status,
  runtime: { status: status === 'cancelling' ? 'cancelling' : 'cancelled', error: { code: 'cancelled' } },
  event: { type: 'task_cancel_requested', task_id: id },
})

test('a pending task becomes cancelled at once, its downstream skipped', async () => {
  const [first, named, next, last] = [newId(), newId(), newId(), newId()]
  await control.submit([
    { id: first, ...aLongSleep },
    { id: named, type: 'noop', depends_on: [first] },
    { id: next, type: 'noop', depends_on: [named] },
    { id: last, type: 'noop', depends_on: [next, first] },
  ])
  const answer = await cancel(named)
  expect(answer).toEqual({
    status: 202,
    tasks: [requested(named, 'cancelled'), requested(next, 'skipped'), requested(last, 'skipped')],
  } as never)
  expect(await control.get(named)).toMatchObject({ status: 'cancelled', error: 'task cancelled' })
  expect(await control.get(named)).not.toHaveProperty('runtime')
  expect((await control.get(next)).error).toBe(`dependency ${named} cancelled`)
  expect((await control.get(last)).error).toBe(`dependency ${next} skipped`)
  expect((await control.get(first)).status).toBe('running')
  await cancel(first)
})

test('a running task is cancelling, then cancelled once its executor has stopped; its downstream is skipped', async () => {
  const [named, next] = [newId(), newId()]
  const script = 'trap "" TERM; sleep 600 & echo $! > /dev/null; wait; sleep 600'
  await control.submit([
    { id: named, type: 'shell', params: { script }, retry: 3 },
    { id: next, type: 'noop', depends_on: [named] },
  ])
  await control.reached(named, 'running')
  expect((await cancel(named)) as unknown).toEqual({ status: 202, tasks: [requested(named, 'cancelling')] })
  const ended = await control.ended(named)
  expect(ended).toMatchObject({
    status: 'cancelled',
    run_status: 'cancelled',
    attempt: 1,
    error: 'task cancelled',
    runtime: { status: 'cancelled', error: { code: 'cancelled', message: 'task cancelled' } },
  })
  expect((await control.ended(next)).error).toBe(`dependency ${named} cancelled`)
})

test('the process of a cancelled task and what it started are gone when it is cancelled', async () => {
  const named = newId()
  const file = `${patient.cwd}/${named}`
  const script = `sleep 600 & echo $$ $! > ${file}; wait`
  await patient.submit([{ id: named, type: 'shell', params: { script } }])
  const text = await until(
    () =>
      Bun.file(file)
        .text()
        .catch(() => ''),
    (pids) => pids.trim().split(' ').length === 2,
  )
  await cancel(named, patient)
  await patient.ended(named)
  expect(
    await Promise.all(
      text
        .trim()
        .split(' ')
        .map((pid) => isAlive(Number(pid))),
    ),
  ).toEqual([false, false])
})

test('a task between two attempts is cancelled at once and makes no further attempt', async () => {
  const named = newId()
  const backoff = { initial_ms: 6, factor: 100, max_ms: 600_000 } // a minute after the third attempt
  const params = { action: 'read', path: 'nothing' }
  await control.submit([{ id: named, type: 'file', params, retry: 20, backoff }])
  await until(
    () => control.get(named),
    (task) => task.run_status === 'accepted' && task.attempt! >= 3,
  )
  expect((await cancel(named)).tasks[0]).toEqual(requested(named, 'cancelled') as never)
  const { attempt, status } = await control.get(named)
  expect({ status, retries: attempt! < 21 }).toEqual({ status: 'cancelled', retries: true })
})

test('a terminal task: 202, unchanged status, no event', async () => {
  const good = await control.run({ type: 'noop' })
  expect((await cancel(good.id)) as unknown).toEqual({
    status: 202,
    tasks: [{ task_id: good.id, status: 'success', runtime: { status: 'success' } }],
  })
  const bad = await control.run({ type: 'file', params: { action: 'read', path: 'nothing' } })
  expect((await cancel(bad.id)) as unknown).toEqual({
    status: 202,
    tasks: [{ task_id: bad.id, status: 'failed', runtime: { status: 'failed', error: { code: 'not_found' } } }],
  })
  expect((await cancel(bad.id)).tasks[0]).not.toHaveProperty('event')
})

test('a second cancel changes nothing', async () => {
  const named = newId()
  const [isDeaf, mayEnd] = [`${patient.cwd}/deaf`, `${patient.cwd}/end`]
  const script = `trap "" TERM; : > ${isDeaf}; ${waitFor(mayEnd)}`
  await patient.submit([{ id: named, type: 'shell', params: { script } }])
  await until(() => Bun.file(isDeaf).exists())
  try {
    const answers = [await cancel(named, patient), await cancel(named, patient)]
    expect(answers.map(({ tasks }) => tasks[0]?.status)).toEqual(['cancelling', 'cancelling'])
    expect(await patient.get(named)).toMatchObject({
      ...{ status: 'cancelling', run_status: 'running', runtime: { status: 'cancelling' } },
    })
    expect((await patient.metrics()).tasks_running).toBe(1)
  } finally {
    await Bun.write(mayEnd, '')
  }
  expect((await patient.ended(named)).status).toBe('cancelled')
})

test('an unknown id: 404 as for GET', async () => {
  const response = await control.fetch('/tasks/nobody/cancel', { method: 'POST', body: 'whatever' })
  expect({ status: response.status, body: await response.json() }).toEqual({
    status: 404,
    body: { error: 'task not found: nobody' },
  })
})

test('skipped and cancelled count neither as succeeded nor as failed', async () => {
  const before = await control.metrics()
  const [named, next] = [newId(), newId()]
  await control.submit([
    { id: named, ...aLongSleep },
    { id: next, type: 'noop', depends_on: [named] },
  ])
  await control.reached(named, 'running')
  await cancel(named)
  await control.ended(next)
  const after = await control.metrics()
  expect(after.tasks_succeeded + after.tasks_failed).toBe(before.tasks_succeeded + before.tasks_failed)
  expect(after.tasks_running).toBe(0)
})

test('a cancel that takes 20,000 tasks along names them all', async () => {
  const root = newId()
  const tasks = Array.from({ length: 20_000 }, (_, i) => ({
    id: `${root}-${i}`,
    type: 'noop',
    depends_on: [i % 2 ? `${root}-${i - 1}` : root],
  }))
  const gate = newId()
  await control.submit([{ id: gate, ...aLongSleep }, { id: root, type: 'noop', depends_on: [gate] }, ...tasks])
  const answer = await cancel(root)
  expect(answer.tasks[0]?.task_id).toBe(root)
  expect(new Set(answer.tasks.map(({ task_id }) => task_id)).size).toBe(20_001)
  await cancel(gate)
})
