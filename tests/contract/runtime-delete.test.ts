/**
 * Goal: DELETE /api/v1/tasks/:id removes an ended task, its files and its row, for good, and nothing else.
 * Method: a real service; its data directory is looked at, and a killed service is started again on it.
 */
import { describe, expect, test } from 'bun:test'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { TaskListResponse } from '../../shared/contract/runtime.ts'
import { type Runtime, startRuntime } from '../support/runtime.ts'
import { refused, SLEEP, script } from '../support/runtime-tasks.ts'
import { canMount, smallDisk } from '../support/small-disk.ts'
import { tempDir } from '../support/temp.ts'
import { until } from '../support/until.ts'

const remove = (runtime: Runtime, id: string, headers: Record<string, string> = {}) =>
  runtime.fetch(`/api/v1/tasks/${id}`, { method: 'DELETE', headers })

const idsOf = async (runtime: Runtime) =>
  (await runtime.json<TaskListResponse>('/api/v1/tasks')).tasks.map(({ task_id }) => task_id)

const contentsOf = (path: string): string =>
  readdirSync(path, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map(({ name, parentPath }) => readFileSync(join(parentPath, name), 'utf8'))
    .join('')

describe('DELETE of a task', () => {
  test('an ended one: 204, its files are gone, and so is its row, also after a crash', async () => {
    using dir = tempDir()
    {
      await using runtime = await startRuntime({ dataDir: dir.path })
      const { artifacts } = await runtime.run({ task_id: 'gone', ...script('mkdir -p a/b; echo out > a/b/c; echo hi') })
      await runtime.run({ task_id: 'kept', ...script('echo hi') })
      expect(existsSync(artifacts.result_path)).toBe(true)
      const response = await remove(runtime, 'gone')
      expect([response.status, await response.text()]).toEqual([204, ''])
      expect(response.headers.get('content-type')).toBeNull()
      await runtime.stop('SIGKILL')
    }
    // Its directory waits for another task, with nothing in it, beside those that were made ahead.
    const spares = readdirSync(join(dir.path, 'tasks')).filter((name) => name !== 'kept')
    expect(spares.filter((name) => !name.startsWith('+'))).toEqual([])
    expect(spares.map((name) => contentsOf(join(dir.path, 'tasks', name)))).toEqual(spares.map(() => ''))
    expect(readdirSync(join(dir.path, 'trash'))).toEqual([])
    await using runtime = await startRuntime({ dataDir: dir.path })
    expect(await idsOf(runtime)).toEqual(['kept'])
    expect(await refused(await remove(runtime, 'gone'))).toEqual([404, 'not_found', 'task not found: gone'])
  })

  test('its id is free at once, and the new task keeps its files', async () => {
    await using runtime = await startRuntime()
    for (let round = 0; round < 10; round++) {
      await runtime.run({ task_id: 'again', ...script(`echo ${round}`) })
      const removals = await Promise.all([remove(runtime, 'again'), remove(runtime, 'again')])
      const statuses = removals.map(({ status }) => status).toSorted() // the service may come to either of them first
      expect([204, 404]).toContain(statuses[1]!)
      expect(statuses[0]).toBe(204)
    }
    expect(await runtime.run({ task_id: 'again', ...script('echo last') })).toMatchObject({ stdout: 'last\n' })
  })

  test('one that waits or runs: 409, and it goes on', async () => {
    await using runtime = await startRuntime({ flags: ['--max-running-tasks', '1'] })
    const runs = await runtime.submit(SLEEP)
    const waits = await runtime.submit(SLEEP)
    for (const id of [runs, waits]) {
      const message = `task ${id} has not ended (kill it, or wait for its end)`
      expect(await refused(await remove(runtime, id))).toEqual([409, 'conflict', message])
    }
    expect(await idsOf(runtime)).toEqual([runs, waits])
  })

  test('one with an owner: 403 without that name, 204 with it', async () => {
    await using runtime = await startRuntime()
    const { task_id } = await runtime.run({ ...script('true'), control_context: { owner: 'josé' } })
    const denied = [403, 'permission_denied', "delete requires owner 'josé'"] as [number, string, string]
    expect(await refused(await remove(runtime, task_id))).toEqual(denied)
    expect(await refused(await remove(runtime, task_id, { 'x-service-owner': 'other' }))).toEqual(denied)
    const name = Buffer.from('josé', 'utf8').toString('latin1')
    expect((await remove(runtime, task_id, { 'x-service-owner': name })).status).toBe(204)
  })
})

describe.skipIf(!canMount)('on a full disk (needs root, to mount a small one)', () => {
  test('503 and the task stays, with its files; 204 once there is room', async () => {
    using dir = tempDir()
    const dataDir = join(dir.path, 'data')
    using disk = smallDisk(dataDir, 12 * 1024 * 1024)
    await using runtime = await startRuntime({ dataDir })
    const { artifacts } = await runtime.run({ task_id: 'kept', ...script('echo hi') })
    disk.fill()
    // What is left in the last block of the log takes a row or two.
    const refusal = await until(
      () => runtime.post({ ...script(`# ${'x'.repeat(100_000)}`) }),
      ({ status }) => status === 503,
    )
    expect(refusal.status).toBe(503)
    const answer = await remove(runtime, 'kept')
    if (answer.status === 503) {
      expect((await refused(answer)).slice(0, 2)).toEqual([503, 'unavailable'])
      expect(await runtime.get('kept')).toMatchObject({ status: 'success', stdout: 'hi\n' })
      expect(existsSync(artifacts.stdout_path)).toBe(true)
    }
    disk.free()
    const status = await until(
      async () => (await remove(runtime, 'kept')).status,
      (found) => found !== 503,
    )
    expect(status).toBe(answer.status === 503 ? 204 : 404)
    expect(existsSync(artifacts.task_dir)).toBe(false)
  })
})
