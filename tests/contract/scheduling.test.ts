/** When tasks run: dependencies, the concurrency limit, retries, timeouts, skips, large graphs. Source: spec, A and Limits A. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { TaskRecord } from '../../shared/contract/control.ts'
import { type Control, startControl } from '../support/control.ts'
import { type TempDir, tempDir } from '../support/temp.ts'
import { isAlive, until } from '../support/until.ts'
import { Gate } from './gate.ts'

let control: Control
let temp: TempDir
beforeAll(async () => {
  temp = tempDir()
  control = await startControl({ env: { SERVICE_SHELL_POLICY: 'open' }, flags: ['--kill-grace', '200ms'] })
})
afterAll(async () => {
  await control.dispose()
  temp[Symbol.dispose]()
})

const script = (id: string, text: string, more: object = {}) => ({
  id,
  type: 'shell',
  params: { script: text, dir: temp.path },
  ...more,
})
const startOf = (task: TaskRecord) => Date.parse(task.started_at!)
const endOf = (task: TaskRecord) => Date.parse(task.finished_at!)

/** The most tasks that ran at one moment. One that starts in the millisecond in which another ends came after it. */
function mostAtOnce(tasks: readonly TaskRecord[]): number {
  const moments = tasks.flatMap((task) => [
    { at: startOf(task), change: 1 },
    { at: endOf(task), change: -1 },
  ])
  moments.sort((a, b) => a.at - b.at || a.change - b.change)
  let now = 0
  return Math.max(...moments.map(({ change }) => (now += change)))
}

describe('dependencies', () => {
  test('a task runs once all of its dependencies have succeeded', async () => {
    const nap = (id: string, depends_on: string[] = []) => ({
      ...{ id, type: 'sleep', params: { duration_ms: 15 }, depends_on },
    })
    await control.submit([
      nap('roof', ['walls', 'beams']),
      nap('beams', ['walls', 'ground']),
      nap('walls', ['ground']),
      nap('ground'),
    ])
    await control.ended('roof')
    for (const id of ['roof', 'beams', 'walls', 'ground']) {
      const task = await control.get(id)
      expect(task.status).toBe('success')
      for (const dependency of task.depends_on ?? []) {
        expect(startOf(task)).toBeGreaterThanOrEqual(endOf(await control.get(dependency)))
      }
    }
  })

  test('a task waits for the last of its dependencies', async () => {
    using gate = new Gate()
    await control.submit([
      { id: 'quick', type: 'noop' },
      gate.task('slow'),
      { id: 'both', type: 'noop', depends_on: ['quick', 'slow'] },
    ])
    await control.ended('quick')
    await control.reached('slow', 'running')
    expect((await control.get('both')).status).toBe('pending')
    gate.open()
    expect((await control.ended('both')).status).toBe('success')
  })
})

describe('maximum concurrent task executions', () => {
  const naps = (count: number, duration_ms: number) =>
    Array.from({ length: count }, (_, i) => ({ id: `nap-${i}`, type: 'sleep', params: { duration_ms } }))

  test('--max-concurrency 2 runs two at once and never three', async () => {
    await using narrow = await startControl({ flags: ['--max-concurrency', '2'] })
    await narrow.submit(naps(7, 40))
    expect(mostAtOnce(await narrow.allEnded())).toBe(2)
  })

  test('the limit is 10 by default', async () => {
    await using normal = await startControl()
    await normal.submit(naps(25, 60))
    expect(mostAtOnce(await normal.allEnded())).toBe(10)
  })

  test('the limit holds over several graphs', async () => {
    await using single = await startControl({ flags: ['--max-concurrency', '1'] })
    for (const task of naps(4, 20)) await single.submit([task])
    expect(mostAtOnce(await single.allEnded())).toBe(1)
  })

  test('during backoff no slot is held', async () => {
    await using single = await startControl({ flags: ['--max-concurrency', '1'] })
    await single.submit([
      { id: 'failing', type: 'os', tool_name: 'no-such-tool', retry: 2 },
      { id: 'other', type: 'sleep', params: { duration_ms: 10 } },
    ])
    const failing = await single.ended('failing')
    const other = await single.get('other')
    expect(failing).toMatchObject({ status: 'failed', attempt: 3 })
    expect(startOf(other)).toBeGreaterThanOrEqual(startOf(failing))
    expect(endOf(other)).toBeLessThan(endOf(failing))
  })
})

