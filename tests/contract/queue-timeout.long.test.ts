/**
 * `queue_timeout`: how long an attempt may wait before its work starts. Method: a slot, or a place in the queue of a runtime
 * service, that another task holds until a file is there; kills of control.
 */
import { describe, expect, test } from 'bun:test'
import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { TaskRecord } from '../../shared/contract/control.ts'
import { startControl } from '../support/control.ts'
import { startPair } from '../support/pair.ts'
import { waitFor } from '../support/runtime-tasks.ts'
import { tempDir } from '../support/temp.ts'
import { until } from '../support/until.ts'

const WAITED = 'task waited longer than queue_timeout'
const FAILED = { status: 'failed', error: WAITED, runtime: { error: { code: 'timeout', retryable: true } } }
const ONE_SLOT = { env: { SERVICE_SHELL_POLICY: 'open' }, flags: ['--max-concurrency', '1'] }
const ONE_THERE = { runtimeFlags: ['--max-running-tasks', '1'] }

const shell = (id: string, script: string, more: object = {}) => ({ id, type: 'shell', params: { script }, ...more })

describe('the wait for a slot', () => {
  test('ends the task before it starts, for good', async () => {
    using dir = tempDir()
    const [go, ran] = [join(dir.path, 'go'), join(dir.path, 'ran')]
    const flags = [...ONE_SLOT.flags, '--shutdown-timeout', '0s']
    const options = { ...ONE_SLOT, flags, dataDir: join(dir.path, 'data') }
    let late: object
    {
      await using control = await startControl(options)
      await control.submit([shell('holds', waitFor(go))])
      await control.submit([
        shell('late', `touch ${ran}`, { queue_timeout: 100 }),
        shell('after', 'true', { depends_on: ['late'] }),
      ])
      const task = await control.ended('late')
      expect(task).toMatchObject({ ...FAILED, attempt: 1, queue_timeout: 100 })
      expect(task).not.toHaveProperty('started_at')
      expect(task.runtime).not.toHaveProperty('started_at')
      expect(await control.ended('after')).toMatchObject({ status: 'skipped' })
      expect((await control.get('holds')).status).toBe('running')
      expect(await control.metrics()).toMatchObject({ tasks_failed: 1, tasks_running: 1 })
      late = task
      await control.stop('SIGKILL')
    }
    for (const signal of ['SIGTERM', 'SIGKILL'] as const) {
      await using control = await startControl(options) // from the journal, then from the state file
      expect(await control.get('late')).toEqual(late as never)
      await control.stop(signal)
    }
    await using control = await startControl(options)
    writeFileSync(go, '')
    expect(await control.ended('holds')).toMatchObject({ status: 'success' })
    expect(await control.run(shell('last', 'true'))).toMatchObject({ status: 'success' })
    expect(existsSync(ran)).toBe(false)
  })

  test('does not bound what is before it and after it', async () => {
    using dir = tempDir()
    const go = join(dir.path, 'go')
    await using control = await startControl(ONE_SLOT)
    await control.submit([
      shell('holds', waitFor(go), { queue_timeout: 3_000 }),
      shell('next', 'true', { depends_on: ['holds'], queue_timeout: 3_000 }),
    ])
    await control.reached('holds', 'running')
    await control.submit([
      shell('late', 'true', { queue_timeout: 3_500 }),
      shell('any', 'true', { queue_timeout: 0 }),
      shell('long', 'true', { queue_timeout: 2 ** 60 }),
    ])
    expect(await control.ended('late')).toMatchObject(FAILED)
    expect((await control.get('next')).waiting).toMatchObject({ reason: 'dependencies' })
    writeFileSync(go, '')
    for (const id of ['holds', 'next', 'any', 'long']) {
      expect(await control.ended(id)).toMatchObject({ status: 'success', attempt: 1 })
    }
  })

  test('is over for a task that is cancelled during its backoff', async () => {
    await using control = await startControl({ env: { SERVICE_SHELL_POLICY: 'open' } })
    const retried = (initial_ms: number) => ({ queue_timeout: 50, retry: 1, backoff: { initial_ms } })
    await control.submit([shell('cancelled', 'false', retried(500)), shell('later', 'false', retried(700))])
    await until(async () => (await control.get('cancelled')).waiting?.reason, 'backoff')
    expect((await control.fetch('/tasks/cancelled/cancel', { method: 'POST' })).status).toBe(202)
    expect(await control.ended('later')).toMatchObject({ status: 'failed', attempt: 2 })
    expect(await control.get('cancelled')).toMatchObject({ status: 'cancelled', attempt: 1 })
    expect(await control.run(shell('last', 'true'))).toMatchObject({ status: 'success' })
  })

  test('is of each attempt anew, and uses up a retry', async () => {
    using dir = tempDir()
    const go = join(dir.path, 'go')
    await using control = await startControl(ONE_SLOT)
    await control.submit([shell('holds', waitFor(go))])
    await control.submit([
      shell('twice', 'true', { queue_timeout: 50, retry: 1 }),
      shell('again', 'true', { queue_timeout: 50, retry: 10_000, backoff: { max_ms: 50 } }),
      shell('once', 'true', { queue_timeout: 50, retry: 5, retry_on: ['exit_nonzero'] }),
    ])
    const twice = await control.ended('twice')
    expect(twice).toMatchObject({ ...FAILED, error: `task failed after all retries: ${WAITED}`, attempt: 2 })
    const finished_at = expect.any(String)
    const missed = (attempt: number) => ({ attempt, finished_at, error: WAITED, code: 'timeout' })
    expect(twice.attempts).toEqual([missed(1), missed(2)] as never)
    expect(await control.ended('once')).toMatchObject({ ...FAILED, attempt: 1 })
    await until(
      () => control.get('again'),
      ({ attempt = 0 }) => attempt > 2,
    )
    writeFileSync(go, '')
    const again = await control.ended('again')
    expect(again).toMatchObject({ status: 'success', attempts: expect.anything() })
    expect(again.runtime?.started_at).toBe(again.started_at!)
  })

  test('is of each child, and not of an approval', async () => {
    await using control = await startControl(ONE_SLOT)
    const { graph_id } = await control.submit([
      shell('map', 'sleep 600', { for_each: [1, 2], queue_timeout: 500 }),
      { id: 'sure', type: 'approval', queue_timeout: 100 },
    ])
    const path = `/graphs/${graph_id}/tasks/${encodeURIComponent('map[1]')}?wait_ms=60000`
    const child = await until(
      async () => (await (await control.fetch(path)).json()) as TaskRecord,
      ({ status }) => status === 'failed',
    )
    expect(child).toMatchObject({ ...FAILED, queue_timeout: 500 })
    expect((await control.get('sure')).waiting).toMatchObject({ reason: 'approval' })
  })
})

