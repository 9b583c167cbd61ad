/**
 * POST /api/v1/tasks/:id/kill: who may, what ends, and how it is told.
 * Source: spec, Authentication and States B; contract 2, Kill and States; contract 5, Runtime.
 */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { TaskStatusResponse } from '../../shared/contract/runtime.ts'
import { headerValue } from '../../shared/http/header-text.ts'
import { type Runtime, startRuntime } from '../support/runtime.ts'
import { refused, SLEEP, script, waitFor } from '../support/runtime-tasks.ts'
import { noProcessesOf } from '../support/task-processes.ts'
import { tempDir } from '../support/temp.ts'
import { isAlive, until } from '../support/until.ts'

const CANCELLED = { status: 'cancelled', error: { code: 'cancelled' } }
const owned = (owner: string) => ({ ...SLEEP, control_context: { owner } })

let runtime: Runtime
beforeAll(async () => {
  runtime = await startRuntime({ flags: ['--max-running-tasks', '16'] })
})
afterAll(() => runtime.dispose())

/** Kills what must let itself be killed, and gives the answer. */
async function kill(id: string, headers: Record<string, string> = {}): Promise<TaskStatusResponse> {
  const response = await runtime.kill(id, headers)
  expect(response.status).toBe(200)
  expect(response.headers.get('content-type')).toStartWith('application/json')
  return (await response.json()) as TaskStatusResponse
}

const count = async (id: string, type: string) =>
  (await runtime.eventTypes(id)).filter((found) => found === type).length

describe('a kill of a running task', () => {
  test('answers its status at once, and it ends as cancelled by SIGTERM', async () => {
    const id = await runtime.submit(SLEEP)
    await runtime.reached(id, 'running')
    const answer = await kill(id)
    expect(answer).toMatchObject({ task_id: id, handle_id: id })
    expect(['running', 'cancelled']).toContain(answer.status)
    const task = await runtime.ended(id)
    expect(task).toMatchObject({ ...CANCELLED, exit_signal: 15 })
    expect(task.error!.message).not.toBe('')
    expect(await isAlive(task.pid!)).toBe(false)
  })

  test('answers at once although the task takes its time', async () => {
    await using patient = await startRuntime({ flags: ['--termination-grace-ms', '60000'] })
    const id = await patient.script('trap "echo asked" TERM; echo ready; while :; do sleep 0.02; done')
    await patient.printed(id)
    const { pid } = await patient.reached(id, 'running')
    const answer = (await (await patient.kill(id)).json()) as TaskStatusResponse
    expect(answer.status).toBe('running')
    // Only then has the launcher taken the kill: a task that ends before it does has ended by itself.
    await patient.printed(id, (stdout) => stdout.includes('asked'))
    expect(await isAlive(pid!)).toBe(true)
    process.kill(pid!, 'SIGKILL')
    expect(await patient.ended(id)).toMatchObject({ ...CANCELLED, exit_signal: 9 })
  })

  test('escalates to SIGKILL after the termination grace period', async () => {
    const id = await runtime.script('trap "" TERM; echo ready; while :; do sleep 0.01; done')
    await runtime.printed(id)
    const start = Date.now()
    await kill(id)
    const task = await runtime.ended(id)
    expect(task).toMatchObject({ ...CANCELLED, exit_signal: 9 })
    expect(Date.parse(task.finished_at!) - start).toBeGreaterThanOrEqual(490) // of 500
  })

  test('reaches grandchildren, those that ignore TERM, and those that left the group and the session', async () => {
    const id = await runtime.script(
      `sh -c 'sleep 600 & echo $!; wait' &
       sh -c 'trap "" TERM HUP INT; echo $$; while :; do sleep 0.05; done' &
       setsid sh -c 'echo $$; setsid sh -c "trap \\"\\" TERM; echo \\$\\$; while :; do sleep 0.05; done" & wait' &
       setsid env -i /bin/sh -c 'echo $$; cd /; exec sleep 600 < /dev/null 2> /dev/null' &
       wait`,
    )
    const { stdout, artifacts } = await runtime.printed(id, (text) => text.split('\n').length === 6)
    const pids = stdout.trim().split('\n').map(Number)
    expect(await Promise.all(pids.map(isAlive))).toEqual([true, true, true, true, true])
    await kill(id)
    expect(await runtime.ended(id)).toMatchObject(CANCELLED)
    expect(await Promise.all(pids.map(isAlive))).toEqual([false, false, false, false, false])
    expect(await noProcessesOf(artifacts.task_dir)).toEqual([])
  })

  test('a second kill adds no event and does not hurry', async () => {
    const id = await runtime.script('trap "" TERM; echo ready; while :; do sleep 0.01; done')
    await runtime.printed(id)
    const answers = await Promise.all([kill(id), kill(id), kill(id)])
    for (const { status } of answers) expect(['running', 'cancelled']).toContain(status)
    await kill(id)
    expect(await runtime.ended(id)).toMatchObject(CANCELLED)
    await kill(id)
    expect(await count(id, 'kill_requested')).toBe(1)
    expect(await count(id, 'cancelled')).toBe(1)
  })
})

