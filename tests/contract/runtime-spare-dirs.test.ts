/**
 * Goal: a task in the directory of a removed one finds and shows nothing of that, and no directory waits for ever.
 * Method: a real service; inodes tell whether a directory is the same.
 */
import { expect, test } from 'bun:test'
import { lstatSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import type { DirectoryListing, TaskStatusResponse } from '../../shared/contract/runtime.ts'

import { type Runtime, startRuntime } from '../support/runtime.ts'
import { script } from '../support/runtime-tasks.ts'
import { missingSandbox } from '../support/sandboxes.ts'
import { gone } from '../support/task-processes.ts'
import { tempDir } from '../support/temp.ts'
import { until } from '../support/until.ts'

/** The launcher holds the lock of the directory until it is gone, a moment after the task has ended. */
async function remove(runtime: Runtime, { task_id, shim_pid }: TaskStatusResponse): Promise<void> {
  await gone(shim_pid!)
  expect((await runtime.fetch(`/api/v1/tasks/${task_id}`, { method: 'DELETE' })).status).toBe(204)
}

const inodeOf = ({ artifacts }: TaskStatusResponse) => lstatSync(artifacts.request_path).ino

const WRITES = 'echo secret; echo secret >&2; mkdir -p a/b; echo secret > a/b/c'
const LOOKS = 'ls -A; stat -L -c %s /dev/stdout; echo >> here'

const PROFILES = [
  ['the process profile', { profile: 'process' }, true],
  ['a sandbox', { profile: 'linux_sandbox' }, true],
  ['a sandbox in the network of the host', { profile: 'linux_sandbox', network: 'host' }, false],
] as const

for (const [name, sandbox, isShared] of PROFILES) {
  test.skipIf(sandbox.profile === 'linux_sandbox' && missingSandbox !== undefined)(
    `${name}: the next task ${isShared ? 'has the directory' : 'has another directory'}, and nothing of the first`,
    async () => {
      await using runtime = await startRuntime()
      const first = await runtime.run({ ...script(WRITES), sandbox })
      const inode = inodeOf(first)
      await remove(runtime, first)
      for (let round = 0; round < 3; round++) {
        const next = await runtime.run({ ...script(LOOKS), sandbox })
        expect(next).toMatchObject({ status: 'success', stdout: '0\n', stderr: '' })
        if (isShared) expect(inodeOf(next)).toBe(inode)
        const { entries } = await runtime.json<DirectoryListing>(`/api/v1/tasks/${next.task_id}/files`)
        expect(entries.map(({ name }) => name)).toEqual(['here'])
        const result = (await Bun.file(next.artifacts.result_path).json()) as TaskStatusResponse
        expect(result).toMatchObject({ task_id: next.task_id, status: 'success', stdout: '0\n' })
        expect(readdirSync(next.artifacts.task_dir).sort()).toEqual(
          ['outcome', 'request.json', 'result.json', 'script', 'stderr.log', 'stdout.log', 'workspace'].sort(),
        )
        await remove(runtime, next)
      }
    },
  )
}

test('retention keeps directories, and the next service removes them', async () => {
  using dir = tempDir()
  const tasks = join(dir.path, 'tasks')
  {
    await using runtime = await startRuntime({
      dataDir: dir.path,
      flags: ['--result-retention-secs', '1', '--gc-interval-ms', '10'],
    })
    for (let i = 0; i < 3; i++) await runtime.submit({ task_id: `task-${i}`, ...script('true') })
    const names = await until(
      () => readdirSync(tasks),
      (found) => found.every((name) => name.startsWith('+')),
    )
    expect(names.length).toBeGreaterThan(0)
    await runtime.stop('SIGKILL')
  }
  await using _ = await startRuntime({ dataDir: dir.path })
  await until(
    () => readdirSync(tasks),
    (found) => found.length === 0,
  )
})
