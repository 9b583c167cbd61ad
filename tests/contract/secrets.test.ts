/**
 * Goal: the value of a variable of a runtime task stands nowhere but where a restart needs it: the journal and the state
 * file of control, the database of the runtime service, files of their owner alone.
 * Method: tasks with secret values come in through every door; then every answer, every line of the logs and every file
 * of both services is searched.
 */
import { describe, expect, test } from 'bun:test'
import { chmodSync, lstatSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { startControl } from '../support/control.ts'
import { filesWith } from '../support/files-below.ts'
import { connectClient } from '../support/mcp-client.ts'
import { type Pair, startPair } from '../support/pair.ts'
import { startRuntime } from '../support/runtime.ts'
import { refused, script } from '../support/runtime-tasks.ts'
import { tempDir } from '../support/temp.ts'
import { until } from '../support/until.ts'

const SECRET = 'hunter2-0f6e1c'
const HIDDEN = '***'
const env = { TOKEN: SECRET, EMPTY: '' }
const hidden = { TOKEN: HIDDEN, EMPTY: HIDDEN }

/** Whether a file of this name may hold the input of tasks. */
const isPlaceOfInput = (path: string) =>
  /^control\/(state\.json|(pack-\d{10}|journal)-\d{10}\.log)(\.new)?$/.test(path) ||
  /^runtime\/runtime\.db(-wal)?$/.test(path)

const below = (directory: string) => readdirSync(directory, { recursive: true, withFileTypes: true })

const filesWithSecret = (top: string): string[] =>
  filesWith(top, (content) => content.includes(SECRET)).map((path) => relative(top, path))

const action = (kind: string, input: object) => ({ action: { kind, input } })

/** The text of each answer by what was asked. */
async function answersOf(pair: Pair): Promise<Map<string, string>> {
  const answers = new Map<string, string>()
  const ask = async (service: 'control' | 'runtime', path: string, body?: object) => {
    const init = body === undefined ? {} : { method: 'POST', body: JSON.stringify(body) }
    const response = await pair[service].fetch(path, init)
    const text = await response.text()
    expect(`${response.status} ${path} ${text}`).toMatch(/^20[0-9] /)
    answers.set(`${service} ${path} ${answers.size}`, text)
    return text
  }
  const params = { script: 'test -n "$TOKEN" && sleep 0.1', env }
  await ask('control', '/tasks', {
    tasks: [
      { id: 'flat', type: 'runtime.script', params },
      { id: 'whole', type: 'runtime', tool_name: 'script', input: { execution: { script: params.script, env } } },
      { id: 'failed', type: 'runtime', params: { script: 'exit 1', env, sandbox: { profile: 'process' } }, retry: 1 },
      { id: 'refused', type: 'runtime.command', params: { program: '', env } },
      { id: 'never', type: 'runtime.script', params, depends_on: ['refused'] },
    ],
  })
  const graph = { tasks: [{ id: 'in-graph', type: 'runtime.script', params }] }
  for (const path of ['/adapters/translate', '/adapters/actions']) {
    await ask('control', path, action('runtime.script', params))
    await ask('control', path, action('runtime.script', { execution: params }))
    await ask('control', path, action('task_graph.submit', graph))
  }
  await using mcp = await connectClient(pair.control.url)
  const call = async (name: string, input: Record<string, unknown>) => {
    const { text, isError } = await mcp.call(name, input)
    expect(isError).toBe(false)
    answers.set(`mcp ${name} ${answers.size}`, text)
  }
  await call('submit_graph', {
    tasks: [{ id: 'by-mcp', type: 'runtime.script', params }],
    wait_ms: 10_000,
    detail: true,
  })
  await call('run_action', { kind: 'runtime.script', input: params, action_id: 'by-action', detail: true })
  await pair.control.allEnded()
  for (const name of ['list_tasks', 'capabilities']) await call(name, {})
  for (const { id } of await pair.control.list()) {
    await ask('control', `/tasks/${id}`)
    await call('get_task', { task_id: id })
    await call('get_task', { task_id: id, detail: true })
    await call('get_logs', { task_id: id })
  }
  for (const path of ['/tasks', '/metrics', '/health']) await ask('control', path)
  const there = await pair.runtime.list()
  expect(there.length).toBeGreaterThan(5)
  for (const { task_id } of there) {
    for (const part of ['', '/events', '/logs']) await ask('runtime', `/api/v1/tasks/${task_id}${part}`)
  }
  for (const path of ['tasks', 'runtime/info', 'runtime/config', 'runtime/resources', 'runtime/capabilities']) {
    await ask('runtime', `/api/v1/${path}`)
  }
  return answers
}

test('it is in no answer, no log line and no file but those of a restart, which their owner alone reads', async () => {
  await using pair = await startPair({ controlFlags: ['--persist-interval', '100ms'] })
  const answers = await answersOf(pair)
  for (const [asked, text] of answers) expect(`${asked}: ${text.includes(SECRET)}`).toBe(`${asked}: false`)
  expect(JSON.stringify([pair.control.log, pair.runtime.log])).not.toContain(SECRET)

  const stateFile = join(pair.control.dataDir, 'state.json')
  const state = await until(
    () => readFileSync(stateFile, 'utf8'),
    (text) => text.includes('by-action'),
  )
  const stored = JSON.parse(state) as Record<string, { params?: object; input?: object }>
  expect(stored.flat).toMatchObject({ params: { env }, input: { env } })
  expect(stored.whole).toMatchObject({ input: { execution: { env } } })

  const top = pair.file('')
  const found = filesWithSecret(top.replace(/\/$/, ''))
  expect(found.filter((path) => !isPlaceOfInput(path))).toEqual([])
  expect(found).toContain('control/state.json')
  for (const { parentPath, name } of below(top)) {
    const path = join(parentPath, name)
    const status = lstatSync(path, { throwIfNoEntry: false })
    if (status === undefined) continue // replaced or removed meanwhile
    expect(`${path} ${(status.mode & 0o077).toString(8)}`).toBe(`${path} 0`)
  }
})

test('tasks get the values, also after a restart of either service', async () => {
  await using pair = await startPair({ runtimeFlags: ['--max-running-tasks', '1'] })
  await pair.script('holder', `echo; while [ ! -e '${pair.file('go')}' ]; do sleep 0.02; done`)
  await pair.running('holder')
  const print = { script: 'echo "$TOKEN"', env }
  await pair.control.submit([
    { id: 'queued', type: 'runtime.script', params: print },
    { id: 'later', type: 'runtime.script', params: print, depends_on: ['queued'] },
  ])
  await pair.there('queued')
  await pair.stopRuntime('SIGKILL')
  await pair.stopControl('SIGKILL')
  await pair.startRuntime()
  await pair.startControl()
  await Bun.write(pair.file('go'), '')
  for (const id of ['queued', 'later']) {
    const { here } = await pair.ended(id)
    expect(here).toMatchObject({ status: 'success', result: { stdout: `${SECRET}\n` }, input: { env: hidden } })
  }
})

test('records show the names, and request.json of the runtime service does', async () => {
  await using runtime = await startRuntime()
  const { artifacts } = await runtime.run({ execution: { kind: 'command', program: '/bin/true', env } })
  const request = JSON.parse(readFileSync(artifacts.request_path, 'utf8'))
  expect(request.execution).toMatchObject({ program: '/bin/true', env: hidden })
})

test('parameters of a wrong shape show no value', async () => {
  await using control = await startControl()
  await control.submit([
    { id: 'list', type: 'runtime.command', params: [{ program: 'x', env }] },
    { id: 'inner', type: 'runtime', input: { execution: [{ env }] } },
    { id: 'text', type: 'runtime', input: JSON.stringify({ env }) },
  ])
  const records = await control.allEnded()
  expect(records.map(({ params, input }) => input ?? params)).toEqual([HIDDEN, { execution: HIDDEN }, HIDDEN])
  await using mcp = await connectClient(control.url)
  const views = await Promise.all(records.map(({ id }) => mcp.call('get_task', { task_id: id, detail: true })))
  expect(JSON.stringify([records, views, control.log])).not.toContain(SECRET)
})

describe('a hidden value that is sent back', () => {
  const REASON = 'a record of ours was sent back, and records hide the values of env (send the value itself)'

  test('is 400 at the runtime service', async () => {
    await using runtime = await startRuntime()
    const body = { execution: { ...script('true').execution, env: { A: 'a', TOKEN: HIDDEN } } }
    const message = `execution.env.TOKEN is "***": ${REASON}`
    expect(await refused(await runtime.post(body))).toEqual([400, 'invalid_input', message])
  })

  test('is 400 at every door of control, and nothing is stored', async () => {
    await using control = await startControl()
    const flat = { script: 'true', env: hidden }
    const whole = { execution: { script: 'true', env: hidden } }
    const errorOf = async (path: string, body: unknown) => {
      const response = await control.fetch(path, { method: 'POST', body: JSON.stringify(body) })
      return [response.status, ((await response.json()) as { error: string }).error]
    }
    const many = Array.from({ length: 300 }, (_, i) => ({ id: `n-${i}`, type: 'noop' }))
    for (const others of [[], many]) {
      const tasks = (task: object) => ({ tasks: [...others, { id: 'a', ...task }] })
      const at = (path: string) => [400, `task a: ${path} is "***": ${REASON}`]
      expect(await errorOf('/tasks', tasks({ type: 'runtime.script', params: flat }))).toEqual(at('params.env.TOKEN'))
      const inExecution = tasks({ type: 'runtime', tool_name: 'script', input: whole })
      expect(await errorOf('/tasks', inExecution)).toEqual(at('input.execution.env.TOKEN'))
      expect(await errorOf('/tasks', tasks({ type: 'runtime', params: { env: HIDDEN } }))).toEqual(at('params.env'))
    }
    for (const path of ['/adapters/translate', '/adapters/actions']) {
      for (const input of [flat, whole]) {
        const [status, error] = await errorOf(path, { action_id: 'a', ...action('runtime.script', input) })
        expect([status, error]).toEqual([
          400,
          `invalid adapter action: task a: input.execution.env.TOKEN is "***": ${REASON}`,
        ])
      }
    }
    await using mcp = await connectClient(control.url)
    const { isError, text } = await mcp.call('submit_graph', { tasks: [{ id: 'a', type: 'runtime', params: flat }] })
    expect([isError, text]).toEqual([true, expect.stringContaining(REASON)])
    expect(await control.list()).toEqual([])
  })

  test('is a value like any other where it is no variable of a runtime task', async () => {
    await using control = await startControl()
    const params = { message: HIDDEN, x_env: { A: HIDDEN } }
    const task = await control.run({ type: 'noop', params })
    expect(task).toMatchObject({ status: 'success', params, result: { message: HIDDEN } })
  })
})

test('files that a backup made readable for all are closed at the start; an open directory is told of', async () => {
  using dir = tempDir()
  const programs = [
    ['state.json', () => startControl({ dataDir: dir.path })],
    ['runtime.db', () => startRuntime({ dataDir: dir.path })],
  ] as const
  for (const [name, start] of programs) {
    {
      await using service = await start()
      if (name === 'state.json') await (service as Awaited<ReturnType<typeof startControl>>).run({ type: 'noop' })
      await service.stop('SIGTERM')
    }
    const path = join(dir.path, name)
    chmodSync(path, 0o644)
    chmodSync(dir.path, 0o755)
    await using service = await start()
    expect((statSync(path).mode & 0o777).toString(8)).toBe('600')
    const said = service.log.filter(({ msg }) => String(msg).startsWith('other users can look into'))
    expect(said).toMatchObject([{ level: 'warn', data_dir: dir.path }])
    expect((statSync(dir.path).mode & 0o777).toString(8)).toBe('755')
    chmodSync(dir.path, 0o700)
  }
})

test('the file with the addresses of the database, and their passwords, is no secret of tasks', async () => {
  using dir = tempDir()
  const path = join(dir.path, 'database')
  writeFileSync(path, 'postgres://mill:hunter2@127.0.0.1:1/mill\n', { mode: 0o600 })
  await expect(startControl({ flags: ['--secrets-dir', dir.path, '--database-file', path] })).rejects.toThrow(
    `--database-file ${path} lies in --secrets-dir, where every task could ask for it`,
  )
})
