/**
 * Goal: `env` and `stdin` reach the commands of shell and cli-skills tasks, within limits, and the values of variables are
 * seen nowhere but where a restart needs them. Method: the built service; every answer and every file is searched.
 */
import { describe, expect, test } from 'bun:test'
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { ErrorResponse } from '../../shared/contract/control.ts'
import { startControl } from '../support/control.ts'
import { connectClient } from '../support/mcp-client.ts'
import { tempDir } from '../support/temp.ts'

const SECRET = 'hunter2-7c1d09'
const open = { SERVICE_SHELL_POLICY: 'open' }

const TYPES: [string, 'stdout' | 'output'][] = [
  ['shell', 'stdout'],
  ['cli-skills', 'output'],
]

describe.each(TYPES)('a task of type %s', (type, stream) => {
  test('gets what it is to read, and variables in addition to those of every command', async () => {
    await using control = await startControl({ env: open })
    const read = await control.run({ type, params: { command: 'cat', stdin: 'one\n{"$from": "x"}\n' } })
    expect(read.result).toMatchObject({ [stream]: 'one\n{"$from": "x"}\n' })
    const env = { GREETING: 'hi there', LC_ALL: 'C', HOME: '/elsewhere', EMPTY: '' }
    const task = await control.run({ type, params: { command: 'env', env } })
    const variables = (task.result as Record<string, string>)[stream]!.split('\n')
    expect(variables).toContain('GREETING=hi there')
    expect(variables).toContain('HOME=/elsewhere')
    expect(variables).toContain('EMPTY=')
    expect(variables.filter((line) => line.startsWith('PATH='))).toHaveLength(1)
    expect(variables.filter((line) => line.startsWith('TASKMILL_ATTEMPT='))).toHaveLength(1)
  })

  test.each<[string, object, string, string]>([
    ['a variable of a wrong type', { env: { A: 1 } }, 'invalid_input', 'env: expected object of strings'],
    ['a list of variables', { env: ['A=x'] }, 'invalid_input', 'env: expected object of strings'],
    ['a name with =', { env: { 'A=B': 'x' } }, 'invalid_input', 'env keys must be non-empty and cannot contain "="'],
    ['a name that is empty', { env: { '': 'x' } }, 'invalid_input', 'env keys must be non-empty'],
    ['a NUL', { env: { A: 'x\0y' } }, 'invalid_input', 'env.A cannot contain NUL characters'],
    ['a value that is too long', { env: { A: 'x'.repeat(131_072) } }, 'invalid_input', 'env.A has 131074 bytes'],
    ['too much to read', { stdin: 'x'.repeat(1_048_577) }, 'invalid_input', 'stdin: expected at most 1048576 bytes'],
    ['a preloaded library', { env: { LD_PRELOAD: '/x.so' } }, 'denied', 'env.LD_PRELOAD cannot be set unless SERVICE_'],
    [
      ...(['another name of the attempt', { env: { TASKMILL_ATTEMPT: 'x' } }, 'invalid_input'] as const),
      'env.TASKMILL_ATTEMPT marks the processes of an attempt and cannot be replaced',
    ],
    ['another search path', { env: { PATH: '/x' } }, 'denied', 'env.PATH cannot be set unless SERVICE_SHELL_POLICY'],
  ])('fails with a warning for %s', async (_, params, code, text) => {
    await using control = await startControl()
    const response = await control.post({ tasks: [{ id: 'a', type, params: { command: 'cat', ...params } }] })
    const { warnings } = (await response.json()) as { warnings: { message: string }[] }
    const { error, runtime } = await control.ended('a')
    expect(warnings[0]!.message).toContain(text)
    expect([runtime?.error?.code, error]).toEqual([code as 'denied', expect.stringContaining(text)])
  })
})

test('the open policy lets a task choose its search path', async () => {
  await using control = await startControl({ env: open })
  const task = await control.run({ type: 'shell', params: { script: 'echo "$PATH"', env: { PATH: '/a:/b' } } })
  expect(task.result).toMatchObject({ stdout: '/a:/b\n' })
})

test('values of variables are in no answer, log or file but those that a restart needs', async () => {
  using dir = tempDir()
  const dataDir = join(dir.path, 'data')
  mkdirSync(join(dir.path, 'skills'))
  writeFileSync(join(dir.path, 'skills/quiet'), '#!/bin/sh\ntest -n "$TOKEN"\n', { mode: 0o755 })
  const flags = ['--skills-dir', join(dir.path, 'skills'), '--log-level', 'debug']
  await using control = await startControl({ dataDir, env: open, flags })
  const env = { TOKEN: SECRET }
  const params = { script: 'test -n "$TOKEN"', env }
  const answers: string[] = []
  const ask = async (path: string, body?: object) => {
    const init = body === undefined ? {} : { method: 'POST', body: JSON.stringify(body) }
    answers.push(await (await control.fetch(path, init)).text())
    return answers.at(-1)!
  }
  await ask('/tasks', {
    params: { token: SECRET },
    tasks: [
      { id: 'shell', type: 'shell', params },
      { id: 'failed', type: 'shell', params: { ...params, script: 'exit 1' }, retry: 1 },
      { id: 'wrong', type: 'shell', params: { script: 7, env } },
      { id: 'skill', type: 'cli-skills', tool_name: 'quiet', params: { env } },
      { id: 'parameter', type: 'shell', params: { script: 'test -n "$TOKEN"', env: { TOKEN: { $param: 'token' } } } },
      {
        ...{ id: 'spy', type: 'noop', depends_on: ['shell', 'parameter'] },
        params: {
          message: [
            { $from: 'shell', path: '/params' },
            { $from: 'parameter', path: '/resolved_input' },
          ],
        },
      },
    ],
  })
  const action = { kind: 'os.shell', input: params }
  expect(await ask('/adapters/translate', { action })).toContain('"env":{"TOKEN":"***"}')
  await ask('/adapters/actions', { action })
  await using mcp = await connectClient(control.url)
  const tasks = await control.allEnded()
  expect(tasks.filter(({ status }) => status !== 'success').map(({ id }) => id)).toEqual(['failed', 'wrong', 'spy'])
  for (const { id, graph_id } of tasks) {
    answers.push((await mcp.call('get_task', { task_id: id, detail: true })).text)
    await ask(`/tasks/${id}`)
    await ask(`/graphs/${graph_id}`)
  }
  await ask('/tasks')
  await ask('/graphs')
  expect((await control.get('parameter')).resolved_input).toMatchObject({ env: { TOKEN: '***' } })
  expect(answers.filter((text) => text.includes(SECRET))).toEqual([])
  expect(JSON.stringify(control.log)).not.toContain(SECRET)
  await control.stop()
  const holds = readdirSync(dataDir, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && readFileSync(join(entry.parentPath, entry.name)).includes(SECRET))
    .map(({ name }) => name)
  expect(holds.filter((name) => !/^(state\.json|(journal|pack)-[\d-]+\.log)$/.test(name))).toEqual([])
})

test('a record with hidden values is refused', async () => {
  await using control = await startControl()
  const task = await control.run({ type: 'shell', params: { command: 'echo', env: { TOKEN: SECRET } } })
  const response = await control.post({ tasks: [{ ...task, id: 'again' }] })
  expect([response.status, ((await response.json()) as ErrorResponse).error]).toEqual([
    400,
    expect.stringContaining('task again: params.env.TOKEN is "***": a record of ours was sent back'),
  ])
})
