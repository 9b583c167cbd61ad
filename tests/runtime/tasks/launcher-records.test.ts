/** Goal: a task is not told as started before its program runs. Method: records of processes that run, and that have ended. */
import { expect, test } from 'bun:test'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { LiveTask } from '../../../runtime/store/live-task.ts'
import { LauncherRecords } from '../../../runtime/tasks/launcher-records.ts'
import { tempDir } from '../../support/temp.ts'

test('a record names a started process while that runs another program than its launcher', async () => {
  using dir = tempDir()
  const records = new LauncherRecords(dir.path)
  const task = { task_id: 'task-1' } as LiveTask
  const { task_dir } = records.dirOf(task)
  mkdirSync(task_dir, { recursive: true })
  const recorded = (pid: number, launcherPid: number) => {
    const boot = 'boot_id=0f0f0f0f-0000-0000-0000-000000000000'
    const lines = ['version=1', `launcher_pid=${launcherPid}`, `pid=${pid}`, `pgid=${pid}`, 'start_time=1', boot]
    writeFileSync(join(task_dir, 'started'), `${[...lines, 'started_ms=1'].join('\n')}\n`)
    return records.startedProcess(task)?.pid
  }
  const child = Bun.spawn(['sleep', '60'])
  expect(recorded(child.pid, process.pid)).toBe(child.pid)
  expect(recorded(child.pid, child.pid)).toBeUndefined() // still a copy of the launcher
  child.kill('SIGKILL')
  await child.exited
  // Its program may never have run; the outcome, which is about to come, says so.
  expect(recorded(child.pid, process.pid)).toBeUndefined()
})