describe('the wait for a runtime service', () => {
  test('in its queue ends the task, there too', async () => {
    await using pair = await startPair(ONE_THERE)
    await pair.script('holds', `echo; ${waitFor(pair.file('go'))}`, { queue_timeout: 60_000 })
    await pair.running('holds')
    await pair.script('late', 'true', { queue_timeout: 1_000, timeout: 10 })
    await pair.script('twice', 'true', { queue_timeout: 1_000, retry: 1 })
    const late = await pair.ended('late')
    expect(late.here).toMatchObject(FAILED)
    expect(late.there).toMatchObject({ status: 'cancelled' })
    expect(late.there.started_at ?? null).toBeNull()
    const twice = await pair.ended('twice')
    expect(twice.here).toMatchObject({ error: `task failed after all retries: ${WAITED}`, attempt: 2 })
    expect(twice.there).toMatchObject({ status: 'cancelled' })
    await Bun.write(pair.file('go'), '')
    expect((await pair.ended('holds')).here).toMatchObject({ status: 'success', attempt: 1 })
    await pair.isQuiet()
  })

  test('counts anew after a restart of control, and not for what runs there', async () => {
    await using pair = await startPair(ONE_THERE)
    await pair.script('runs', `echo; ${waitFor(pair.file('go'))}`, { queue_timeout: 3_000 })
    await pair.running('runs')
    await pair.script('late', 'true', { queue_timeout: 3_500 })
    await pair.there('late', ({ status }) => status === 'accepted')
    await pair.stopControl('SIGKILL')
    await pair.startControl()
    expect((await pair.ended('late')).here).toMatchObject({ ...FAILED, attempt: 1 })
    expect((await pair.control.get('runs')).status).toBe('running')
    await Bun.write(pair.file('go'), '')
    expect((await pair.ended('runs')).here).toMatchObject({ status: 'success', attempt: 1 })
  })
})
