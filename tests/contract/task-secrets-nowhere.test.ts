/**
 * Goal: the value of a secret is in nothing that the services write or answer: no record, journal, snapshot, database,
 * event, log, callback, error or command line. The exceptions are the process of the task and its own file of the secret.
 * Method: tasks with secrets in every form print them and end in every way, while both services are killed and started again; then every
 * file, every answer and every process is searched for the value, also encoded.
 */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { lstatSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import type { GraphSummary } from '../../shared/contract/graphs.ts'
import { isTerminal } from '../../shared/contract/task-status.ts'
import { filesWith } from '../support/files-below.ts'
import { connectClient } from '../support/mcp-client.ts'
import { type Pair, startPair } from '../support/pair.ts'
import { startReceiver } from '../support/receiver.ts'
import { type TempDir, tempDir } from '../support/temp.ts'
import { until } from '../support/until.ts'

setDefaultTimeout(120_000)

const VALUE = `s3cr3t-${crypto.randomUUID()}`
const HASH = new Bun.CryptoHasher('sha256').update(VALUE).digest('hex')
/** Forms in which a careless writer would leave it. */
const FORMS = [
  VALUE,
  Buffer.from(VALUE).toString('base64').slice(0, 40),
  Buffer.from(VALUE).toString('hex'),
  VALUE.slice(7),
]
const hasValue = (text: string | Buffer) => FORMS.some((form) => text.includes(form))

/** Prints the value as it is, and encoded, to both streams: what is kept of that is masked. */
const printing = (print: string) =>
  `for i in 1 2; do ${print}; ${print} | base64 -w0; (printf :; ${print}) | base64 -w0; test $i = 2 || exec 3>&1 >&2; done; exec >&3`
const inVariable = `test "$(printf %s "$TOKEN" | sha256sum)" = '${HASH}  -' && { ${printing('printf %s "$TOKEN"')}; }`
const inFile = `test "$(sha256sum < "$TOKEN")" = '${HASH}  -' && { ${printing('cat "$TOKEN"')}; }`

let temp: TempDir
let secrets: string
beforeAll(() => {
  temp = tempDir()
  secrets = join(temp.path, 'secrets')
  mkdirSync(secrets, { mode: 0o700 })
  writeFileSync(join(secrets, 'token'), VALUE, { mode: 0o600 })
})
afterAll(() => temp[Symbol.dispose]())

const FORMS_OF_TASKS = {
  shell: { type: 'shell', secrets: { TOKEN: 'token' }, check: inVariable },
  'cli-skills': { type: 'cli-skills', secrets: { TOKEN: 'token' }, check: inVariable },
  variable: { type: 'runtime.script', secrets: { TOKEN: 'token' }, check: inVariable },
  file: { type: 'runtime.script', secrets: { TOKEN: { name: 'token', file: 'd/token' } }, check: inFile },
} as const
type Form = keyof typeof FORMS_OF_TASKS
const ALL = Object.keys(FORMS_OF_TASKS) as Form[]

const paramsOf = (form: Form, script: string) =>
  form === 'cli-skills' ? { command: '/bin/sh', args: ['-c', script] } : { script }

/** A task that has the secret, and does `script` after that. */
function task(form: Form, id: string, script: string, more: object = {}) {
  const { type, secrets, check } = FORMS_OF_TASKS[form]
  return { id: `${form}-${id}`, type, params: paramsOf(form, `${check} && ${script}`), secrets, ...more }
}

/** Tasks of a form that end in every way. */
function endings(form: Form): object[] {
  const program =
    form === 'cli-skills' ? { command: '/no/such' } : { [form === 'shell' ? 'command' : 'program']: '/no/such' }
  const type = form === 'variable' || form === 'file' ? 'runtime.command' : FORMS_OF_TASKS[form].type
  return [
    task(form, 'succeeds', 'echo done'),
    task(form, 'fails', 'echo no >&2; exit 3', { retry: 1, backoff: { initial_ms: 10 } }),
    task(form, 'hangs', 'sleep 600', { timeout: 300 }),
    { ...task(form, 'spawns', ''), type, params: program },
    task(form, 'follows', 'exit 1', { depends_on: [`${form}-succeeds`] }),
    { ...task(form, 'lacks', ''), secrets: { TOKEN: 'token', OTHER: 'none' }, retry: 2 },
    {
      ...task(form, 'clashes', ''),
      params: { ...paramsOf(form, 'true'), env: { $from: `${form}-succeeds`, path: '/none', default: { TOKEN: 'x' } } },
      depends_on: [`${form}-succeeds`],
    },
  ]
}

const filesWithValue = (top: string): string[] => filesWith(top, hasValue).map((path) => relative(top, path))

/** Command lines with the value, and environments with it that others than their owner can read. */
function processesWithValue(): string[] {
  const found: string[] = []
  for (const pid of readdirSync('/proc').filter((name) => /^\d+$/.test(name))) {
    try {
      if (hasValue(readFileSync(`/proc/${pid}/cmdline`))) found.push(`cmdline of ${pid}`)
      const environ = `/proc/${pid}/environ`
      if ((lstatSync(environ).mode & 0o077) !== 0 && hasValue(readFileSync(environ))) found.push(environ)
    } catch {
      // It has ended.
    }
  }
  return found
}

/** What both services answer, by path. */
async function answersWithValue(pair: Pair): Promise<string[]> {
  const found: string[] = []
  let asked = 0
  const look = async (service: 'control' | 'runtime', path: string) => {
    const answer = await pair[service].fetch(path)
    asked++
    if (hasValue(await answer.text())) found.push(`${service} ${path}`)
  }
  const tasks = await pair.control.list()
  const graphs = (await (await pair.control.fetch('/graphs?limit=100')).json()) as GraphSummary[]
  for (const { id } of tasks) for (const part of ['', '/logs']) await look('control', `/tasks/${id}${part}`)
  for (const { graph_id, finished_at } of graphs) {
    await look('control', `/graphs/${graph_id}`)
    await look('control', `/graphs/${graph_id}/tasks`)
    if (finished_at !== undefined) await look('control', `/graphs/${graph_id}/events?after=0&until=ended`)
  }
  for (const path of ['/tasks', '/graphs', '/metrics', '/health', '/runtime', '/mcp/tools']) await look('control', path)
  for (const { task_id } of await pair.runtime.list()) {
    for (const part of ['', '/events', '/logs', '/files', '/files/d', '/files/d/token']) {
      await look('runtime', `/api/v1/tasks/${task_id}${part}`)
    }
  }
  for (const path of ['tasks', 'runtime/info', 'runtime/config', 'runtime/resources', 'runtime/capabilities']) {
    await look('runtime', `/api/v1/${path}`)
  }
  expect(asked).toBeGreaterThan(100)
  await using mcp = await connectClient(pair.control.url)
  for (const { id } of tasks) {
    for (const [name, more] of [
      ['get_task', {}],
      ['get_task', { detail: true }],
      ['get_logs', {}],
    ] as const) {
      if (hasValue((await mcp.call(name, { task_id: id, ...more })).text)) found.push(`mcp ${name} ${id}`)
    }
  }
  return found
}

/** All that the services of `pair` say and keep is searched. `live` are files of running tasks that may have the value. */
async function expectNowhere(pair: Pair, live: readonly string[] = []): Promise<void> {
  const isLive = (path: string) =>
    live.some((id) => path.includes(`/tasks/${id}-`) && path.endsWith('/workspace/d/token'))
  expect(filesWithValue(pair.file('')).filter((path) => !isLive(path))).toEqual([])
  expect(filesWithValue(pair.file('')).length).toBe(live.length)
  expect(processesWithValue()).toEqual([])
  expect(await answersWithValue(pair)).toEqual([])
  expect(hasValue(JSON.stringify([pair.control.log, pair.runtime.log]))).toBe(false)
}

const expectedOf = (id: string): object => {
  if (id.endsWith('-succeeds') || id.endsWith('-lives')) return { status: 'success' }
  if (id.endsWith('-hangs')) return { status: 'failed', runtime: { error: { code: 'timeout' } } }
  if (id.endsWith('-spawns')) return { status: 'failed', runtime: { error: { code: 'launch_failed' } } }
  if (id.endsWith('-lacks')) return { status: 'failed', attempt: 1, runtime: { error: { code: 'invalid_input' } } }
  if (id.endsWith('-clashes')) return { status: 'failed', runtime: { error: { code: 'invalid_input' } } }
  return { status: 'failed', runtime: { error: { code: 'exit_nonzero' } } }
}

test('a value stands in nothing that the services write or say', async () => {
  await using receiver = startReceiver()
  const flags = ['--secrets-dir', secrets, '--log-level', 'debug']
  await using pair = await startPair({
    controlFlags: [...flags, '--persist-interval', '50ms', '--callback-policy', 'any'],
    runtimeFlags: flags,
    controlEnv: { SERVICE_SHELL_POLICY: 'open' },
  })
  const go = pair.file('go')
  const callback = { url: receiver.url, events: ['graph_ended', 'task_failed'] }
  const post = async (path: string, body: object) => {
    const answer = await pair.control.fetch(path, { method: 'POST', body: JSON.stringify(body) })
    const text = await answer.text()
    expect(`${answer.status} ${text}`).toMatch(/^20[02] /)
    expect(hasValue(text)).toBe(false)
    return JSON.parse(text)
  }
  const tasks = ALL.flatMap(endings)
  await post('/tasks?dry_run=true', { tasks })
  const { graph_id } = await post('/tasks', { tasks, callback })
  await post('/tasks', {
    tasks: ALL.map((form) =>
      task(form, 'lives', `echo; while [ ! -e '${go}' ]; do sleep 0.02; done`, { timeout: 600_000 }),
    ),
  })
  await post('/adapters/actions', {
    action_id: 'action-succeeds',
    action: { kind: 'os.shell', input: { script: inVariable }, secrets: { TOKEN: 'token' } },
  })
  await using mcp = await connectClient(pair.control.url)
  const byMcp = await mcp.call('submit_graph', { tasks: [{ ...task('file', 'mcp-succeeds', 'true') }] })
  expect(byMcp.isError).toBe(false)

  const ids = [...(tasks as { id: string }[]).map(({ id }) => id), 'action-succeeds', 'file-mcp-succeeds']
  for (const id of ids) expect(await pair.control.ended(id)).toMatchObject(expectedOf(id))
  await pair.running('variable-lives')
  await pair.running('file-lives')
  await expectNowhere(pair, ['file-lives'])

  // Both services are killed while tasks have the value; some go on, some start again.
  await pair.stopControl('SIGKILL')
  await pair.stopRuntime('SIGKILL')
  expect(filesWithValue(pair.file('')).filter((path) => !path.includes('/file-lives-'))).toEqual([])
  await pair.startRuntime()
  await pair.startControl()
  await until(
    () => pair.control.list(),
    (records) => records.filter(({ id }) => id.endsWith('-lives')).every(({ status }) => status === 'running'),
  )
  await expectNowhere(pair, ['file-lives'])
  writeFileSync(go, '')
  for (const form of ALL) expect(await pair.control.ended(`${form}-lives`)).toMatchObject({ status: 'success' })

  const rerun = (await post(`/graphs/${graph_id}/rerun`, {})) as { graph_id: string }
  await until(
    async () => (await (await pair.control.fetch(`/graphs/${rerun.graph_id}`)).json()) as { state: string },
    ({ state }) => state !== 'running' && state !== 'pending',
  )
  await until(
    () => pair.control.list(),
    (records) => records.every(({ status }) => isTerminal(status)),
  )
  await receiver.has(1)
  await expectNowhere(pair)
  await pair.stopControl('SIGTERM')
  await pair.stopRuntime('SIGTERM')
  expect(filesWithValue(pair.file(''))).toEqual([])
  await receiver.has(ALL.length * 6 + 1)
  expect(receiver.received.some(({ body }) => hasValue(body))).toBe(false)
})
