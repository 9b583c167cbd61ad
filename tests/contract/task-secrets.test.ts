/**
 * Goal: a task of a graph names secrets, gets their values when an attempt starts, and control knows only the names.
 * Method: real services; tasks compare the value with its hash and print nothing of it. `task-secrets-nowhere.test.ts` looks
 * for the value.
 */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { chmodSync, mkdirSync, readFileSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { builtProgram } from '../../scripts/build.ts'
import { type Control, startControl } from '../support/control.ts'
import { freePort } from '../support/free-port.ts'
import { connectClient } from '../support/mcp-client.ts'
import { type Pair, startPair } from '../support/pair.ts'
import { testEnvironment } from '../support/service.ts'
import { endProcessesOf } from '../support/task-processes.ts'
import { type TempDir, tempDir } from '../support/temp.ts'
import { until } from '../support/until.ts'

const VALUE = `s3cr3t-${crypto.randomUUID()}`
const hashOf = (value: string) => new Bun.CryptoHasher('sha256').update(value).digest('hex')
const isValue = (value = VALUE, name = 'TOKEN') => `test "$(printf %s "$${name}" | sha256sum)" = '${hashOf(value)}  -'`
const SECRETS = { TOKEN: 'token' }
const OPEN = { SERVICE_SHELL_POLICY: 'open' }

let temp: TempDir
let dir: string
let pair: Pair
const put = (name: string, value: string | Buffer, mode = 0o600) => {
  writeFileSync(join(dir, `${name}.new`), value)
  chmodSync(join(dir, `${name}.new`), mode)
  renameSync(join(dir, `${name}.new`), join(dir, name))
}

beforeAll(async () => {
  temp = tempDir()
  dir = join(temp.path, 'secrets')
  mkdirSync(dir, { mode: 0o700 })
  put('token', `${VALUE}\n`)
  put('nul', 'a\0b')
  put('open', VALUE, 0o604)
  put('large', 'x'.repeat(1_048_576))
  const flags = ['--secrets-dir', dir]
  pair = await startPair({ controlFlags: flags, runtimeFlags: flags, controlEnv: OPEN })
})
afterAll(async () => {
  await pair[Symbol.asyncDispose]()
  temp[Symbol.dispose]()
})

/** Standard error and exit code of a start of control that is refused. */
async function runControl(args: readonly string[]) {
  const child = Bun.spawn([await builtProgram('taskmill-control'), ...args], {
    ...{ env: testEnvironment(), stdin: 'ignore', stdout: 'ignore', stderr: 'pipe' },
  })
  return { stderr: await new Response(child.stderr).text(), exitCode: await child.exited }
}

const shell = (script: string, more: object = {}) => ({ type: 'shell', params: { script }, secrets: SECRETS, ...more })

describe('a task gets its secrets', () => {
  const cases: readonly (readonly [string, object])[] = [
    ['shell', shell(isValue())],
    [
      'os.shell beside env',
      {
        ...shell(`${isValue()} && test "$A" = b`),
        params: { script: `${isValue()} && test "$A" = b`, env: { A: 'b' } },
      },
    ],
    ['cli-skills', { type: 'cli-skills', params: { command: '/bin/sh', args: ['-c', isValue()] }, secrets: SECRETS }],
    ['runtime.script', { type: 'runtime.script', params: { script: isValue() }, secrets: SECRETS }],
    [
      'runtime, beside those of its parameters',
      {
        type: 'runtime',
        input: {
          execution: { kind: 'script', script: `${isValue()} && ${isValue(VALUE, 'OTHER')}` },
          secrets: { OTHER: 'token' },
        },
        secrets: SECRETS,
      },
    ],
    [
      'runtime.script, in a file',
      {
        type: 'runtime.script',
        params: {
          script: `test "$(cat "$TOKEN" conf/token | sort -u | tr -d '\\n' | sha256sum)" = '${hashOf(VALUE)}  -'`,
        },
        secrets: { TOKEN: { name: 'token', file: 'conf/token' } },
      },
    ],
  ]
  test.each(cases)('%s', async (_, task) => {
    const record = await pair.control.run(task)
    expect(record).toMatchObject({ status: 'success', secrets: (task as { secrets: object }).secrets })
    expect(JSON.stringify(record)).not.toContain(VALUE)
    expect(record.resolved_input).toBeUndefined()
  })

  test('with an input of placeholders, which has no secrets', async () => {
    await pair.control.submit([
      { id: 'first', type: 'noop', params: { message: 'hi' } },
      {
        ...shell(''),
        id: 'second',
        depends_on: ['first'],
        params: { script: `${isValue()} && test "$1" = hi`, args: [{ $from: 'first', path: '/result/message' }] },
      },
    ])
    const record = await pair.control.ended('second')
    expect(record).toMatchObject({ status: 'success', secrets: SECRETS })
    expect(Object.keys(record.resolved_input as object)).toEqual(['script', 'args'])
  })

  test('as they are when an attempt starts', async () => {
    put('changing', 'old')
    const task = { secrets: { TOKEN: 'changing' }, retry: 1_000, backoff: { initial_ms: 20, factor: 1 } }
    const { task_ids } = await pair.control.submit([
      { ...shell(isValue()), id: 'changing-here', ...task },
      { id: 'changing-there', type: 'runtime.script', params: { script: isValue() }, ...task },
    ])
    for (const id of task_ids) {
      await until(
        () => pair.control.get(id),
        ({ attempt = 0 }) => attempt > 1,
      )
    }
    put('changing', VALUE)
    for (const id of task_ids) expect((await pair.control.ended(id)).status).toBe('success')
  })

  test('in each child of a fan-out', async () => {
    const kinds = [{ type: 'shell' }, { type: 'runtime.script' }]
    const params = { script: isValue(), env: { N: { $item: '' } } }
    const tasks = kinds.map(({ type }) => ({ id: `fan-${type}`, type, for_each: ['a', 'b'], params, secrets: SECRETS }))
    await pair.control.submit(tasks)
    for (const { id } of tasks) expect(await pair.control.ended(id)).toMatchObject({ status: 'success' })
  })

  test('by an action, and by MCP', async () => {
    const action = { kind: 'os.shell', input: { script: isValue() }, secrets: SECRETS }
    const answer = await pair.control.fetch('/adapters/actions', {
      method: 'POST',
      body: JSON.stringify({ action_id: 'by-action', action }),
    })
    expect([answer.status, await answer.json()]).toMatchObject([202, { task_graph: { tasks: [{ secrets: SECRETS }] } }])
    expect((await pair.control.ended('by-action')).status).toBe('success')
    await using mcp = await connectClient(pair.control.url)
    const ran = await mcp.call('run_action', {
      kind: 'cli.run',
      input: { command: '/bin/sh', args: ['-c', isValue()] },
      secrets: SECRETS,
    })
    expect(ran.data).toMatchObject({ all_terminal: true, counts: { success: 1 } })
    const tasks = [{ ...shell(isValue()), id: 'by-mcp' }]
    const submitted = await mcp.call('submit_graph', { tasks, wait_ms: 20_000 })
    expect(submitted.data).toMatchObject({ all_terminal: true, counts: { success: 1 } })
    const shown = await mcp.call('get_task', { task_id: 'by-mcp', detail: true })
    expect(shown.text).not.toContain(VALUE)
  })

  test('again in a rerun, and after a kill of the service', async () => {
    using place = tempDir()
    await using _ = endProcessesOf(place.path)
    put('later', 'not yet')
    const options = {
      dataDir: join(place.path, 'data'),
      env: OPEN,
      flags: ['--secrets-dir', dir, '--max-concurrency', '1'],
    }
    const secrets = { TOKEN: 'later' }
    let graphId = ''
    {
      await using first = await startControl(options)
      const { graph_id } = await first.submit([
        { id: 'holder', type: 'sleep', params: { duration_ms: 600_000 } },
        { ...shell(isValue()), id: 'waits', secrets },
      ])
      graphId = graph_id
      expect(await first.get('waits')).toMatchObject({ status: 'pending', secrets })
      await first.stop('SIGKILL')
    }
    await using second = await startControl(options)
    await second.fetch('/tasks/holder/cancel', { method: 'POST' })
    expect(await second.ended('waits')).toMatchObject({ status: 'failed', secrets })
    put('later', VALUE)
    const rerun = await second.fetch(`/graphs/${graphId}/rerun`, { method: 'POST', body: '{}' })
    expect(rerun.status).toBe(202)
    await second.fetch('/tasks/holder/cancel', { method: 'POST' })
    expect(await second.ended('waits')).toMatchObject({ status: 'success', secrets })
  })
})

const OF_NAMES =
  'expected object of at most 64 secrets, each a name (a string, no placeholder) or an object with name, and file or mask'

describe('a graph is refused', () => {
  const TAKES_NONE = 'takes no secrets (tasks of type shell, cli-skills, runtime do)'
  const script = (more: object) => ({ type: 'runtime.script', params: { script: 'true', ...more } })
  /** Texts that begin with a blank follow "task a:". */
  const refusals: readonly (readonly [string, object, string])[] = [
    ['other types', { type: 'http', params: { url: 'http://127.0.0.1:1/' } }, ` os.http ${TAKES_NONE}`],
    ['noop', { type: 'noop' }, ` os.noop ${TAKES_NONE}`],
    ['mcp', { type: 'mcp', tool_name: 'builtin/echo' }, ` mcp ${TAKES_NONE}`],
    [
      ...(['a file without a workspace', { secrets: { TOKEN: { name: 'token', file: 'x' } } }] as const),
      ' secrets.TOKEN.file: only a runtime task has a workspace for files (leave file out to have a variable)',
    ],
    [
      ...(['a variable of env', { params: { script: 'true', env: { TOKEN: 'x' } } }] as const),
      ' secrets.TOKEN is a variable of env of its parameters, too',
    ],
    [
      'a variable of execution.env',
      { type: 'runtime', params: { execution: { kind: 'script', script: 'true', env: { TOKEN: 'x' } } } },
      ' secrets.TOKEN is a variable of execution.env of its parameters, too',
    ],
    [
      ...(['a variable of secrets of the parameters', script({ secrets: { TOKEN: 'token' } })] as const),
      ' secrets.TOKEN is a variable of secrets of its parameters, too',
    ],
    [
      ...(['a name of no file', { secrets: { TOKEN: '../token' } }] as const),
      ' secrets.TOKEN: the name of a secret has 1 to 128 letters, digits, "-", "_" and ".", got "../token"',
    ],
    [
      ...(['no name of a variable', { secrets: { 'A=B': 'token' } }] as const),
      ' secrets keys must be non-empty and cannot contain "="',
    ],
    [
      ...(['a variable with NUL', { secrets: { 'A\0': 'token' } }] as const),
      ' the name of secrets."A\\u0000" cannot contain NUL characters',
    ],
    [
      ...(['a path that leads out', { ...script({}), secrets: { T: { name: 'token', file: '../x' } } }] as const),
      ' secrets.T.file cannot contain parent traversal',
    ],
    ...(
      [
        ['a parameter', { TOKEN: { $param: 'x' } }],
        ['a reference', { TOKEN: { $from: 'x' } }],
        ['a number', { TOKEN: 1 }],
        ['a list', ['token']],
        ['256 secrets', Object.fromEntries(Array.from({ length: 256 }, (_, i) => [`V${i}`, 'token']))],
      ] as const
    ).map(([name, secrets]) => [name, { secrets }, `invalid JSON: tasks[0].secrets: ${OF_NAMES}`] as const),
    [
      ...(['a placeholder in secrets of the parameters', script({ secrets: { B: { $param: 'p' } } })] as const),
      ' params.secrets.B: a placeholder cannot name secrets',
    ],
    [
      ...(['a placeholder as secrets of the parameters', script({ secrets: { $param: 'p' } })] as const),
      ' params.secrets: a placeholder cannot name secrets',
    ],
  ]
  test.each(refusals)('for %s', async (_, more, end) => {
    const message = end.replace(/^ /, 'task a: ')
    const graph = { params: { p: 'token' }, tasks: [{ ...shell('true'), id: 'a', ...more }] }
    const answer = await pair.control.post(graph)
    expect([answer.status, ((await answer.json()) as { error: string }).error]).toEqual([400, message])
    const dryRun = await pair.control.fetch('/tasks?dry_run=true', { method: 'POST', body: JSON.stringify(graph) })
    const { valid, errors } = (await dryRun.json()) as { valid: boolean; errors: { message: string }[] }
    expect([valid, errors[0]?.message]).toEqual([false, message])
    if (message.startsWith('invalid JSON')) return
    const { params: _params, ...task } = graph.tasks[0] as { params?: object }
    const inAction = {
      kind: 'task_graph.submit',
      input: { task_graph: { ...graph, tasks: [{ ...task, params: _params }] } },
    }
    const action = await pair.control.fetch('/adapters/translate', {
      method: 'POST',
      body: JSON.stringify({ action: inAction }),
    })
    expect(await action.json()).toEqual({ error: `invalid adapter action: ${message}` })
  })

  test('a graph as an action has no secrets of its own', async () => {
    const action = { kind: 'task_graph.submit', input: { tasks: [] }, secrets: SECRETS }
    const answer = await pair.control.fetch('/adapters/actions', { method: 'POST', body: JSON.stringify({ action }) })
    expect([answer.status, await answer.json()]).toEqual([
      400,
      { error: 'invalid adapter action: action.secrets cannot be given for task_graph.submit: give it to its tasks' },
    ])
  })
})

describe('a secret that cannot be had fails the task without another attempt', () => {
  const cases: readonly (readonly [string, string])[] = [
    ['none', 'secrets.TOKEN: there is no secret none (no such file in --secrets-dir)'],
    ['__proto__', 'secrets.TOKEN: there is no secret __proto__ (no such file in --secrets-dir)'],
    ['open', 'secrets.TOKEN: the secret open is open to other users (chmod 600 its file)'],
    ['nul', 'secrets.TOKEN: the secret nul has a NUL character, which no variable can hold'],
    ['large', 'secrets.TOKEN: has 1048582 bytes with its name and a program takes at most 131071 in one string'],
  ]
  const kinds = [
    ['shell', { type: 'shell', params: { script: 'true' } }],
    ['cli-skills', { type: 'cli-skills', params: { command: '/bin/true' } }],
    ['runtime', { type: 'runtime.script', params: { script: 'true' } }],
  ] as const
  test.each(kinds.flatMap(([kind, task]) => cases.map(([name, text]) => [kind, name, task, text] as const)))(
    '%s: %s',
    async (_, name, task, text) => {
      const record = await pair.control.run({ ...task, secrets: { TOKEN: name }, retry: 3, backoff: { initial_ms: 0 } })
      expect(record).toMatchObject({
        ...{ status: 'failed', attempt: 1, secrets: { TOKEN: name } },
        runtime: { error: { code: 'invalid_input', message: text, retryable: false } },
      })
      expect(record.attempts).toBeUndefined()
    },
  )

  test('also if it goes after the runtime service has accepted the task', async () => {
    put('leaving', VALUE)
    await using busy = await startPair({ runtimeFlags: ['--secrets-dir', dir, '--max-running-tasks', '1'] })
    await busy.script('holder', 'echo; sleep 600')
    await busy.running('holder')
    await busy.script('waits', 'true', { secrets: { TOKEN: 'leaving' }, retry: 3 })
    await busy.there('waits', ({ status }) => status === 'accepted')
    rmSync(join(dir, 'leaving'))
    await busy.control.fetch('/tasks/holder/cancel', { method: 'POST' })
    expect(await busy.control.ended('waits')).toMatchObject({
      ...{ status: 'failed', attempt: 1 },
      error: 'secrets.TOKEN: there is no secret leaving (no such file in --secrets-dir)',
    })
  })

  test('a variable that gets around the allowlist is denied', async () => {
    await using guarded = await startControl({ flags: ['--secrets-dir', dir] })
    const record = await guarded.run({ type: 'shell', params: { command: 'echo' }, secrets: { LD_PRELOAD: 'token' } })
    expect(record).toMatchObject({
      runtime: { error: { code: 'denied' } },
      error: 'secrets.LD_PRELOAD cannot be set unless SERVICE_SHELL_POLICY=open lifts the allowlist',
    })
  })

  test('an output does not choose it', async () => {
    const chosen = { execution: { kind: 'script', script: isValue() }, secrets: { TOKEN: 'token' } }
    await pair.control.submit([
      { id: 'chooses', type: 'noop', params: { message: JSON.stringify(chosen) } },
      {
        id: 'chosen',
        type: 'runtime',
        depends_on: ['chooses'],
        params: { $from: 'chooses', path: '/result/message', as: 'json' },
      },
    ])
    expect(await pair.control.ended('chosen')).toMatchObject({
      status: 'failed',
      error: 'params: a referenced value cannot name secrets',
    })
  })
})

describe('a missing secret is told of before', () => {
  const tasks = [
    { ...shell('true'), id: 'here', secrets: { A: 'none', B: 'token', C: 'gone' } },
    { id: 'there', type: 'runtime.script', params: { script: 'true' }, secrets: { A: 'none' } },
  ]
  const missing = (name: string) => `there is no secret ${name} (no such file in --secrets-dir)`

  test('by a submission, as a warning', async () => {
    const { warnings } = await pair.control.submit(
      tasks.slice(0, 1).map((task) => ({ ...task, id: crypto.randomUUID() })),
    )
    expect(warnings?.map(({ message }) => message)).toEqual([
      `secrets.A: ${missing('none')}`,
      `secrets.C: ${missing('gone')}`,
    ])
  })

  test('by a dry run, as an error; by the runtime service in its plan', async () => {
    const answer = await pair.control.fetch('/tasks?dry_run=true', { method: 'POST', body: JSON.stringify({ tasks }) })
    expect(await answer.json()).toMatchObject({
      valid: false,
      errors: [
        { task_id: 'here', message: `task here: secrets.A: ${missing('none')}`, fails: true },
        { task_id: 'here', message: `task here: secrets.C: ${missing('gone')}`, fails: true },
      ],
      warnings: [],
      runtime: { there: { error: `secrets.A: ${missing('none')}` } },
    })
  })

  test('by a service without secrets', async () => {
    await using without: Control = await startControl()
    const { warnings } = await without.submit([
      { id: 'a', type: 'shell', params: { command: 'echo' }, secrets: SECRETS },
    ])
    const message = 'secrets.TOKEN: this service has no secrets (start it with --secrets-dir)'
    expect(warnings).toEqual([{ task_id: 'a', message }])
    expect((await without.ended('a')).error).toBe(message)
  })

  test('in a graph of many tasks', async () => {
    const many = Array.from({ length: 2_000 }, (_, i) => ({
      ...shell('true'),
      id: `many-${i}`,
      secrets: { A: `none-${i}` },
    }))
    const answer = await pair.control.fetch('/tasks?dry_run=true', {
      method: 'POST',
      body: JSON.stringify({ tasks: many }),
    })
    const { errors, truncated } = (await answer.json()) as { errors: object[]; truncated?: boolean }
    expect([errors.length, truncated]).toEqual([1_000, true])
  })
})

describe('a service', () => {
  test('does not start with secrets that others can read, or with a file of its own among them', async () => {
    using place = tempDir()
    const open = join(place.path, 'open')
    mkdirSync(open)
    chmodSync(open, 0o755)
    const start = (...flags: string[]) =>
      runControl(['--data-dir', join(place.path, 'data'), '--addr', '127.0.0.1:0', ...flags])
    expect(await start('--secrets-dir', open)).toMatchObject({
      exitCode: 2,
      stderr: `taskmill-control: --secrets-dir ${open} is open to other users (chmod 700 it)\n`,
    })
    chmodSync(open, 0o700)
    const own = join(open, 'own')
    writeFileSync(own, 'sesame-42', { mode: 0o600 })
    for (const flag of ['--token-file', '--callback-secret-file']) {
      expect(await start('--secrets-dir', open, flag, own)).toMatchObject({
        exitCode: 2,
        stderr: `taskmill-control: ${flag} ${own} lies in --secrets-dir, where every task could ask for it\n`,
      })
    }
  })

  test('without --secrets-dir has systemd credentials, except files of its own, and so has its runtime service', async () => {
    using place = tempDir()
    await using _ = endProcessesOf(place.path)
    const credentials = join(place.path, 'credentials')
    mkdirSync(credentials, { mode: 0o700 })
    writeFileSync(join(credentials, 'token'), VALUE, { mode: 0o400 })
    writeFileSync(join(credentials, 'o,wn'), 'sesame-42', { mode: 0o400 })
    symlinkSync('o,wn', join(credentials, 'linked'))
    await builtProgram('taskmill-runtime')
    await using service = await startControl({
      dataDir: join(place.path, 'data'),
      env: { ...OPEN, CREDENTIALS_DIRECTORY: credentials },
      flags: [
        '--callback-secret-file',
        join(credentials, 'o,wn'),
        '--with-runtime',
        '--runtime-url',
        `http://127.0.0.1:${await freePort()}`,
      ],
    })
    const kinds = [{ type: 'shell' }, { type: 'runtime.script' }]
    for (const kind of kinds) {
      expect(await service.run({ ...shell(isValue()), ...kind })).toMatchObject({ status: 'success' })
      expect(await service.run({ ...shell('true'), ...kind, secrets: { TOKEN: 'linked' } })).toMatchObject({
        error: 'secrets.TOKEN: the secret linked is a file of the service itself, which no task gets',
      })
    }
    await service.stop('SIGTERM')
  })

  test('passes --secrets-dir on to its runtime service, unless that has another', async () => {
    using place = tempDir()
    await using _ = endProcessesOf(place.path)
    await builtProgram('taskmill-runtime')
    const other = join(place.path, 'other')
    mkdirSync(other, { mode: 0o700 })
    writeFileSync(join(other, 'elsewhere'), VALUE, { mode: 0o600 })
    const task = (name: string) => ({ ...shell(isValue()), type: 'runtime.script', secrets: { TOKEN: name } })
    for (const [name, env] of [
      ['token', {}],
      ['elsewhere', { SERVICE_RUNTIME_SECRETS_DIR: other }],
    ] as const) {
      await using service = await startControl({
        dataDir: join(place.path, name),
        env,
        flags: ['--secrets-dir', dir, '--with-runtime', '--runtime-url', `http://127.0.0.1:${await freePort()}`],
      })
      expect(await service.run(task(name))).toMatchObject({ status: 'success' })
      const { runtime_pid } = service.log.find(({ msg }) => msg === 'started a runtime service')!
      const flags = readFileSync(`/proc/${runtime_pid}/cmdline`, 'utf8').split('\0')
      expect(flags.indexOf(dir) > 0 && flags[flags.indexOf(dir) - 1]).toBe(
        name === 'token' ? '--secrets-dir' : '--sandbox-mask',
      )
      await service.stop('SIGTERM')
    }
  })
})
