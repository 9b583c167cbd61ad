/**
 * Goal: a task whose launch the machine refused is launched again by the service that took it over, and counts as waiting.
 * Method: a real store, launcher and dispatcher; the lock and the outcome of the earlier launch are made by the test.
 */
import { expect, test } from 'bun:test'
import {
  closeSync,
  lchownSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import type { SubmitTaskRequest } from '../../../shared/contract/runtime-request.ts'
import { tryLock } from '../../../shared/files/directory-lock.ts'
import { bootId } from '../../../shared/process/processes.ts'
import { dispatching } from '../../support/dispatching.ts'
import { ownUid } from '../../support/ordinary-user.ts'
import { writeRefusal } from '../../support/refused-launch.ts'
import { until } from '../../support/until.ts'

const HELLO: SubmitTaskRequest = { execution: { kind: 'command', program: '/bin/echo', args: ['once'] } }
const LAUNCHED = { launch_boot_id: bootId(), reserved_at: 2_000 }

test('a launch that is refused after the restart is tried again once its launcher is gone', async () => {
  await using at = dispatching()
  const task = await at.accept({ task_id: 'task-1', ...HELLO }, LAUNCHED)
  const { task_dir, stdout_path } = at.dirOf('task-1')
  const lock = openSync(task_dir, 'r')
  expect(tryLock(lock)).toBe(true)
  expect(at.recover()).toEqual({ waiting: 0, running: 1, ended: 0 })
  writeRefusal(task_dir)
  at.hear({ event: 'ended', task_id: 'task-1' })
  at.dispatcher.lookAround()
  await Bun.sleep(0)
  expect(at.eventTypes('task-1')).toEqual(['recovered'])
  closeSync(lock)
  at.dispatcher.lookAround()
  expect((await task.ended).status).toBe('success')
  expect(readFileSync(stdout_path, 'utf8')).toBe('once\n')
  expect(at.eventTypes('task-1')).toEqual([
    ...['recovered', 'launch_delayed', 'started', 'resource_released', 'finished'],
  ])
})

test('a task whose launcher ends after the restart without having begun is launched again', async () => {
  await using at = dispatching()
  const task = await at.accept({ task_id: 'task-1', ...HELLO }, LAUNCHED)
  const { task_dir, stdout_path } = at.dirOf('task-1')
  const lock = openSync(task_dir, 'r')
  expect(tryLock(lock)).toBe(true)
  expect(at.recover()).toEqual({ waiting: 0, running: 1, ended: 0 })
  at.dispatcher.lookAround()
  closeSync(lock)
  at.dispatcher.lookAround()
  expect((await task.ended).status).toBe('success')
  expect(readFileSync(stdout_path, 'utf8')).toBe('once\n')
})

test('tasks that wait for another launch count as waiting', async () => {
  await using at = dispatching()
  await at.accept({ task_id: 'put-back', ...HELLO }, { reserved_at: 2_000 })
  await at.accept({ task_id: 'refused', ...HELLO }, LAUNCHED)
  writeRefusal(at.dirOf('refused').task_dir)
  expect(at.recover()).toEqual({ waiting: 2, running: 0, ended: 0 })
  await until(
    () => at.eventTypes('refused'),
    (types) => types.includes('launch_delayed'),
  )
  expect(at.store.events('refused')[0]).toMatchObject({
    event_type: 'recovered',
    message: 'the service was restarted: the task waits for another launch',
    data: { running: false },
  })
})

test.each([{}, LAUNCHED])(
  'a file with a secret that a launch left behind is gone while the task waits: %j',
  async (more) => {
    await using at = dispatching()
    await at.accept({ task_id: 'task-1', ...HELLO, secrets: { A: 'a', B: { name: 'b', file: 'd/secrets' } } }, more)
    const { workspace } = at.dirOf('task-1')
    mkdirSync(join(workspace, 'd'))
    writeFileSync(join(workspace, 'd', 'secrets'), 'value')
    writeFileSync(join(workspace, 'd', 'other'), '')
    expect(at.recover()).toEqual({ waiting: 1, running: 0, ended: 0 })
    expect(readdirSync(join(workspace, 'd'))).toEqual(['other'])
  },
)

const isRoot = process.getuid?.() === 0
test.skipIf(!isRoot).each([{}, LAUNCHED])(
  `the user of a launch that came to nothing loses the files of the task that waits${isRoot ? '' : ' (skipped: needs root)'}: %j`,
  async (more) => {
    await using at = dispatching()
    await at.accept({ task_id: 'task-1', execution: { kind: 'script', script: 'true' } }, more)
    const { workspace, script_path } = at.dirOf('task-1')
    for (const path of [workspace, script_path]) lchownSync(path, ownUid(55_000), ownUid(55_000))
    expect(at.recover()).toEqual({ waiting: 1, running: 0, ended: 0 })
    expect([workspace, script_path].map((path) => lstatSync(path).uid)).toEqual([0, 0])
  },
)
