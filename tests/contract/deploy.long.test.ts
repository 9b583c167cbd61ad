/**
 * The images and the compose file of deploy/ in a real engine: made, brought up by `taskmill ensure-running`, used,
 * restarted, taken down. The tests follow each other: one stack for all of them.
 */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import type { SubmitTaskResponse, TaskStatusResponse } from '../../shared/contract/runtime.ts'
import type { RuntimeInfo } from '../../shared/contract/runtime-info.ts'
import { BUILD_MS } from '../support/debian-image.ts'
import { faultOfTheStack, makeStack, type Stack, stackTitle } from '../support/deployed-stack.ts'
import { docker, ENGINE_ENV } from '../support/docker-engine.ts'
import { dataOf, workplace } from '../support/ensure-running.ts'
import { freePort } from '../support/free-port.ts'
import { until } from '../support/until.ts'

/** Milliseconds until a health check, which comes every five seconds, must have succeeded. */
const HEALTHY_MS = 60_000

/** Milliseconds for taking everything down; compose gives a container ten seconds before it kills it. */
const DOWN_MS = 60_000

describe.skipIf(faultOfTheStack !== undefined)(stackTitle, () => {
  let stack: Stack
  // The runner would count skipped hooks as tests.
  if (faultOfTheStack === undefined) {
    beforeAll(async () => {
      stack = await makeStack()
    }, BUILD_MS)
    afterAll(() => stack[Symbol.asyncDispose](), DOWN_MS)
  }

  /** Submits a script to the runtime. */
  const script = async (text: string): Promise<string> => {
    const body = JSON.stringify({ execution: { kind: 'script', script: text } })
    const response = await stack.runtime('/api/v1/tasks', { method: 'POST', body })
    return ((await response.json()) as SubmitTaskResponse).task_id
  }
  const task = async (id: string, query = ''): Promise<TaskStatusResponse> =>
    (await (await stack.runtime(`/api/v1/tasks/${id}${query}`)).json()) as TaskStatusResponse
  const ended = (id: string) => task(id, '?wait_ms=20000')

  test('without a token nothing starts, and it is said why', async () => {
    const run = await stack.ensure({ token: '' })
    expect(run.exitCode).toBe(4)
    expect(dataOf(run).control.attempt_note).toContain('set it to a secret, such as openssl rand -hex 32 prints')
    expect(await stack.parts()).toEqual([])
  })

  test(
    'ensure-running builds the images and brings up both services; they become healthy',
    async () => {
      const run = await stack.ensure()
      expect(dataOf(run)).toMatchObject({
        control: { reachable: true, started_by: 'compose', health_status_code: 200 },
        runtime: { reachable: true, started_by: 'compose', ready_status_code: 200 },
      })
      for (const service of ['control', 'runtime']) {
        await until(
          () => stack.health(service),
          (health) => health === 'healthy',
          { patienceMs: HEALTHY_MS },
        )
      }
      const again = await stack.ensure()
      expect([dataOf(again).control.started_by, dataOf(again).runtime?.started_by]).toEqual([undefined, undefined])
    },
    BUILD_MS,
  )

  test('control runs tasks for those who have the token, and keeps them over a restart', async () => {
    const graph = {
      tasks: [
        { id: 'write', type: 'file', params: { action: 'write', path: 'hello', content: 'hello' } },
        { id: 'read', type: 'shell', params: { command: 'cat', args: ['/work/hello'] }, depends_on: ['write'] },
      ],
    }
    expect((await stack.client(['submit'], JSON.stringify(graph))).exitCode).toBe(0)
    expect((await stack.client(['wait', 'read'])).exitCode).toBe(0)
    const before = await (await stack.control('/tasks/read')).text()
    expect(JSON.parse(before)).toMatchObject({ status: 'success', result: { stdout: 'hello' } })
    expect((await fetch(`${stack.urls.control}/tasks/read`)).status).toBe(401)

    await stack.compose('restart', 'control')
    await stack.ensure()
    expect(await (await stack.control('/tasks/read')).text()).toBe(before)
  })

  test('the runtime runs tasks as its own user, and knows that it is in a container', async () => {
    const { status, stdout } = await ended(await script('id -un; pwd'))
    expect(status).toBe('success')
    expect(stdout).toMatch(/^taskmill\n\/var\/lib\/taskmill\/data\/tasks\/[^/]+\/workspace\n$/)
    const info = (await (await stack.runtime('/api/v1/runtime/info')).json()) as RuntimeInfo
    expect(info).toMatchObject({ runtime_id: 'runtime', platform: { containerized: true } })
    expect((await fetch(`${stack.urls.runtime}/api/v1/tasks`)).status).toBe(401)
  })

  test('a restart of the runtime keeps what had ended, and ends what had not', async () => {
    const done = await script('echo done')
    const before = await ended(done)
    const lost = await script('echo begun; sleep 600')
    await until(
      () => task(lost),
      ({ stdout }) => stdout === 'begun\n',
    )
    await stack.compose('restart', 'runtime')
    await stack.ensure()
    expect(await task(done)).toEqual(before)
    const { status, error } = await ended(lost)
    expect([status, error?.code, error?.message]).toEqual(['failed', 'internal', 'task lost during runtime restart'])
  })

  test('the image of the runtime alone is what ensure-running can start as a container', async () => {
    await using place = await workplace()
    const port = await freePort()
    await using containers = new AsyncDisposableStack()
    containers.defer(async () => void (await docker('rm', '--force', '--volumes', `taskmill-runtime-${port}`)))
    const args = [
      '--with-runtime',
      '--runtime-url',
      `http://127.0.0.1:${port}`,
      '--runtime-image',
      stack.images.runtime,
    ]
    const run = await place.ensure(args, { url: stack.urls.control, env: ENGINE_ENV })
    expect(dataOf(run).runtime).toMatchObject({ reachable: true, started_by: 'container', ready_status_code: 200 })
  })

  test(
    'down keeps the volumes, and with --volumes nothing',
    async () => {
      await stack.compose('down')
      expect((await stack.parts()).sort()).toEqual([
        expect.stringMatching(/_control-state$/),
        expect.stringMatching(/_control-work$/),
        expect.stringMatching(/_runtime-data$/),
      ])
      await stack.compose('down', '--volumes')
      expect(await stack.parts()).toEqual([])
    },
    DOWN_MS,
  )
})
