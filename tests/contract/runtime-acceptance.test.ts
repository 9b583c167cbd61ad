/**
 * Goal: nothing of a task runs before its acceptance is synced, and nothing is left of a task that is refused. Method: a service whose syncs fail when the test wants it; a service that is killed among many submissions.
 */
import { expect, test } from 'bun:test'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { hasEnded } from '../../shared/contract/runtime-status.ts'
import { FailingCalls, missingFailingCalls } from '../support/failing-calls.ts'
import { startRuntime } from '../support/runtime.ts'
import { missingSandbox } from '../support/sandboxes.ts'
import { childrenOf, endProcessesOf, forkServerOf } from '../support/task-processes.ts'
import { tempDir } from '../support/temp.ts'
import { until } from '../support/until.ts'

const whyNone = missingFailingCalls === undefined ? '' : ` (skipped: ${missingFailingCalls})`

const PROFILES = missingSandbox === undefined ? (['process', 'linux_sandbox'] as const) : (['process'] as const)

/** Submissions for one of which the service is killed at each moment of an acceptance, or nearly. */
const KILLS = 12

test.skipIf(missingFailingCalls !== undefined).each(PROFILES)(
  `a task of the profile %s that is refused has not run, and its id is free${whyNone}`,
  async (profile) => {
    using dir = tempDir()
    using failing = new FailingCalls(dir.path)
    await using runtime = await startRuntime({ env: failing.env })
    await runtime.runScript('true')
    const forkServer = await forkServerOf(runtime.process.pid)
    const noLaunchers = () => until(() => childrenOf(forkServer), [])
    await noLaunchers() // the launcher of the first task reports the end before it exits
    const ran = join(runtime.dataDir, 'tasks', 'task-1', 'workspace', 'ran')
    const body = {
      task_id: 'task-1',
      execution: { kind: 'script', script: 'echo ran >> ran; sleep 600' },
      sandbox: { profile },
    }
    failing.fail('syncs')
    expect((await runtime.post(body)).status).toBe(503)
    await noLaunchers()
    expect(existsSync(ran)).toBe(false)
    failing.fail('none')
    await until(async () => (await runtime.fetch('/readyz')).status, 200)
    await until(
      () => readdirSync(join(runtime.dataDir, 'tasks')),
      (names) => !names.includes('task-1'),
    )
    expect((await runtime.fetch('/api/v1/tasks/task-1')).status).toBe(404)
    expect((await runtime.resources()).active_reservations).toEqual([])
    expect((await runtime.post(body)).status).toBe(200)
    await until(() => existsSync(ran) && readFileSync(ran, 'utf8'), 'ran\n')
    await runtime.kill('task-1')
    expect((await runtime.ended('task-1')).status).toBe('cancelled')
  },
)

test.skipIf(missingFailingCalls !== undefined)(
  `a task whose acceptance is not synced is there once a caller hears of it, who submits it again or asks for it${whyNone}`,
  async () => {
    using dir = tempDir()
    using failing = new FailingCalls(dir.path)
    await using runtime = await startRuntime({ env: failing.env })
    await runtime.runScript('true') // the first task opens what later ones use
    const body = { task_id: 'twice', execution: { kind: 'script', script: 'true' } }
    failing.fail('held syncs')
    const first = runtime.post(body)
    const look = async (id: string) => (await runtime.fetch(`/api/v1/tasks/${id}`)).status
    const others = async () => {
      for (let looks = 0; looks < 20; looks++) expect(await look('other')).toBe(404)
    }
    await others() // the first request has come meanwhile
    const again = runtime.post(body).then(async ({ status }) => [status, await look('twice')])
    const asked = look('twice')
    await others() // and the two further ones
    failing.fail('none')
    expect([(await first).status, await again, await asked]).toEqual([200, [409, 200], 200])
  },
)

test('tasks that are on their way when the service is killed run once or never, and none is lost', async () => {
  using dir = tempDir()
  const dataDir = join(dir.path, 'data')
  await using _ = endProcessesOf(dir.path)
  const log = join(dir.path, 'ran')
  const accepted: string[] = []
  for (let i = 0; i < KILLS; i++) {
    await using runtime = await startRuntime({ dataDir })
    await runtime.runScript('true')
    const ids = [1, 2, 3].map((n) => `task-${i}-${n}`)
    const submissions = ids.map(async (task_id) => {
      const response = await runtime.post({
        task_id,
        execution: { kind: 'script', script: `echo ${task_id} >> ${log}` },
      })
      if (response.status === 200) accepted.push(task_id)
    })
    await Bun.sleep(i * 2) // the moment of the kill varies: before, during and after the sync
    runtime.process.kill('SIGKILL')
    await Promise.allSettled([...submissions, runtime.process.exited])
  }
  await using runtime = await startRuntime({ dataDir })
  const tasks = await until(
    () => runtime.list(),
    (all) => all.every(({ status }) => hasEnded(status)),
  )
  const known = tasks.map(({ task_id }) => task_id)
  expect(known).toEqual(expect.arrayContaining(accepted))
  expect(tasks.filter(({ status }) => status !== 'success').map(({ error }) => error)).toEqual([])
  const lines = existsSync(log) ? readFileSync(log, 'utf8').trim().split('\n').toSorted() : []
  expect(lines).toEqual(known.filter((id) => id.startsWith('task-')).toSorted())
  // Directories without a task are removed while the service runs.
  await until(
    () =>
      readdirSync(join(dataDir, 'tasks'))
        .filter((name) => name.startsWith('task-'))
        .toSorted(),
    (names) => Bun.deepEquals(names, lines),
  )
})
