/**
 * `taskmill-runtime submit status wait kill run`: what they print and how they exit.
 * Source: contract 0 (last lines), 5 Client.
 */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { SubmitTaskResponse, TaskStatusResponse } from '../../shared/contract/runtime.ts'
import { freePort } from '../support/free-port.ts'
import { type Runtime, startRuntime } from '../support/runtime.ts'
import { runRuntime } from '../support/runtime-command.ts'
import { command, SLEEP, script, waitFor } from '../support/runtime-tasks.ts'
import { type TempDir, tempDir } from '../support/temp.ts'
import { until } from '../support/until.ts'

let temp: TempDir
let runtime: Runtime
beforeAll(async () => {
  temp = tempDir()
  runtime = await startRuntime({ flags: ['--max-running-tasks', '16'] })
})
afterAll(async () => {
  await runtime.dispose()
  temp[Symbol.dispose]()
})

const server = () => ['--server', runtime.url]
const json = (body: object) => ['--json', JSON.stringify(body)]

/** A run that must print one JSON value. */
async function answer<T>(
  args: readonly string[],
  env: Record<string, string> = {},
): Promise<{ exitCode: number; json: T }> {
  const { exitCode, stdout, stderr } = await runRuntime(args, { env, cwd: temp.path })
  try {
    return { exitCode, json: JSON.parse(stdout) as T }
  } catch {
    throw new Error(`no JSON: ${JSON.stringify({ args, exitCode, stdout, stderr })}`)
  }
}

describe('submit', () => {
  test('--json: prints the response and exits 0', async () => {
    const body = { task_id: 'by-json', ...command('/bin/true') }
    const { exitCode, json: printed } = await answer<SubmitTaskResponse>(['submit', ...server(), ...json(body)])
    expect(exitCode).toBe(0)
    expect(printed).toEqual({ task_id: 'by-json', handle_id: 'by-json', status: 'accepted' })
    expect((await runtime.ended('by-json')).status).toBe('success')
  })

  test('--file: the request in a file', async () => {
    const file = join(temp.path, 'request.json')
    writeFileSync(file, JSON.stringify({ task_id: 'by-file', ...script('echo from file') }))
    const { exitCode, json: printed } = await answer<SubmitTaskResponse>(['submit', ...server(), '--file', file])
    expect([exitCode, printed.task_id]).toEqual([0, 'by-file'])
    expect((await runtime.ended('by-file')).stdout).toBe('from file\n')
  })

  test('flags take every form', async () => {
    const body = JSON.stringify(command('/bin/true'))
    for (const args of [
      [`--server=${runtime.url}`, `--json=${body}`],
      ['-server', runtime.url, '-json', body],
      [`-json=${body}`, `-server=${runtime.url}`],
      ['--server', `${runtime.url}/`, '--json', body],
    ]) {
      expect((await answer<SubmitTaskResponse>(['submit', ...args])).exitCode).toBe(0)
    }
  })

  test('a refusal exits 1 and says what the service said', async () => {
    const { exitCode, stdout, stderr } = await runRuntime([
      'submit',
      ...server(),
      ...json({ execution: { kind: 'command' } }),
    ])
    expect(exitCode).toBe(1)
    expect(stdout + stderr).toContain('execution.program is required for command tasks')
  })
})

describe('run', () => {
  test.each([
    ['a success', script('echo ran'), 0, 'success'],
    ['a failure', script('exit 3'), 1, 'failed'],
    ['a launch that failed', command('/no/such/program'), 1, 'failed'],
    ['a timeout', { ...SLEEP, limits: { wall_time_ms: 50 } }, 1, 'failed'],
  ])('exits with 0 only when the task ended in success: %s', async (_, body, code, status) => {
    const { exitCode, json: printed } = await answer<TaskStatusResponse>(['run', ...server(), ...json(body)])
    expect(exitCode === 0).toBe(code === 0)
    expect(printed.status).toBe(status as TaskStatusResponse['status'])
    expect(printed).toEqual(await runtime.get(printed.task_id))
  })

  test('a cancelled task is no success', async () => {
    const running = answer<TaskStatusResponse>(['run', ...server(), ...json({ task_id: 'to-cancel', ...SLEEP })])
    await until(async () => (await runtime.fetch('/api/v1/tasks/to-cancel')).status, 200)
    await runtime.kill('to-cancel')
    const { exitCode, json: printed } = await running
    expect(exitCode).not.toBe(0)
    expect(printed.status).toBe('cancelled')
  })

  test('a refused task exits 1', async () => {
    expect((await runRuntime(['run', ...server(), ...json({ task_id: 'a b', ...SLEEP })])).exitCode).toBe(1)
  })
})