describe('retry', () => {
  const stamps = (name: string) =>
    readFileSync(join(temp.path, name), 'utf8')
      .trim()
      .split('\n')
      .map((nanoseconds) => Number(BigInt(nanoseconds) / 1_000_000n))

  test('the n-th attempt starts 100 ms × 2^(n−2) after the one before, and there are retry + 1', async () => {
    await control.submit([script('thrice', 'date +%s%N >> thrice; exit 7', { retry: 2 })])
    const task = await control.ended('thrice')
    expect(task).toMatchObject({
      status: 'failed',
      attempt: 3,
      error: 'task failed after all retries: command failed: exit status 7',
      runtime: { attempt: 3, error: { code: 'exit_nonzero' } },
    })
    const [first, second, third, ...more] = stamps('thrice')
    expect(second! - first!).toBeGreaterThanOrEqual(100)
    expect(third! - second!).toBeGreaterThanOrEqual(200)
    expect(more).toEqual([])
  })

  test('an attempt that succeeds ends the task', async () => {
    await control.submit([script('second-try', 'date +%s%N >> tried; test $(wc -l < tried) -ge 2', { retry: 5 })])
    const task = await control.ended('second-try')
    expect(task).toMatchObject({ status: 'success', run_status: 'success', attempt: 2, result: { exit_code: 0 } })
    expect(task).not.toHaveProperty('error')
    expect(task.runtime).not.toHaveProperty('error')
    expect(stamps('tried')).toHaveLength(2)
  })

  test('started_at is that of the first attempt, runtime.started_at that of the last', async () => {
    await control.submit([{ id: 'two-starts', type: 'os', tool_name: 'no-such-tool', retry: 1 }])
    const task = await control.ended('two-starts')
    expect(Date.parse(task.runtime!.started_at!) - startOf(task)).toBeGreaterThanOrEqual(99)
  })
})

describe('timeout', () => {
  test('fails the attempt and kills all that it started, grandchildren too', async () => {
    const grandchild = '(sleep 600 & echo $! > grandchild; wait) & echo $! > child; echo $$ > leader; wait'
    await control.submit([script('slow', grandchild, { timeout: 4_000 })])
    const task = await control.ended('slow')
    expect(task).toMatchObject({
      status: 'failed',
      error: 'task timed out after 4000ms',
      runtime: { error: { code: 'timeout', message: 'task timed out after 4000ms' } },
    })
    expect(endOf(task) - startOf(task)).toBeGreaterThanOrEqual(3_999)
    for (const name of ['leader', 'child', 'grandchild']) {
      const pid = Number(readFileSync(join(temp.path, name), 'utf8'))
      expect(pid).toBeGreaterThan(1)
      await until(() => isAlive(pid), false)
    }
  })

  test('is applied to each attempt', async () => {
    await control.submit([script('each', 'exec sleep 600', { timeout: 60, retry: 2 })])
    const { attempts, ...task } = await control.ended('each')
    expect(task).toMatchObject({ attempt: 3, error: 'task failed after all retries: task timed out after 60ms' })
    const lengths = attempts!.map(({ started_at, finished_at }) => Date.parse(finished_at!) - Date.parse(started_at!))
    expect(lengths).toHaveLength(3)
    for (const lengthMs of lengths) expect(lengthMs).toBeGreaterThanOrEqual(59)
  })

  test.each([0, -1, -250])('of %d means none', async (timeout) => {
    const task = await control.run({ type: 'sleep', params: { duration_ms: 30 }, timeout })
    expect(task.status).toBe('success')
  })

  test('of the largest int64 is one that never comes', async () => {
    const body = `{"tasks":[{"id":"patient","type":"sleep","params":{"duration_ms":30},"timeout":${2n ** 63n - 1n}}]}`
    expect((await control.post(body)).status).toBe(202)
    expect((await control.ended('patient')).status).toBe('success')
  })

  test('frees the slot of the attempt', async () => {
    await using single = await startControl({ flags: ['--max-concurrency', '1'] })
    await single.submit([
      { id: 'stuck', type: 'sleep', params: { duration_ms: 600_000 }, timeout: 50 },
      { id: 'next', type: 'noop' },
    ])
    expect((await single.ended('next')).status).toBe('success')
    expect((await single.get('stuck')).status).toBe('failed')
  })
})

