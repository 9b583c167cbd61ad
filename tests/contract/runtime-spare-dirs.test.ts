/**
 * Goal: a task in a directory that was made ahead finds nothing in it, and no directory waits for ever.
 * Method: a real service.
 */
import { expect, test } from 'bun:test'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import type { DirectoryListing, TaskStatusResponse } from '../../shared/contract/runtime.ts'
import { startRuntime } from '../support/runtime.ts'
import { script } from '../support/runtime-tasks.ts'
import { tempDir } from '../support/temp.ts'
import { until } from '../support/until.ts'

test('a task whose directory was made ahead has only what it writes itself', async () => {
  await using runtime = await startRuntime()
  for (let round = 0; round < 3; round++) {
    const task = await runtime.run(script('ls -A; stat -L -c %s /dev/stdout; echo >> here'))
    expect(task).toMatchObject({ status: 'success', stdout: '0\n', stderr: '' })
    const { entries } = await runtime.json<DirectoryListing>(`/api/v1/tasks/${task.task_id}/files`)
    expect(entries.map(({ name }) => name)).toEqual(['here'])
    const result = (await Bun.file(task.artifacts.result_path).json()) as TaskStatusResponse
    expect(result).toMatchObject({ task_id: task.task_id, status: 'success', stdout: '0\n' })
    expect(readdirSync(task.artifacts.task_dir).sort()).toEqual(
      ['outcome', 'request.json', 'result.json', 'script', 'stderr.log', 'stdout.log', 'workspace'].sort(),
    )
  }
})

test('what was made ahead is left by a kill of the service, and the next service removes it', async () => {
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
      (found) => found.length > 0 && found.every((name) => name.startsWith('+')),
    )
    expect(names.length).toBeGreaterThan(0)
    await runtime.stop('SIGKILL')
  }
  await using _ = await startRuntime({ dataDir: dir.path })
  await until(() => readdirSync(tasks), [])
})