describe('status and wait', () => {
  test('status prints the record as it is', async () => {
    const id = await runtime.submit({ task_id: 'look', ...SLEEP, metadata: { a: 'b' } })
    await runtime.reached(id, 'running')
    for (const args of [
      ['status', id, ...server()],
      ['status', ...server(), id],
    ]) {
      const { exitCode, json: printed } = await answer<TaskStatusResponse>(args)
      expect(exitCode).toBe(0)
      expect(printed).toMatchObject({ task_id: id, status: 'running', metadata: { a: 'b' } })
    }
  })

  test('wait prints it when the task has ended', async () => {
    const go = join(temp.path, 'go')
    const id = await runtime.script(`${waitFor(go)}; echo done`)
    const waiting = answer<TaskStatusResponse>(['wait', id, ...server()])
    await runtime.reached(id, 'running')
    await Bun.write(go, '')
    const { exitCode, json: printed } = await waiting
    expect(exitCode).toBe(0)
    expect(printed).toEqual(await runtime.get(id))
    expect(printed).toMatchObject({ status: 'success', stdout: 'done\n' })
  })
})

describe('kill', () => {
  test('prints the record, and the task ends', async () => {
    const id = await runtime.submit(SLEEP)
    const { exitCode, json: printed } = await answer<TaskStatusResponse>(['kill', id, ...server()])
    expect(exitCode).toBe(0)
    expect(printed.task_id).toBe(id)
    expect((await runtime.ended(id)).status).toBe('cancelled')
  })

  test.each([
    ['--owner', ['--owner', 'team-a'], {}],
    ['SERVICE_RUNTIME_OWNER', [], { SERVICE_RUNTIME_OWNER: 'team-a' }],
    ['--owner, which beats the variable', ['--owner=team-a'], { SERVICE_RUNTIME_OWNER: 'team-b' }],
  ])('with the owner from %s', async (_, flags, env) => {
    const id = await runtime.submit({ ...SLEEP, control_context: { owner: 'team-a' } })
    const refused = await runRuntime(['kill', id, ...server()])
    expect(refused.exitCode).toBe(1)
    expect(refused.stdout + refused.stderr).toContain("kill requires owner 'team-a'")
    expect((await runRuntime(['kill', id, ...server(), '--owner', 'team-b'])).exitCode).toBe(1)
    expect(
      (await answer<TaskStatusResponse>(['kill', id, ...server(), ...flags], env as Record<string, string>)).exitCode,
    ).toBe(0)
    expect((await runtime.ended(id)).status).toBe('cancelled')
  })
})

describe('exit code 1', () => {
  test.each(['status', 'wait', 'kill'])('%s of an unknown id', async (name) => {
    const { exitCode, stdout, stderr } = await runRuntime([name, 'nobody', ...server()])
    expect(exitCode).toBe(1)
    expect(stdout + stderr).toContain('task not found: nobody')
  })

  test('a connection that is refused', async () => {
    const port = await freePort()
    const url = `http://127.0.0.1:${port}`
    for (const args of [
      ['submit', ...json(SLEEP)],
      ['run', ...json(SLEEP)],
      ...['status', 'wait', 'kill'].map((name) => [name, 'x']),
    ]) {
      const { exitCode, stdout, stderr } = await runRuntime([...args, '--server', url])
      expect([args[0], exitCode]).toEqual([args[0], 1])
      expect(stdout + stderr).toContain(String(port))
    }
  })

  test('a file that is missing', async () => {
    for (const name of ['submit', 'run']) {
      const { exitCode, stdout, stderr } = await runRuntime([name, ...server(), '--file', '/no/such/request.json'])
      expect([name, exitCode]).toEqual([name, 1])
      expect(stdout + stderr).toContain('/no/such/request.json')
    }
  })
})

describe('exit code 2, with one clear line on stderr', () => {
  test.each([
    [['status']],
    [['wait']],
    [['kill']],
    [['status', 'x', '--no-such-flag']],
    [['submit', '--json']],
    [['run', '--file']],
    [['kill', 'x', '--owner']],
    [['status', 'x', '--server']],
    [['status', 'x', '--server', 'nonsense']],
    [['submit', '--colour', 'red', '--json', '{}']],
  ])('%j', async (args) => {
    const { exitCode, stdout, stderr } = await runRuntime(args)
    expect({ exitCode, stdout }).toEqual({ exitCode: 2, stdout: '' })
    expect(stderr).toMatch(/^taskmill-runtime[^\n]*: [^\n]+\n$/)
  })
})

test('they need nothing but the server: no data directory, no files, no environment', async () => {
  using empty = tempDir()
  const { exitCode } = await runRuntime(['run', ...server(), ...json(command('/bin/true'))], { cwd: empty.path })
  expect(exitCode).toBe(0)
  expect([...new Bun.Glob('**').scanSync({ cwd: empty.path, onlyFiles: false })]).toEqual([])
})
