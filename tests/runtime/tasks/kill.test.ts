/**
 * Goal: a kill that meets the launch of its task ends that task, once, and its events come in their order.
 * Method: a real store, launcher and dispatcher; the process that starts launchers is stopped, or the disk does not sync,
 * while the kill arrives.
 */
import { expect, test } from 'bun:test'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { isLauncherAlive } from '../../../runtime/launch/launcher-files.ts'
import { dispatching } from '../../support/dispatching.ts'
import { stopProcess } from '../../support/task-processes.ts'
import { until } from '../../support/until.ts'

const SLEEP = { execution: { kind: 'script', script: 'echo > ran; exec sleep 600' } } as const

const startedForkServer = async (at: ReturnType<typeof dispatching>): Promise<number> => {
  const task = await at.accept({ task_id: 'warm-up' })
  at.dispatcher.enqueue(task)
  await task.ended
  return at.launchers.forkServerPid!
}

test('a kill during the launch waits for the start, and then ends the task', async () => {
  await using at = dispatching()
  const forkServer = await startedForkServer(at)
  await stopProcess(forkServer)
  const task = await at.accept({ task_id: 'task-1', ...SLEEP })
  at.dispatcher.enqueue(task)
  await until(
    () => task.row.launch_boot_id,
    (bootId) => bootId !== null,
  )
  const asked = performance.now()
  const kills = [1, 2].map(() => at.kill('task-1'))
  expect(task.row.kill_requested_at).toBeNull()
  process.kill(forkServer, 'SIGCONT')
  await Promise.all(kills)
  const settledMs = performance.now() - asked
  expect((await task.ended).status).toBe('cancelled')
  // A kill waits for a second: on a machine that stands still so long it may be written before the start.
  if (settledMs > 900) return
  expect(at.eventTypes('task-1')).toEqual([
    ...['resource_reserved', 'started', 'kill_requested', 'resource_released', 'cancelled'],
  ])
})

test('a kill during a launch that does not come about in time ends the task, which never starts', async () => {
  await using at = dispatching()
  const forkServer = await startedForkServer(at)
  await stopProcess(forkServer)
  const task = await at.accept({ task_id: 'task-1', ...SLEEP })
  at.dispatcher.enqueue(task)
  await at.kill('task-1')
  expect((await task.ended).status).toBe('cancelled')
  process.kill(forkServer, 'SIGCONT')
  await at.launchers.said('gone', 'task-1')
  expect(existsSync(join(at.dirOf('task-1').workspace, 'ran'))).toBe(false)
  expect(at.eventTypes('task-1')).toEqual([
    ...['resource_reserved', 'kill_requested', 'resource_released', 'cancelled'],
  ])
})

test('a task whose turn comes while its kill is being written is not launched', async () => {
  await using at = dispatching({ slots: 1 })
  const first = await at.accept({ task_id: 'first', ...SLEEP })
  at.dispatcher.enqueue(first)
  await at.launchers.said('started', 'first')
  const second = await at.accept({ task_id: 'second', ...SLEEP })
  at.dispatcher.enqueue(second)
  await at.kill('first')
  const resumeDisk = at.disk.hold()
  const killOfSecond = at.kill('second')
  await until(() => at.inFlight.has('second'))
  resumeDisk()
  await killOfSecond
  expect((await second.ended).status).toBe('cancelled')
  const { task_dir, workspace } = at.dirOf('second')
  const left = [join(task_dir, 'outcome.new'), join(workspace, 'ran')].filter((path) => existsSync(path))
  expect([isLauncherAlive(task_dir), left]).toEqual([false, []])
  expect(at.eventTypes('second')).toEqual([
    ...['resource_reserved', 'kill_requested', 'resource_released', 'cancelled'],
  ])
})