describe('a kill of a task that has not started cancels it directly', () => {
  test('the answer is cancelled, and it never runs', async () => {
    await using narrow = await startRuntime({ flags: ['--max-running-tasks', '1'] })
    const first = await narrow.submit(SLEEP)
    const mark = join(narrow.dataDir, 'mark')
    const id = await narrow.submit(script(`echo > ${mark}`))
    // A slow disk may delay the end beyond the answer.
    const answer = await until(
      async () => (await (await narrow.kill(id)).json()) as TaskStatusResponse,
      ({ status }) => status !== 'accepted',
    )
    expect(answer).toMatchObject({ ...CANCELLED, stdout: '', stderr: '' })
    for (const field of ['started_at', 'pid', 'exit_code', 'exit_signal']) expect(answer).not.toHaveProperty(field)
    expect(answer.finished_at).toBeDefined()
    await narrow.kill(first)
    expect((await narrow.runScript(`[ -e ${mark} ]`)).exit_code).toBe(1)
    expect((await narrow.resources()).accepted_waiting_tasks).toBe(0)
  })

  test('at the moment of its start it either runs to its end as cancelled, or never runs', async () => {
    for (let i = 0; i < 15; i++) {
      const id = await runtime.submit({ ...SLEEP, task_id: `moment-${i}` })
      await kill(id)
      expect(await runtime.ended(id)).toMatchObject(CANCELLED)
      const types = await runtime.eventTypes(id)
      expect(types.at(-1)).toBe('cancelled')
      expect(types.includes('resource_released')).toBe(types.includes('resource_reserved'))
      expect(await count(id, 'kill_requested')).toBe(1)
      expect(await noProcessesOf(join(runtime.dataDir, 'tasks', id))).toEqual([])
    }
    expect(
      (await runtime.resources()).active_reservations.filter(({ task_id }) => task_id.startsWith('moment')),
    ).toEqual([])
  })
})

describe('a kill of a terminal task', () => {
  test.each(['exit 0', 'exit 3'])('is 200 and no change: %s', async (text) => {
    const task = await runtime.runScript(text)
    const events = await runtime.events(task.task_id)
    expect(await kill(task.task_id)).toEqual(task)
    expect(await runtime.get(task.task_id)).toEqual(task)
    expect(await runtime.events(task.task_id)).toEqual(events)
  })

  test('a task that ended by itself before TERM was sent keeps its true outcome', async () => {
    const go = join(runtime.dataDir, 'go')
    const ids = await Promise.all(Array.from({ length: 8 }, () => runtime.script(`${waitFor(go)}; exit 5`)))
    for (const id of ids) await runtime.reached(id, 'running')
    await Bun.write(go, '')
    for (let isRunning = true; isRunning; ) {
      await Promise.all(ids.map((id) => runtime.kill(id)))
      isRunning = (await Promise.all(ids.map((id) => runtime.get(id)))).some(({ status }) => status === 'running')
    }
    for (const id of ids) {
      const task = await runtime.ended(id)
      if (task.status === 'failed') expect(task).toMatchObject({ exit_code: 5, error: { code: 'exit_nonzero' } })
      else expect(task).toMatchObject(CANCELLED)
    }
  })
})

