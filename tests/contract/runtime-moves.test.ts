/**
 * Goal: a graph on several runtime services gets its files where its tasks run: once, whole, and the same after whatever
 * dies. Method: real services; tasks that make files and tasks elsewhere that look at them; a link that stops in the middle.
 */
import { describe, expect, setDefaultTimeout, test } from 'bun:test'
import { existsSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { TaskRecord } from '../../shared/contract/control.ts'
import { type Control, startControl } from '../support/control.ts'
import { type StartedPool, startPool } from '../support/runtime-pool.ts'
import { slowLink } from '../support/slow-link.ts'
import { until } from '../support/until.ts'

setDefaultTimeout(120_000)

const MIB = 1024 ** 2

const make = (runtime: string, script = `echo ${runtime} > file`, more: object = {}) => ({
  id: `made-on-${runtime}`,
  type: 'runtime.script',
  params: { script, placement: { runtime }, ...more },
})
const use = (id: string, sources: readonly string[], more: object = {}, file = 'file') => ({
  id,
  type: 'runtime.script',
  depends_on: sources.map((runtime) => `made-on-${runtime}`),
  params: {
    script: 'cat in-*',
    inputs: Object.fromEntries(sources.map((at) => [`in-${at}`, { $from: `made-on-${at}`, file }])),
    ...more,
  },
})
const onB = { placement: { runtime: 'b' } }

/** Names in the staging area of a runtime service. */
function staged(pool: StartedPool, name: string): string[] {
  const path = join(pool.file(`runtime-${name}`), 'staged')
  return existsSync(path) ? readdirSync(path) : []
}

/** Approves the task once it waits for that. */
const approve = (control: Control, id: string) =>
  until(
    async () => (await control.fetch(`/tasks/${id}/approve`, { method: 'POST', body: '{"who":"test"}' })).status,
    200,
  )

const stdoutOf = ({ result }: TaskRecord) => (result as { stdout?: string } | undefined)?.stdout

describe('files are brought', () => {
  test('to the runtime service of the task: a file, a directory as it is, and those of two joined in a third', async () => {
    await using pool = await startPool({ a: {}, b: {}, c: {} })
    const tree =
      'mkdir -p d/deep d/empty; echo 1 > d/one; echo 2 > d/deep/two; chmod 751 d/one; ln -s / d/link; echo a > file'
    const look = { script: 'find in-a | sort; stat -c %a in-a/one; cat in-a/deep/two', ...onB }
    await pool.control.submit([
      make('a', tree),
      make('b'),
      use('file', ['a'], onB),
      use('tree', ['a'], look, 'd'),
      use('joined', ['a', 'b'], { placement: { runtime: 'c' } }),
    ])
    await pool.control.allEnded()
    const file = await pool.control.get('file')
    expect(file).toMatchObject({ status: 'success', placed_on: 'b', attempt: 1 })
    expect(stdoutOf(file)).toBe('a\n')
    const { inputs } = file.result as { inputs: Record<string, { staged: string; sha256: string; bytes: number }> }
    const sha256 = new Bun.CryptoHasher('sha256').update('a\n').digest('hex')
    expect(inputs['in-a']).toMatchObject({ staged: expect.stringMatching(/^[0-9a-f]{64}$/), sha256, bytes: 2 })
    expect(file.resolved_input).toMatchObject({ inputs: { 'in-a': { runtime: 'a', file: 'file' } } })
    const found = 'in-a\nin-a/deep\nin-a/deep/two\nin-a/empty\nin-a/one\n751\n2\n'
    expect([(await pool.control.get('tree')).placed_on, stdoutOf(await pool.control.get('tree'))]).toEqual(['b', found])
    const joined = await pool.control.get('joined')
    expect([joined.status, joined.placed_on, stdoutOf(joined)]).toEqual(['success', 'c', 'a\nb\n'])
    expect([staged(pool, 'a').length, staged(pool, 'b').length, staged(pool, 'c').length]).toEqual([0, 2, 2])
  })

  test('only where they are not: a task goes where most bytes are, and what is there is not sent again', async () => {
    await using pool = await startPool({ a: {}, b: {} })
    await using link = slowLink(() => pool.urlOf('b'))
    await using control = await startControl({
      flags: ['--runtime-url', `a=${pool.urlOf('a')}`, '--runtime-url', `b=${link.url}`],
    })
    const large = make('b', `head -c ${3 * MIB} /dev/zero > file`)
    const count = { script: 'cat in-* | wc -c' }
    const first = ['x', 'y', 'z'].map((id) => use(id, ['a', 'b'], count))
    const gate = { id: 'gate', type: 'approval', depends_on: ['x', 'y', 'z'] }
    const last = use('last', ['a', 'b'], count)
    await control.submit([make('a'), large, ...first, gate, { ...last, depends_on: [...last.depends_on, 'gate'] }])
    const expectOnB = async (id: string) => {
      const task = await control.ended(id)
      expect([task.status, task.placed_on, stdoutOf(task)]).toEqual(['success', 'b', `${3 * MIB + 2}\n`])
    }
    const puts = () => link.exchanges.filter(({ request }) => request.startsWith('PUT '))
    for (const id of ['x', 'y', 'z']) await expectOnB(id)
    const sent = puts().length
    expect(sent).toBeWithin(1, 4) // an attempt may ask just before the file is there, and begin to send after that
    await approve(control, 'gate')
    await expectOnB('last')
    expect(puts()).toHaveLength(sent)
    for (const { bytes } of puts()) expect(bytes).toBeLessThan(1_000)
  })

  test('of the children of a task, wherever these ran', async () => {
    await using pool = await startPool({ a: {}, b: {} })
    const params = { script: 'echo $AT > file', env: { AT: { $item: '' } }, placement: { runtime: { $item: '' } } }
    const report = { script: 'cat parts/*/file', inputs: { parts: { $from: 'made', file: 'file' } } }
    await pool.control.submit([
      { id: 'made', type: 'runtime.script', for_each: ['b', 'a', 'b', 'a'], params },
      { id: 'report', type: 'runtime.script', depends_on: ['made'], params: { ...report, ...onB } },
    ])
    const task = await pool.control.ended('report')
    expect([task.status, task.placed_on, stdoutOf(task)]).toEqual(['success', 'b', 'b\na\nb\na\n'])
    expect(staged(pool, 'b')).toHaveLength(1)
  })

  test('from a runtime service that drains, and in a rerun', async () => {
    await using pool = await startPool({ a: {}, b: {} })
    const { graph_id } = await pool.control.submit([make('a'), use('first', ['a'], { script: 'cat in-a; exit 1' })])
    expect(await pool.control.ended('first')).toMatchObject({ status: 'failed', placed_on: 'a' })
    expect((await pool.control.fetch('/runtimes/a/drain', { method: 'POST' })).status).toBe(200)
    const rerun = await pool.control.fetch(`/graphs/${graph_id}/rerun`, { method: 'POST' })
    expect(rerun.status).toBe(202)
    const again = await pool.control.ended('first')
    expect([again.status, again.placed_on, stdoutOf(again)]).toEqual(['failed', 'b', 'a\n'])
  })
})

test('a bundle that goes before the task comes is sent again', async () => {
  await using pool = await startPool({ a: {}, b: {} })
  let isToGo = true
  const proxy = Bun.serve({
    ...{ port: 0, hostname: '127.0.0.1' },
    async fetch(request) {
      const { pathname, search } = new URL(request.url)
      if (isToGo && request.method === 'POST' && staged(pool, 'b').length > 0) {
        isToGo = false
        for (const name of staged(pool, 'b')) rmSync(join(pool.file('runtime-b'), 'staged', name))
      }
      const hasBody = request.method === 'POST' || request.method === 'PUT'
      const body = hasBody ? await request.bytes() : undefined
      return fetch(pool.urlOf('b') + pathname + search, { method: request.method, ...(body && { body }) })
    },
  })
  await using _ = { [Symbol.asyncDispose]: () => proxy.stop(true) }
  await using control = await startControl({
    flags: ['--runtime-url', `a=${pool.urlOf('a')}`, '--runtime-url', `b=http://127.0.0.1:${proxy.port}`],
  })
  await control.submit([make('a'), use('t', ['a'], onB)])
  const task = await control.ended('t')
  expect([task.status, task.attempt, stdoutOf(task), isToGo]).toEqual(['success', 1, 'a\n', false])
})

describe('a task fails', () => {
  test('with the error of a source that has no such files, or has too much', async () => {
    await using pool = await startPool({ a: { flags: ['--max-input-bytes', '1000'] }, b: {} })
    await pool.control.submit([
      make('a', 'echo a > file; head -c 5000 /dev/zero > large; ln -s file link'),
      use('none', ['a'], onB, 'none'),
      use('link', ['a'], onB, 'link'),
      use('large', ['a'], onB, 'large'),
    ])
    await pool.control.allEnded()
    const [{ handle_id }] = [await pool.control.get('made-on-a')]
    const faults = {
      none: `none of task ${handle_id} is not there (a task with outputs keeps only what they match)`,
      link: `link of task ${handle_id} is a symlink, which is not followed`,
      large: `large of task ${handle_id} has too much: all inputs of a task may have 1000 bytes (--max-input-bytes)`,
    }
    for (const [id, fault] of Object.entries(faults)) {
      const task = await pool.control.get(id)
      expect(task).toMatchObject({ status: 'failed', error: `inputs.in-a: ${fault}` })
      expect(task.runtime?.error).toMatchObject({ code: 'invalid_input' })
    }
    expect(staged(pool, 'b')).toEqual([])
  })

  test('if the task that had the files is gone, or is of another tenant', async () => {
    await using pool = await startPool({ a: {}, b: {} })
    await pool.control.submit([
      make('a', 'echo a > file', { control_context: { tenant: 'other' } }),
      { id: 'gate', type: 'approval', depends_on: ['made-on-a'] },
      use('tenant', ['a'], onB),
      { ...use('gone', ['a'], { ...onB, control_context: { tenant: 'other' } }), depends_on: ['made-on-a', 'gate'] },
    ])
    const { handle_id } = await pool.control.ended('made-on-a')
    expect((await pool.control.ended('tenant')).error).toBe(`inputs.in-a: task ${handle_id} belongs to another tenant`)
    expect((await pool.runtime('a').fetch(`/api/v1/tasks/${handle_id}`, { method: 'DELETE' })).status).toBe(204)
    await approve(pool.control, 'gate')
    const gone = await pool.control.ended('gone')
    expect(gone.error).toBe(
      `inputs.in-a: there is no task ${handle_id}, or it was removed with its files: run it again`,
    )
    expect(gone.runtime?.error).toMatchObject({ code: 'invalid_input' })
  })

  test('if the target has no room', async () => {
    await using pool = await startPool({ a: {}, b: { flags: ['--max-staged-bytes', '1000'] } })
    await pool.control.submit([make('a', 'head -c 5000 /dev/zero > file'), use('t', ['a'], onB)])
    const task = await pool.control.ended('t')
    expect(task.error).toBe(
      'runtime b: there is no room for the bundle: all staged files may have 1000 bytes (--max-staged-bytes)',
    )
    expect(task.runtime?.error).toMatchObject({ code: 'resource_limit_exceeded', retryable: true })
    expect(staged(pool, 'b')).toEqual([])
  })

  test('if a runtime service is too old to hand files over, with the remedy', async () => {
    await using pool = await startPool({ a: {}, b: {} })
    const old = (name: string) =>
      Bun.serve({
        ...{ port: 0, hostname: '127.0.0.1' },
        async fetch(request) {
          const { pathname, search } = new URL(request.url)
          if (/\/bundle$|\/runtime\/files/.test(pathname)) {
            const message = `not found: ${request.method} ${pathname}`
            return Response.json({ error: { code: 'not_found', message, details: null } }, { status: 404 })
          }
          const body = request.method === 'POST' ? await request.text() : undefined
          return fetch(pool.urlOf(name) + pathname + search, { method: request.method, ...(body && { body }) })
        },
      })
    for (const [which, text] of [
      ['a', 'runtime a cannot hand files to another one'],
      ['b', 'runtime b cannot take files of another one'],
    ] as const) {
      const proxy = old(which)
      await using _ = { [Symbol.asyncDispose]: () => proxy.stop(true) }
      const urlOf = (name: string) => (name === which ? `http://127.0.0.1:${proxy.port}` : pool.urlOf(name))
      await using control = await startControl({
        flags: ['a', 'b'].flatMap((name) => ['--runtime-url', `${name}=${urlOf(name)}`]),
      })
      await control.submit([make('a'), use('t', ['a'], onB)])
      expect((await control.ended('t')).error).toBe(
        `${text}: its version is too old (upgrade taskmill-runtime there, or place the tasks on one runtime)`,
      )
    }
  })
})

describe('a source that is away', () => {
  test('is waited for by its name, before the task has a place and after', async () => {
    await using pool = await startPool({ a: {}, b: {}, c: {} })
    const gate = { id: 'gate', type: 'approval', depends_on: ['made-on-a', 'made-on-b'] }
    const later = (task: ReturnType<typeof use>) => ({ ...task, depends_on: [...task.depends_on, 'gate'] })
    await pool.control.submit([
      make('a'),
      make('b'),
      gate,
      later(use('joined', ['a', 'b'])),
      later(use('placed', ['a'], { placement: { runtime: 'c' } })),
    ])
    await pool.control.ended('made-on-a')
    await pool.control.ended('made-on-b')
    await pool.killRuntime('a')
    await approve(pool.control, 'gate')
    for (const id of ['joined', 'placed']) {
      const detail = await pool.waits(id, (text) => text.includes('refused'))
      expect(detail).toMatch(/^runtime a is away since \S+Z \(connection refused\): inputs.in-a is there$/)
    }
    await pool.startRuntime('a')
    expect(await pool.control.ended('placed')).toMatchObject({ status: 'success', placed_on: 'c', attempt: 1 })
    expect(await pool.control.ended('joined')).toMatchObject({ status: 'success', attempt: 1 })
  })

  test('for longer than --runtime-away-timeout fails the task', async () => {
    await using pool = await startPool({ a: {}, b: {} }, ['--runtime-away-timeout', '300ms'])
    await pool.control.submit([
      make('a'),
      { id: 'gate', type: 'approval', depends_on: ['made-on-a'] },
      { ...use('t', ['a'], onB), depends_on: ['made-on-a', 'gate'] },
    ])
    await pool.control.ended('made-on-a')
    await pool.killRuntime('a')
    await approve(pool.control, 'gate')
    const failed = await pool.control.ended('t')
    expect(failed.error).toStartWith('lost touch with runtime a, which has inputs.in-a, for 300ms: cannot reach')
    expect(failed.runtime?.error).toMatchObject({ code: 'external_failure', retryable: true })
  })
})

describe('in the middle of a move', () => {
  /** Two runtime services, the second one behind a link, and a graph whose last task needs files of the first one there. */
  async function startMoving() {
    const pool = await startPool({ a: {}, b: {} })
    const link = slowLink(() => pool.urlOf('b'))
    const flags = [
      '--runtime-url',
      `a=${pool.urlOf('a')}`,
      '--runtime-url',
      `b=${link.url}`,
      '--shutdown-timeout',
      '0s',
    ]
    const start = () => startControl({ dataDir: pool.file('moving'), flags })
    let control = await start()
    const go = link.stopAfter(3 * MIB)
    const script = `head -c ${8 * MIB} /dev/urandom > file; sha256sum < file`
    await control.submit([make('a', script), use('t', ['a'], { script: 'sha256sum < in-a', ...onB })])
    const halfWay = () =>
      until(
        () => staged(pool, 'b').map((name) => statSync(join(pool.file('runtime-b'), 'staged', name)).size),
        ([size]) => size !== undefined && size > MIB,
      )
    await halfWay()
    return {
      ...{ pool, link, go, halfWay },
      get control() {
        return control
      },
      async restart(signal: NodeJS.Signals) {
        await control.stop(signal)
        await control.dispose()
        control = await start()
      },
      sumOf: async () => stdoutOf(await control.get('made-on-a')),
      [Symbol.asyncDispose]: async () => {
        await control.dispose()
        await link[Symbol.asyncDispose]()
        await pool[Symbol.asyncDispose]()
      },
    }
  }
  const nothingHalf = (pool: StartedPool) =>
    until(
      () => staged(pool, 'b'),
      (names) => names.every((name) => !name.endsWith('.part')),
    )

  test('the record says what is moved, from where to where', async () => {
    await using moving = await startMoving()
    const { waiting, status, placed_on } = await until(
      () => moving.control.get('t'),
      (task) => task.waiting !== undefined,
    )
    expect([status, placed_on]).toEqual(['running', 'b'])
    expect(waiting?.detail).toMatch(/^moving inputs\.in-a from runtime a to runtime b: [1-9]\d* MiB$/)
    moving.go()
    expect(stdoutOf(await moving.control.ended('t'))).toBe(await moving.sumOf())
  })

  test('a kill of control: the next one sends it again, with the same content, and the attempt is the same', async () => {
    await using moving = await startMoving()
    await moving.restart('SIGKILL')
    moving.go()
    expect(await moving.control.ended('t')).toMatchObject({ status: 'success', attempt: 1, placed_on: 'b' })
    await nothingHalf(moving.pool)
    expect(stdoutOf(await moving.control.get('t'))).toBe(await moving.sumOf())
    expect(staged(moving.pool, 'b')).toHaveLength(1)
  })

  test('a kill of control, and a change of the file: the attempt gets no other content', async () => {
    await using moving = await startMoving()
    await moving.control.stop('SIGKILL')
    const { handle_id } = await moving.pool
      .runtime('a')
      .list()
      .then(([task]) => ({ handle_id: task!.task_id }))
    writeFileSync(join(moving.pool.file('runtime-a'), 'tasks', handle_id, 'workspace/file'), 'other')
    await moving.restart('SIGKILL')
    moving.go()
    const failed = await moving.control.ended('t')
    expect(failed).toMatchObject({ status: 'failed', attempt: 1 })
    expect(failed.error).toBe(`inputs.in-a: file of task ${handle_id} was changed`)
  })

  test('a cancel: the move ends, and nothing is left', async () => {
    await using moving = await startMoving()
    expect((await moving.control.fetch('/tasks/t/cancel', { method: 'POST' })).status).toBe(202)
    expect((await moving.control.ended('t')).status).toBe('cancelled')
    moving.go()
    await nothingHalf(moving.pool)
    expect(staged(moving.pool, 'b')).toEqual([])
    expect(await moving.pool.runtime('b').list()).toEqual([])
  })

  test.each(['a', 'b'])('a kill of runtime %s: it goes on once that is back', async (name) => {
    await using moving = await startMoving()
    await moving.pool.killRuntime(name)
    moving.go()
    await moving.pool.startRuntime(name)
    expect(await moving.control.ended('t')).toMatchObject({ status: 'success', attempt: 1 })
    expect(stdoutOf(await moving.control.get('t'))).toBe(await moving.sumOf())
    await nothingHalf(moving.pool)
    expect(staged(moving.pool, 'b')).toHaveLength(1)
  })

  test('a broken connection: it is sent again', async () => {
    await using moving = await startMoving()
    moving.link.cut()
    moving.go()
    expect(await moving.control.ended('t')).toMatchObject({ status: 'success', attempt: 1 })
    expect(stdoutOf(await moving.control.get('t'))).toBe(await moving.sumOf())
    await nothingHalf(moving.pool)
  })
})
