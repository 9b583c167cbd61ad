/**
 * Warnings of a submission for runtime tasks: what no runtime service accepts is told at once, in the words of the error that the
 * task gets from a real one. Source: contract 5, "Unknown fields".
 */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import type { SubmitResponse } from '../../shared/contract/submission.ts'
import { type Pair, startPair } from '../support/pair.ts'

let pair: Pair
beforeAll(async () => {
  pair = await startPair()
})
afterAll(() => pair[Symbol.asyncDispose]())

const ls = { program: '/bin/ls' }
const long = 'x'.repeat(200_000)

/** What is certain to be refused: the type, its parameters, and the error. */
const FAULTS: readonly [type: string, params: unknown, error: string][] = [
  ['runtime.command', {}, 'execution.program is required for command tasks'],
  ['runtime.command', { script: 'ls' }, 'execution.program is required for command tasks'],
  ['runtime.command', { ...ls, script: 'ls' }, 'execution.script must be empty for command tasks'],
  ['runtime.script', {}, 'execution.script is required for script tasks'],
  ['runtime.script', { script: 'a\0' }, 'execution.script cannot contain NUL characters'],
  ['runtime', undefined, 'execution.program is required for command tasks'],
  ['runtime', { execution: { kind: 'vm' } }, 'execution.kind must be command or script'],
  ['runtime', { ...ls, args: 'x' }, 'invalid JSON: execution.args: expected array of strings, got string'],
  ['runtime', { ...ls, args: [long] }, 'execution.args[0] has 200000 bytes and a program takes at most 131071'],
  ['runtime', { ...ls, env: 'x' }, 'invalid JSON: execution.env: expected object of strings, got string'],
  ['runtime', { ...ls, env: ['x'] }, 'invalid JSON: execution.env: expected object of strings, got array'],
  [
    'runtime',
    { ...ls, env: { A: 1 } },
    'invalid JSON: execution.env.A: expected string, or object with placeholder_for, got number',
  ],
  ['runtime', { ...ls, limits: { pids_max: -1 } }, 'limits.pids_max must be greater than 0'],
  ['runtime', { ...ls, limits: [] }, 'invalid JSON: limits: expected object, got array'],
  ['runtime', { ...ls, sandbox: ['x'] }, 'invalid JSON: sandbox: expected object, got array'],
  ['runtime', { ...ls, sandbox: { profile: 'linux_sandbx' } }, 'sandbox.profile must be process or linux_sandbox'],
  [
    'runtime',
    { ...ls, sandbox: { workspace_subdir: '../x' } },
    'sandbox.workspace_subdir cannot contain parent traversal',
  ],
  [
    'runtime',
    { ...ls, sandbox: { profile: 'linux_sandbox', chroot: true } },
    'sandbox.rootfs is required when sandbox.chroot=true',
  ],
  ['runtime', { ...ls, policy: { capability_mode: 'lax' } }, 'policy.capability_mode must be adaptive or strict'],
  ['runtime', { ...ls, control_context: { tenant: ' ' } }, 'control_context values cannot be empty strings'],
  ['runtime', { ...ls, control_context: 5 }, 'invalid JSON: control_context: expected object, got number'],
  ['runtime', { ...ls, metadata: { a: {} } }, 'invalid JSON: metadata.a: expected string, got object'],
]

/** The answer to a graph of these tasks. A text is sent as it is. */
async function submitted(tasks: string | readonly object[]): Promise<SubmitResponse> {
  const body = `{"tasks": ${typeof tasks === 'string' ? tasks : JSON.stringify(tasks)}}`
  const response = await pair.control.fetch('/tasks', { method: 'POST', body })
  expect(response.status).toBe(202)
  return (await response.json()) as SubmitResponse
}

test('a runtime task that every runtime service refuses is warned of, with the error that it gets there', async () => {
  const tasks = FAULTS.map(([type, params], i) => ({ id: `fault-${i}`, type, params }))
  const { warnings } = await submitted(tasks)
  expect(warnings?.map(({ task_id }) => task_id)).toEqual(tasks.map(({ id }) => id))
  for (const [i, { task_id, message }] of warnings!.entries()) {
    const task = await pair.control.ended(task_id)
    expect(task).toMatchObject({
      ...{ status: 'failed', error: message },
      runtime: { error: { source: 'runtime', details: { status_code: 400, code: 'invalid_input' } } },
    })
    expect(message).toStartWith(FAULTS[i]![2])
  }
  await pair.isQuiet()
})

test('the rules hold for actions too', async () => {
  const input = { ...ls, sandbox: { chroot: true } }
  const body = JSON.stringify({ action_id: 'act', action: { kind: 'runtime.command', input } })
  const answer = await (await pair.control.fetch('/adapters/actions', { method: 'POST', body })).json()
  const message = 'sandbox.rootfs is required when sandbox.chroot=true'
  expect(answer).toMatchObject({ accepted: 1, warnings: [{ task_id: 'act', message }] })
  expect((await pair.control.ended('act')).error).toBe(message)
})

test('what depends on the host of the runtime service is not warned of, nor what it does not know', async () => {
  const task = (id: string, more: string) => `{"id": "${id}", "type": "runtime", "params": {"program": "true"${more}}}`
  const answer = await submitted(
    `[${[
      task('much', ', "limits": {"pids_max": 1e30}'),
      task('nowhere', ', "sandbox": {"rootfs": "/nowhere"}'),
      task('fine', ', "env": {"A": "b"}, "x-note": 1'),
    ]}]`,
  )
  expect(answer).not.toHaveProperty('warnings')
  expect((await pair.control.ended('much')).error).toStartWith('limits.pids_max')
  expect((await pair.control.ended('nowhere')).error).toContain('/nowhere')
  expect(await pair.control.ended('fine')).toMatchObject({ status: 'success' })
})