describe('x-service-owner', () => {
  test('must have the value of control_context.owner, else 403 permission_denied and nothing happens', async () => {
    const id = await runtime.submit(owned('team-a'))
    await runtime.reached(id, 'running')
    for (const headers of [
      {},
      { 'x-service-owner': 'team-b' },
      { 'x-service-owner': '' },
      { 'x-service-owner': 'TEAM-A' },
    ]) {
      const answer = await refused(await runtime.kill(id, headers as Record<string, string>))
      expect(answer).toEqual([403, 'permission_denied', "kill requires owner 'team-a'"])
    }
    expect((await runtime.get(id)).status).toBe('running')
    expect(await count(id, 'kill_requested')).toBe(0)
    await kill(id, { 'X-Service-Owner': 'team-a' })
    expect(await runtime.ended(id)).toMatchObject(CANCELLED)
  })

  test('may be any text that a task may have', async () => {
    const owner = 'é 😀 & ада'
    const id = await runtime.submit(owned(owner))
    await runtime.reached(id, 'running')
    expect((await runtime.kill(id, { 'x-service-owner': headerValue('ä') })).status).toBe(403)
    // As the bytes are that curl sends.
    await kill(id, { 'x-service-owner': Buffer.from(owner).toString('latin1') })
    expect(await runtime.ended(id)).toMatchObject(CANCELLED)
  })

  test('guards a task that waits, too', async () => {
    await using narrow = await startRuntime({ flags: ['--max-running-tasks', '1'] })
    await narrow.submit(SLEEP)
    const id = await narrow.submit(owned('team-a'))
    expect((await refused(await narrow.kill(id)))[0]).toBe(403)
    expect((await narrow.get(id)).status).toBe('accepted')
    expect((await narrow.kill(id, { 'x-service-owner': 'team-a' })).status).toBe(200)
    expect((await narrow.ended(id)).status).toBe('cancelled')
  })

  test('is not needed where the task has no owner, and may be sent', async () => {
    const id = await runtime.submit(SLEEP)
    await kill(id, { 'x-service-owner': 'anybody' })
    expect(await runtime.ended(id)).toMatchObject(CANCELLED)
  })

  test('is no credential: everybody may read', async () => {
    const id = await runtime.submit(owned('team-a'))
    for (const path of ['', '/events', '/logs?stream=stdout']) {
      expect((await runtime.fetch(`/api/v1/tasks/${id}${path}`)).status).toBe(200)
    }
  })
})

test('a kill that is 200 is on disk before it is answered: of a task that runs, and of one that waits', async () => {
  using dir = tempDir()
  const ran = join(dir.path, 'ran')
  await using before = await startRuntime({ dataDir: join(dir.path, 'data'), flags: ['--max-running-tasks', '1'] })
  const holder = await before.script('trap "" TERM; echo on; while :; do sleep 0.02; done')
  await before.printed(holder)
  const waits = await before.script(`echo ran > ${ran}`)
  // Those who ask at the same time share one kill.
  // The holder last, for its end lets the other one run.
  const answers = await Promise.all([waits, waits, holder, holder].map((id) => before.kill(id)))
  await before.stop('SIGKILL')
  expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200])
  await using after = await startRuntime({ dataDir: join(dir.path, 'data'), flags: ['--max-running-tasks', '1'] })
  for (const id of [holder, waits]) {
    expect(await after.ended(id)).toMatchObject({ status: 'cancelled', error: { code: 'cancelled' } })
    expect((await after.eventTypes(id)).filter((type) => type === 'kill_requested').length).toBe(1)
  }
  expect(existsSync(ran)).toBe(false)
})

test('a kill bars the id of a task that is unknown, if it can be the id of one', async () => {
  const barred = async (id: string) => {
    const response = await runtime.kill(id, { 'x-service-bar': 'true' })
    return [response.status, ((await response.json()) as { error: { details: unknown } }).error.details]
  }
  expect(await barred('a'.repeat(128))).toEqual([404, { barred: true }])
  for (const id of ['a'.repeat(129), 'a%20b']) expect(await barred(id)).toEqual([404, null])
})
