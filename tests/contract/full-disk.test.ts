/**
 * A disk without a free byte: tasks can be cancelled and deleted, and a task that cannot go on says why. Against the
 * built services on a small file system, which a task keeps full.
 */
import { describe, expect, test } from 'bun:test'
import { existsSync, statfsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { TaskListResponse } from '../../shared/contract/runtime.ts'
import { startControl } from '../support/control.ts'
import { EventStreamClient } from '../support/event-stream.ts'
import { startRuntime } from '../support/runtime.ts'
import { refused, script, waitFor } from '../support/runtime-tasks.ts'
import { canMount, smallDisk } from '../support/small-disk.ts'
import { tempDir } from '../support/temp.ts'
import { until } from '../support/until.ts'

/** Long enough that only the journal is written while a test runs. */
const NO_SNAPSHOT = ['--persist-interval', '1h', '--kill-grace', '200ms']

describe.skipIf(!canMount)('on a disk that a task keeps full (needs root, to mount a small one)', () => {
  test('the task can be cancelled, another can be deleted, and both survive SIGKILL', async () => {
    using dir = tempDir()
    using disk = smallDisk(join(dir.path, 'disk'), 2 * 1024 * 1024)
    const dataDir = join(disk.path, 'data')
    const go = join(dir.path, 'go')
    {
      await using control = await startControl({ dataDir, env: { SERVICE_SHELL_POLICY: 'open' }, flags: NO_SNAPSHOT })
      await control.run({ id: 'old', type: 'noop' })
      const script = `while :; do cat /dev/zero >> ${disk.ballast} 2>/dev/null; [ -e ${go} ] || sleep 0.001; done`
      await control.submit([
        { id: 'filler', type: 'shell', params: { script } },
        { id: 'after', type: 'noop', depends_on: ['filler'] },
        { id: 'sleeper', type: 'sleep', params: { duration_ms: 600_000 } },
      ])
      await control.reached('filler', 'running')
      await control.reached('sleeper', 'running')
      await until(
        () =>
          control.post({
            scope: 'graph',
            tasks: [{ id: 'more', type: 'noop', params: { message: 'x'.repeat(50_000) } }],
          }),
        ({ status }) => status === 503,
      )
      for (const id of ['sleeper', 'filler']) {
        const answer = await control.fetch(`/tasks/${id}/cancel`, { method: 'POST' })
        expect([id, answer.status, answer.status === 202 ? '' : await answer.text()]).toEqual([id, 202, ''])
        expect(await control.ended(id)).toMatchObject({ status: 'cancelled' })
      }
      expect((await control.fetch('/tasks/old', { method: 'DELETE' })).status).toBe(204)
      expect((await control.get('after')).status).toBe('skipped')
      writeFileSync(go, '')
      await control.stop('SIGKILL')
    }
    disk.free()
    await using control = await startControl({ dataDir, flags: NO_SNAPSHOT })
    const listed = (await control.list()).filter(({ id }) => id !== 'more')
    expect(listed.map(({ id, status }) => [id, status])).toEqual([
      ['filler', 'cancelled'],
      ['after', 'skipped'],
      ['sleeper', 'cancelled'],
    ])
  })

  test('tasks that run or are ready say why nothing goes on, in records and streams, until there is space', async () => {
    using dir = tempDir()
    using disk = smallDisk(join(dir.path, 'disk'), 2 * 1024 * 1024)
    await using control = await startControl({
      dataDir: join(disk.path, 'data'),
      flags: [...NO_SNAPSHOT, '--max-concurrency', '1'],
    })
    const { graph_id } = await control.submit([
      { id: 'runs', type: 'sleep', params: { duration_ms: 600_000 } },
      { id: 'ready', type: 'noop' },
      { id: 'later', type: 'noop', depends_on: ['ready'] },
    ])
    await control.reached('runs', 'running')
    await using stream = await EventStreamClient.open(`${control.url}/graphs/${graph_id}/events`)
    disk.fill()
    await until(
      () =>
        control.post({ scope: 'graph', tasks: [{ id: 'x', type: 'noop', params: { message: 'x'.repeat(50_000) } }] }),
      ({ status }) => status === 503,
    )
    const storage = {
      reason: 'storage' as const,
      detail: expect.stringMatching(/^control cannot write to its data directory: .*ENOSPC/),
    }
    for (const id of ['runs', 'ready']) expect((await control.get(id)).waiting).toEqual(storage)
    expect((await control.get('later')).waiting).toEqual({ reason: 'dependencies', tasks: ['ready'] })
    const told = await stream.once((events) => events.some(({ event }) => event === 'task_waiting'))
    expect(told.at(-1)).toMatchObject({ event: 'task_waiting', task_id: 'runs', waiting: storage })

    disk.free()
    const after = await stream.once(
      (events) => events.at(-1)?.event === 'task_waiting' && !('waiting' in events.at(-1)!),
    )
    expect(after.at(-1)).toMatchObject({ event: 'task_waiting', task_id: 'runs' })
    expect(await control.get('runs')).not.toHaveProperty('waiting')
    expect((await control.get('ready')).waiting?.reason).toBe('concurrency')
  })

  test('a runtime task that fills it is killed, tells its end and can be deleted, and then the service goes on', async () => {
    using dir = tempDir()
    using disk = smallDisk(join(dir.path, 'disk'), 8 * 1024 * 1024)
    const dataDir = join(disk.path, 'data')
    await using runtime = await startRuntime({ dataDir })
    const go = join(dir.path, 'go')
    const ends = await runtime.script(`echo on; ${waitFor(go)}; exit 7`)
    await runtime.printed(ends)
    const filler = await runtime.script(
      'trap "" TERM; echo on; while :; do cat /dev/zero >> big; sleep 0.001; done 2>/dev/null',
    )
    await runtime.printed(filler)
    await until(() => statfsSync(dataDir).bavail, 0)
    expect((await runtime.kill(filler)).status).toBe(200)
    expect(await runtime.ended(filler)).toMatchObject({ status: 'cancelled' })
    writeFileSync(go, '')
    expect(await runtime.ended(ends)).toMatchObject({ status: 'failed', exit_code: 7 })
    // What is free now is for ends and deletions alone.
    expect((await refused(await runtime.post(script('true')))).slice(0, 2)).toEqual([503, 'unavailable'])
    const deletion = await runtime.fetch(`/api/v1/tasks/${filler}`, { method: 'DELETE' })
    expect(deletion.status).toBe(204)
    expect(await runtime.runScript('echo next')).toMatchObject({ status: 'success', stdout: 'next\n' })
    expect(existsSync(join(dataDir, 'reserve'))).toBe(true)
  })

  test('a task of a runtime service that cannot write says so', async () => {
    using dir = tempDir()
    using disk = smallDisk(join(dir.path, 'disk'), 8 * 1024 * 1024)
    await using runtime = await startRuntime({ dataDir: join(disk.path, 'data') })
    await using control = await startControl({ flags: ['--runtime-url', runtime.url] })
    const go = join(dir.path, 'go')
    await control.submit([{ id: 'there', type: 'runtime.script', params: { script: `echo on; ${waitFor(go)}` } }])
    const { tasks } = await until(
      () => runtime.json<TaskListResponse>('/api/v1/tasks'),
      (list) => list.tasks.length === 1,
    )
    await runtime.printed(tasks[0]!.task_id)
    const other = await runtime.script(`echo on; ${waitFor(join(dir.path, 'other'))}`)
    await runtime.printed(other)
    disk.fill()
    writeFileSync(join(dir.path, 'other'), '')
    await runtime.ended(other) // in the space of the reserve
    expect(await runtime.json<TaskListResponse>('/api/v1/tasks')).toMatchObject({ storage_fault: expect.any(String) })
    const { waiting } = await until(
      () => control.get('there'),
      ({ waiting }) => waiting !== undefined,
    )
    expect(waiting).toEqual({
      reason: 'runtime',
      detail: expect.stringMatching(/^runtime \w+: the service cannot write to its data directory: ./),
    })
    disk.free()
    await until(
      () => control.get('there'),
      (task) => task.waiting === undefined,
    )
    writeFileSync(go, '')
    expect((await control.ended('there')).status).toBe('success')
  })
})
