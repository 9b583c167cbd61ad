/**
 * A runtime task is cancelled, whatever it is just doing: both services agree about it, and no process of it is left.
 * Source: contract 1, Cancel and Executors (runtime).
 */
import { describe, expect, test } from 'bun:test'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { hasEnded } from '../../shared/contract/runtime-status.ts'
import { freePort } from '../support/free-port.ts'
import { Pair, startPair } from '../support/pair.ts'
import { gone } from '../support/task-processes.ts'
import { isAlive, until } from '../support/until.ts'

const cancel = async (pair: Pair, id: string) => {
  const response = await pair.control.fetch(`/tasks/${id}/cancel`, { method: 'POST' })
  expect(response.status).toBe(202)
  return (await response.json()) as { tasks: { task_id: string; status: string }[] }
}

describe('a cancel of a runtime task', () => {
  test('that waits for another one: the runtime service never hears of it', async () => {
    await using pair = await startPair()
    await pair.control.submit([
      { id: 'first', type: 'sleep', params: { duration_ms: 600_000 } },
      { id: 'second', type: 'runtime.script', params: { script: 'echo' }, depends_on: ['first'] },
    ])
    expect((await cancel(pair, 'second')).tasks).toMatchObject([{ task_id: 'second', status: 'cancelled' }])
    await cancel(pair, 'first')
    await pair.control.allEnded()
    expect(await pair.runtime.json('/api/v1/tasks')).toEqual({ tasks: [] })
  })

  test('that was deleted, with its graph, also if control is killed right then', async () => {
    await using pair = await startPair()
    const tasks = [{ id: 'a', type: 'runtime.script', params: { script: 'echo; sleep 600' } }]
    const { graph_id } = await pair.control.submit([...tasks, { id: 'b', type: 'noop' }])
    const { task_id } = await pair.running('a')
    expect((await pair.control.fetch('/tasks/a', { method: 'DELETE' })).status).toBe(204)
    expect((await pair.control.fetch(`/graphs/${graph_id}/cancel`, { method: 'POST' })).status).toBe(202)
    await pair.stopControl('SIGKILL')
    await pair.startControl()
    // Its removal follows its end, so the runtime service may not know it any more.
    await until(
      async () => {
        const response = await pair.runtime.fetch(`/api/v1/tasks/${task_id}`)
        return response.status === 404 ? 'gone' : ((await response.json()) as { status: string }).status
      },
      (status) => status === 'cancelled' || status === 'gone',
    )
    await pair.isQuiet()
    await until(
      async () => (await (await pair.control.fetch(`/graphs/${graph_id}`)).json()) as { state: string },
      ({ state }) => state !== 'running',
    )
  })

  test('that waits in the queue there', async () => {
    await using pair = await startPair({ runtimeFlags: ['--max-running-tasks', '1'] })
    await pair.script('holder', 'echo; sleep 600')
    await pair.running('holder')
    await pair.script('waiting', `echo ran >> ${pair.file('ran')}`)
    await pair.there('waiting', ({ status }) => status === 'accepted')
    expect((await cancel(pair, 'waiting')).tasks).toMatchObject([{ status: 'cancelling' }])
    const { here, there } = await pair.ended('waiting')
    expect([here.status, there.status]).toEqual(['cancelled', 'cancelled'])
    await cancel(pair, 'holder')
    await pair.ended('holder')
    expect(pair.lines('ran')).toEqual([])
    await pair.isQuiet()
  })

  test('that runs: its process and those it started are gone before it is cancelled', async () => {
    await using pair = await startPair()
    await pair.script('a', 'sleep 600 & setsid sleep 600 & echo $! $$; wait')
    const { stdout, pid } = await pair.running('a')
    await cancel(pair, 'a')
    const { here, there } = await pair.ended('a')
    expect(here).toMatchObject({ status: 'cancelled', error: 'task cancelled' })
    expect(here.runtime).toMatchObject({ status: 'cancelled', error: { code: 'cancelled' } })
    expect(there).toMatchObject({ status: 'cancelled', error: { code: 'cancelled' } })
    for (const one of [pid!, ...stdout!.trim().split(' ').map(Number)]) expect(await isAlive(one)).toBe(false)
    await pair.isQuiet()
  })

  test('that is cancelled, not failed, whatever it makes of its TERM, and keeps what it did', async () => {
    await using pair = await startPair()
    await pair.script('a', `trap 'echo bye; exit 0' TERM; echo; while :; do sleep 0.02; done`, { retry: 3 })
    await pair.running('a')
    await cancel(pair, 'a')
    const { here, there } = await pair.ended('a')
    expect(here).toMatchObject({ status: 'cancelled', attempt: 1, result: { stdout: '\nbye\n', status: 'cancelled' } })
    expect(there.status).toBe('cancelled')
  })

  test('that takes longer to end than control is patient with its own: it is cancelling until then', async () => {
    await using pair = await startPair({
      controlFlags: ['--kill-grace', '0s'],
      runtimeFlags: ['--termination-grace-ms', '8000'],
    })
    await pair.script('a', `trap '' TERM; echo; while :; do sleep 0.02; done`)
    const { pid } = await pair.running('a')
    await cancel(pair, 'a')
    await pair.there('a', ({ status }) => status === 'running')
    expect((await pair.control.get('a')).status).toBe('cancelling')
    const { here, there } = await pair.ended('a')
    expect([here.status, there.status]).toEqual(['cancelled', 'cancelled'])
    await gone(pid!)
  })

  test('at any moment of its life', async () => {
    await using pair = await startPair()
    const ids = Array.from({ length: 40 }, (_, i) => `task-${i}`)
    for (const [i, id] of ids.entries()) {
      await pair.script(id, `echo ${id} >> ${pair.file('ran')}; exec sleep 600`)
      // Each a little later in its life than the one before.
      const until = performance.now() + i / 2
      while (performance.now() < until) await Promise.resolve()
      await cancel(pair, id)
    }
    for (const id of ids) {
      const here = await pair.control.ended(id)
      expect(here.status).toBe('cancelled')
      if (here.handle_id === undefined) continue
      const response = await pair.runtime.fetch(`/api/v1/tasks/${here.handle_id}`)
      if (response.status === 200) expect(((await response.json()) as { status: string }).status).toBe('cancelled')
      else expect(response.status).toBe(404)
    }
    const { tasks } = await pair.runtime.json<{ tasks: { status: string }[] }>('/api/v1/tasks?limit=1000')
    await until(
      async () => (await pair.runtime.json<{ tasks: { status: string }[] }>('/api/v1/tasks?limit=1000')).tasks,
      (all) => all.every(({ status }) => hasEnded(status)),
    )
    expect(tasks.length).toBeGreaterThan(0)
    expect(new Set(pair.lines('ran')).size).toBe(pair.lines('ran').length)
    await pair.isQuiet()
  })
})

