/** Files of the runtime: who may read them, and how long they stay. Source: contract 0 (retention, gc) and 2, artifacts. */
import { describe, expect, test } from 'bun:test'
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { TaskListResponse } from '../../shared/contract/runtime.ts'
import { startRuntime } from '../support/runtime.ts'
import { command, SLEEP, script, waitFor } from '../support/runtime-tasks.ts'
import { tempDir } from '../support/temp.ts'
import { until } from '../support/until.ts'

const modeOf = (path: string) => statSync(path).mode & 0o777

describe('nobody but the user of the service can read what a task was given or printed', () => {
  test('directories of tasks are 0700, request.json is 0600, whatever the umask', async () => {
    const before = process.umask(0)
    try {
      await using runtime = await startRuntime()
      const task = await runtime.run({ ...script('echo out; exit 1'), sandbox: { workspace_subdir: 'a' } })
      const { task_dir, request_path, result_path, stdout_path, stderr_path, script_path } = task.artifacts
      expect(modeOf(task_dir)).toBe(0o700)
      expect(modeOf(request_path)).toBe(0o600)
      for (const path of [result_path, stdout_path, stderr_path, script_path!]) {
        expect([path, modeOf(path) & 0o077]).toEqual([path, 0])
      }
    } finally {
      process.umask(before)
    }
  })

  test('nor the database', async () => {
    const before = process.umask(0)
    try {
      await using runtime = await startRuntime()
      await runtime.run({ execution: { kind: 'command', program: '/bin/true', env: { KEY: 'sesame' } } })
      const reachable = (path: string) => modeOf(path) & 0o077
      const isClosed = reachable(runtime.dataDir) === 0
      for (const name of readdirSync(runtime.dataDir).filter((entry) => entry.startsWith('runtime.db'))) {
        expect([name, isClosed ? 0 : reachable(join(runtime.dataDir, name))]).toEqual([name, 0])
      }
      expect(existsSync(join(runtime.dataDir, 'runtime.db'))).toBe(true)
    } finally {
      process.umask(before)
    }
  })
})

describe('retention: --result-retention-secs and --gc-interval-ms', () => {
  const SHORT = ['--result-retention-secs', '1', '--gc-interval-ms', '20']

  test('an ended task and its files go after that time; others stay', async () => {
    await using runtime = await startRuntime({ flags: [...SHORT, '--max-running-tasks', '2'] })
    const running = await runtime.submit({ task_id: 'running', ...SLEEP })
    await runtime.submit({ task_id: 'running-2', ...SLEEP })
    const waiting = await runtime.submit({ task_id: 'waiting', ...SLEEP })
    await runtime.submit({ task_id: 'cancelled', ...SLEEP })
    const beforeEnd = Date.now()
    await runtime.kill('cancelled')
    await until(async () => (await runtime.fetch('/api/v1/tasks/cancelled')).status, 404)
    expect(Date.now() - beforeEnd).toBeGreaterThanOrEqual(990)
    await until(
      () => readdirSync(join(runtime.dataDir, 'tasks')).toSorted(),
      (names) => names.filter((name) => !name.startsWith('+')).join() === 'running,running-2,waiting',
    )
    for (const path of ['/events', '/logs?stream=stdout']) {
      expect((await runtime.fetch(`/api/v1/tasks/cancelled${path}`)).status).toBe(404)
    }
    const { tasks } = await runtime.json<TaskListResponse>('/api/v1/tasks')
    expect(tasks.map(({ task_id }) => task_id).toSorted()).toEqual(['running', 'running-2', 'waiting'])
    await runtime.reached(running, 'running')
    expect((await runtime.get(waiting)).status).toBe('accepted')
  })

  test('counts from the end, across restarts', async () => {
    using dir = tempDir()
    const dataDir = join(dir.path, 'data')
    {
      await using runtime = await startRuntime({ dataDir })
      await runtime.run({ task_id: 'old', ...command('/bin/true') })
      await runtime.stop()
    }
    await using runtime = await startRuntime({ dataDir, flags: SHORT })
    await until(async () => (await runtime.fetch('/api/v1/tasks/old')).status, 404)
    await until(() => existsSync(join(dataDir, 'tasks', 'old')), false)
  })

  test('follows no link out of a workspace, and takes what the task made hard to remove', async () => {
    using dir = tempDir()
    const outside = join(dir.path, 'outside')
    mkdirSync(outside)
    writeFileSync(join(outside, 'precious'), 'kept')
    await using runtime = await startRuntime({ flags: SHORT })
    const id = await runtime.script(
      `ln -s ${outside} link; ln -s ${outside}/precious file; mkdir -p d/e; echo > d/e/f; chmod 000 d/e d
       echo; ${waitFor(join(dir.path, 'go'))}; chmod 500 .`,
    )
    const { artifacts } = await runtime.printed(id)
    symlinkSync(outside, join(artifacts.task_dir, 'workspace', 'link-2'))
    writeFileSync(join(dir.path, 'go'), '')
    await until(() => existsSync(artifacts.task_dir), false)
    expect(readFileSync(join(outside, 'precious'), 'utf8')).toBe('kept')
  })

  test('0 keeps for ever, and a task within its time stays', async () => {
    await using forEver = await startRuntime({ flags: ['--result-retention-secs', '0', '--gc-interval-ms', '10'] })
    await using aDay = await startRuntime({ flags: ['--result-retention-secs', '86400', '--gc-interval-ms', '10'] })
    await using short = await startRuntime({ flags: SHORT })
    const kept = [await forEver.run(command('/bin/true')), await aDay.run(command('/bin/true'))] as const
    const task_id = await short.submit(command('/bin/true')) // ends last: once it is gone, the others had their time
    await until(async () => (await short.fetch(`/api/v1/tasks/${task_id}`)).status, 404)
    expect((await forEver.get(kept[0].task_id)).status).toBe('success')
    expect((await aDay.get(kept[1].task_id)).status).toBe('success')
  })
})