describe('skip', () => {
  test('cascades: a skipped task says which dependency failed or was skipped', async () => {
    await control.submit([
      { id: 'a', type: 'os', tool_name: 'no-such-tool' },
      { id: 'b', type: 'noop', depends_on: ['a'] },
      { id: 'c', type: 'noop', depends_on: ['b'] },
      { id: 'd', type: 'noop', depends_on: ['c'] },
      { id: 'aside', type: 'noop' },
      { id: 'after-aside', type: 'noop', depends_on: ['aside'] },
    ])
    const d = await control.ended('d')
    expect(d).toMatchObject({ status: 'skipped', error: 'dependency c skipped' })
    expect(await control.get('c')).toMatchObject({ status: 'skipped', error: 'dependency b skipped' })
    expect(await control.get('b')).toMatchObject({ status: 'skipped', error: 'dependency a failed' })
    expect((await control.ended('after-aside')).status).toBe('success')
  })

  test('comes when a dependency has failed, not when it may still be retried', async () => {
    using gate = new Gate()
    gate.open(500)
    await control.submit([gate.task('shaky', { retry: 8 }), { id: 'hopeful', type: 'noop', depends_on: ['shaky'] }])
    await until(
      () => gate.arrivals,
      (arrivals) => arrivals >= 2,
    )
    expect((await control.get('hopeful')).status).toBe('pending')
    gate.open(200)
    expect((await control.ended('hopeful')).status).toBe('success')
  })

  test('does not wait for other dependencies', async () => {
    using gate = new Gate()
    await control.submit([
      gate.task('endless'),
      { id: 'broken', type: 'os', tool_name: 'no-such-tool' },
      { id: 'of-both', type: 'noop', depends_on: ['endless', 'broken'] },
    ])
    expect(await control.ended('of-both')).toMatchObject({ status: 'skipped', error: 'dependency broken failed' })
    expect((await control.reached('endless', 'running')).status).toBe('running')
    gate.open()
    expect((await control.ended('endless')).status).toBe('success')
    expect((await control.get('of-both')).status).toBe('skipped')
  })
})

describe('ready queue', () => {
  test('more than 1,024 ready tasks: more stay pending and enter in order; nothing is refused or lost', async () => {
    await using single = await startControl({ flags: ['--max-concurrency', '1'] })
    using gate = new Gate()
    await single.submit([gate.task('gate')])
    await single.reached('gate', 'running')
    const ids = Array.from({ length: 1500 }, (_, i) => `queued-${i}`)
    const nap = (id: string) => ({ id, type: 'sleep', params: { duration_ms: 0 } })
    await single.submit(ids.slice(0, 1200).map(nap))
    await single.submit(ids.slice(1200).map(nap))
    const waiting = (await single.list()).filter((task) => task.id !== 'gate')
    expect(new Set(waiting.map((task) => task.status))).toEqual(new Set(['pending']))

    gate.open()
    const tasks = (await single.allEnded()).filter((task) => task.id !== 'gate')
    expect(tasks.map((task) => task.id)).toEqual(ids)
    expect(new Set(tasks.map((task) => task.status))).toEqual(new Set(['success']))
    for (let i = 1; i < tasks.length; i++) {
      expect(startOf(tasks[i]!)).toBeGreaterThanOrEqual(endOf(tasks[i - 1]!))
    }
  })
})