describe('a cancel while the runtime service is away', () => {
  test('is made true by a restart of control and of it, in any order', async () => {
    await using pair = new Pair(await freePort(), { controlEnv: { SERVICE_RUNTIME_OWNER: 'ada' } })
    await pair.startRuntime()
    await pair.startControl()
    await pair.script('a', 'echo; sleep 600')
    const { pid, task_id } = await pair.running('a')
    await pair.stopRuntime('SIGKILL')
    await cancel(pair, 'a')
    expect((await pair.control.get('a')).status).toBe('cancelling')
    await pair.stopControl('SIGKILL')
    expect(await isAlive(pid!)).toBe(true)
    await pair.startControl()
    expect((await pair.control.get('a')).status).toBe('cancelled')
    const told = await pair.control.get('a')
    await pair.stopControl('SIGKILL')
    await pair.startControl()
    await pair.startRuntime()
    expect((await pair.runtime.ended(task_id)).status).toBe('cancelled')
    await gone(pid!)
    expect(await pair.control.get('a')).toEqual(told)
  })

  test.each([
    ['alone in its graph', []],
    ['one of several', [{ id: 'other', type: 'sleep', params: { duration_ms: 600_000 } }]],
  ])('is made true also of a task that is deleted then, %s', async (_, others) => {
    await using pair = await startPair({ controlFlags: ['--persist-interval', '20ms'] })
    await pair.control.submit([{ id: 'a', type: 'runtime.script', params: { script: 'echo; sleep 600' } }, ...others])
    const { pid, task_id } = await pair.running('a')
    await pair.stopRuntime('SIGKILL')
    await cancel(pair, 'a')
    expect((await pair.control.fetch('/tasks/a', { method: 'DELETE' })).status).toBe(204)
    // The state file has no place for it, and the journal that had its graph is gone.
    await pair.control.submit([{ id: 'later', type: 'noop' }])
    const statePath = join(pair.control.dataDir, 'state.json')
    await until(
      () => (existsSync(statePath) ? (JSON.parse(readFileSync(statePath, 'utf8')) as object) : {}),
      (state) => 'later' in state && !('a' in state),
    )
    await pair.stopControl('SIGKILL')
    await pair.startControl()
    await pair.startRuntime()
    expect((await pair.runtime.ended(task_id)).status).toBe('cancelled')
    await gone(pid!)
  })

  test('does not wait for it for ever', async () => {
    await using pair = await startPair()
    await pair.script('a', 'echo; sleep 600')
    const { pid, task_id } = await pair.running('a')
    await pair.stopRuntime('SIGKILL')
    await cancel(pair, 'a')
    expect((await pair.control.ended('a')).status).toBe('cancelled')
    expect(await isAlive(pid!)).toBe(true)
    await pair.startRuntime()
    expect((await pair.runtime.ended(task_id)).status).toBe('cancelled')
    await gone(pid!)
  })

  test('of a task that goes on with its attempt later, after a restart, ends it there at once', async () => {
    await using pair = await startPair()
    for (const id of ['a', 'b']) await pair.script(id, 'echo; sleep 600')
    const pids = [(await pair.running('a')).pid!, (await pair.running('b')).pid!]
    await pair.stopControl('SIGKILL')
    await pair.startControl(['--max-concurrency', '1'])
    const waiting = await until(
      () => pair.control.list(),
      (tasks) => tasks.some(({ status }) => status === 'running'),
    )
    const id = waiting.find(({ status }) => status === 'pending')!.id
    expect((await cancel(pair, id)).tasks).toMatchObject([{ task_id: id, status: 'cancelled' }])
    await pair.ended(id)
    await gone(pids[id === 'a' ? 0 : 1]!)
    const other = id === 'a' ? 'b' : 'a'
    expect(await isAlive(pids[other === 'a' ? 0 : 1]!)).toBe(true)
    await cancel(pair, other)
    await pair.ended(other)
  })
})
