/**
 * Tasks that work against the service that runs them. The profile `process` promises no isolation: a task may spoil its
 * own files and its own outcome. It must not hold up the service, nor outlive its end.
 * Source: spec, States B and ResourceLimits; contract 2 (last item) and 5, Runtime.
 */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import type { TaskStatusResponse } from '../../shared/contract/runtime.ts'
import { type Runtime, startRuntime } from '../support/runtime.ts'
import { noProcessesOf } from '../support/task-processes.ts'
import { until } from '../support/until.ts'

let runtime: Runtime
beforeAll(async () => {
  runtime = await startRuntime({ flags: ['--max-running-tasks', '4'] })
})
afterAll(() => runtime.dispose())

/** The service goes on: it answers, its places are free, and nothing of the task is left. */
async function expectUnharmed({ artifacts, task_id }: TaskStatusResponse): Promise<void> {
  expect((await runtime.fetch('/healthz')).status).toBe(200)
  expect((await runtime.fetch('/api/v1/tasks?limit=1000')).status).toBe(200)
  expect([200, 404]).toContain((await runtime.fetch(`/api/v1/tasks/${task_id}/logs?stream=stdout`)).status)
  expect(await runtime.runScript('echo fine')).toMatchObject({ status: 'success', stdout: 'fine\n' })
  expect((await runtime.resources()).active_reservations).toEqual([])
  expect(await noProcessesOf(artifacts.task_dir)).toEqual([])
}

describe('a task that spoils its own directory ends, and the service goes on', () => {
  test.each([
    ['removes all of it', 'rm -rf "$(dirname "$PWD")"'],
    ['removes all files in it', 'cd ..; rm -rf *'],
    ['makes directories where files are to be', 'cd ..; mkdir result.json; rm stdout.log; mkdir stdout.log'],
    ['puts pipes where files are', 'cd ..; for f in stdout.log stderr.log; do rm $f; mkfifo $f; done'],
    ['puts links where files are', 'cd ..; for f in stdout.log stderr.log; do rm $f; ln -s /dev/zero $f; done'],
    ['takes away all rights', 'chmod 000 ../* .. .'],
  ])('%s', async (_, text) => {
    const task = await runtime.runScript(`${text}; exit 3`)
    expect(task.status).toBe('failed')
    expect(['exit_nonzero', 'internal']).toContain(task.error!.code)
    if (task.exit_code !== undefined) expect(task.exit_code).toBe(3)
    await expectUnharmed(task)
  })

  test('makes a directory where the outcome is to be: it ran, so the end is no launch_failed', async () => {
    const task = await runtime.runScript('cd ..; mkdir outcome; exit 3')
    expect(['exit_nonzero', 'internal']).toContain(task.error!.code)
    expect(await runtime.eventTypes(task.task_id)).toContain('started')
    await expectUnharmed(task)
  })

  test.each([
    ['once it has', 'rm started; mkfifo started; exec 3<>started; echo ready; sleep 600'],
    ['before anybody looks, and then', 'rm started; echo ready; sleep 1; mkfifo started; exec 3<>started; sleep 600'],
    [
      'as a link to itself, once it has',
      'rm started; ln -s outcome outcome; ln -s started started; echo ready; sleep 600',
    ],
  ])(
    'puts a pipe where the record of its launcher is: it is still ended, %s',
    async (_, text) => {
      const id = await runtime.script(`cd ..; ${text}`)
      await runtime.printed(id)
      expect((await runtime.kill(id)).status).toBe(200)
      expect(await runtime.ended(id)).toMatchObject({ status: 'cancelled' })
      await expectUnharmed(await runtime.ended(id))
    },
    30_000,
  )

  test('what is behind a link that it put in the place of its output is not shown', async () => {
    const task = await runtime.runScript(
      'echo sesame > ../../../secret; cd ..; rm stdout.log; ln -s ../../secret stdout.log',
    )
    const logs = await (await runtime.fetch(`/api/v1/tasks/${task.task_id}/logs?stream=stdout`)).text()
    expect(task.stdout + logs).not.toContain('sesame')
  })
})

describe('a task that turns on its launcher ends, with all that it started', () => {
  test.each([
    ['kills it', 'kill -9 $PPID'],
    ['kills it, with children in other sessions', 'sleep 600 & setsid sleep 600 & kill -9 $PPID'],
    ['terminates it', 'kill -TERM $PPID'],
  ])('%s', async (_, text) => {
    const task = await runtime.runScript(`${text}; sleep 600`)
    expect(task).toMatchObject({ status: 'failed', error: { code: 'internal' } })
    await expectUnharmed(task)
  })

  test.each([
    ['a kill', {}, 'cancelled'],
    ['wall time', { limits: { wall_time_ms: 1_500 } }, 'failed'],
  ])('one that stops its launcher is still ended by %s', async (_, more, status) => {
    const id = await runtime.script('kill -STOP $PPID; echo stopped; sleep 600', more)
    await runtime.printed(id)
    try {
      if (status === 'cancelled') expect((await runtime.kill(id)).status).toBe(200)
      const task = await until(
        () => runtime.get(id),
        (found) => found.status !== 'accepted' && found.status !== 'running',
      )
      expect(task.status).toBe(status as TaskStatusResponse['status'])
      await expectUnharmed(task)
    } finally {
      const task = await runtime.get(id)
      if (task.status === 'running') process.kill(task.shim_pid!, 'SIGCONT')
      await runtime.ended(id)
    }
  })
})

test('a task that signals its own process group, as cleanup traps do, hits itself alone', async () => {
  const task = await runtime.runScript('trap : TERM; kill -TERM 0; echo heard; exit 4')
  expect(task).toMatchObject({ status: 'failed', exit_code: 4, stdout: 'heard\n' })
  await expectUnharmed(task)
})
