/**
 * What the client prints: JSON on one line in a pipe, indented on a terminal, text for people with `-o table`. Nothing
 * that a task wrote is obeyed by a terminal.
 */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { runClient } from '../support/client.ts'
import { type Control, startControl } from '../support/control.ts'
import { tempDir } from '../support/temp.ts'
import { runInTerminal } from '../support/terminal.ts'

let control: Control
const client = (args: readonly string[], env: Record<string, string> = {}) => runClient(args, { url: control.url, env })
const onTerminal = (args: readonly string[], options: { columns?: number; env?: Record<string, string> } = {}) =>
  runInTerminal(args, { url: control.url, ...options })

beforeAll(async () => {
  control = await startControl()
})
afterAll(() => control[Symbol.asyncDispose]())

const HOSTILE = '\x1b[2J\x1b]0;owned\x07\u202e\x9b1m'

/** A task whose id and error hold escapes. */
async function hostileTask(): Promise<string> {
  const id = `${HOSTILE}${crypto.randomUUID()}`
  await control.submit([{ id, type: 'file', params: { action: 'read', path: `no ${HOSTILE}` } }])
  await control.ended(id)
  return id
}

describe('JSON', () => {
  test('is indented on a terminal', async () => {
    const { exitCode, output } = await onTerminal(['version'])
    expect(exitCode).toBe(0)
    expect(output).toBe(`${JSON.stringify(JSON.parse(output), null, 2)}\n`)
    expect(output.split('\n').length).toBeGreaterThan(3)
  })

  test('is one line in a pipe, with the bytes of JSON.stringify', async () => {
    const id = await hostileTask()
    const { stdout } = await client(['get', id])
    expect(stdout).toBe(`${JSON.stringify(JSON.parse(stdout))}\n`)
  })

  test('on a terminal has no character that it obeys, and the same value', async () => {
    const id = await hostileTask()
    const { output } = await onTerminal(['get', id])
    expect(output).not.toMatch(/(?!\n)\p{Cc}|\u202e/u)
    expect(JSON.parse(output)).toEqual((await client(['get', id])).envelope)
  })

  test('of an error is indented, too', async () => {
    const { exitCode, output } = await onTerminal(['get', 'nobody'])
    expect(exitCode).toBe(1)
    expect(JSON.parse(output)).toMatchObject({ ok: false, error: { status_code: 404 } })
    expect(output).toStartWith('{\n  "ok": false,\n')
  })
})

describe('-o brief', () => {
  const brief = async (...args: readonly string[]) => {
    const { stdout, exitCode } = await client([...args, '-o', 'brief'])
    return { stdout, exitCode, ...JSON.parse(stdout) }
  }
  const fresh = () => crypto.randomUUID()

  test('of a task that went well has its output or the end of it, and at most 400 characters', async () => {
    const id = fresh()
    await control.submit([{ id, type: 'shell', params: { command: 'echo', args: ['hi'] } }])
    await control.ended(id)
    expect((await brief('get', id)).data).toEqual({ id, status: 'success', output: 'hi' })
    const waited = await brief('wait', id)
    expect(waited.data).toEqual({ all_terminal: true, tasks: [{ id, status: 'success', output: 'hi' }] })

    const long = fresh()
    await control.submit([{ id: long, type: 'shell', params: { command: 'echo', args: ['"\n\u0001é'.repeat(500)] } }])
    await control.ended(long)
    const { stdout, data } = await brief('get', long)
    expect(stdout.trimEnd().length).toBeLessThanOrEqual(400)
    expect(data.output).toStartWith('…')
    expect(data.output).toEndWith('é')
    expect(data.next).toContain(`logs ${long}`)
  })

  test('of a failure says why, and of a task that waits what to do', async () => {
    const id = fresh()
    await control.submit([
      { id, type: 'file', params: { action: 'read', path: 'not/there' } },
      { id: `${id}-sure`, type: 'approval', params: { message: 'Go?' } },
    ])
    const { graph_id } = await control.ended(id)
    const failed = await brief('get', id)
    expect(failed.data).toMatchObject({ id, status: 'failed', error_code: 'not_found' })
    expect(failed.data.error).toContain('not/there')
    expect(failed.data.next).toContain(`logs ${id}`)
    const asking = await brief('get', `${id}-sure`)
    expect(asking.data).toMatchObject({ status: 'pending', waiting: 'approval: Go?' })
    expect(asking.data.next).toContain(`approve ${id}-sure`)

    const graph = await brief('graph', graph_id)
    expect(graph.data).toMatchObject({ graph_id, state: 'running', counts: { failed: 1, pending: 1 } })
    expect(graph.data.root_cause).toMatchObject({ task_id: id, code: 'not_found' })
    expect(graph.data.next).toContain(`approve ${graph_id}/${id}-sure`)
    expect((await brief('approve', `${id}-sure`, '--who', 'ada')).data).toMatchObject({ status: 'success' })
    expect((await brief('list', '--graph', graph_id)).data.tasks).toEqual([
      { id, status: 'failed', error: failed.data.error },
      { id: `${id}-sure`, status: 'success' },
    ])
    const { graphs } = (await brief('graphs')).data
    expect(graphs).toContainEqual({ graph_id, state: 'failed', counts: { failed: 1, success: 1 } })
  })

  test('of run and submit names the graph and the next call; of a refusal only the message', async () => {
    using dir = tempDir()
    const file = join(dir.path, 'graph.json')
    writeFileSync(file, JSON.stringify({ tasks: [{ id: 'a', type: 'noop' }] }))
    const ran = await brief('run', file, '-q')
    const { graph_id } = ran.data
    expect([ran.exitCode, ran.data]).toMatchObject([0, { state: 'success', counts: { success: 1 } }])
    expect(ran.data.next).toContain(`logs ${graph_id}/a`)
    expect(ran.stdout.length).toBeLessThanOrEqual(400)
    const sent = await brief('submit', file)
    expect(sent.data).toMatchObject({ accepted: 1, task_ids: ['a'] })
    expect(sent.data.next).toContain(`wait ${sent.data.graph_id}`)
    const { exitCode, ok, error } = await brief('get', 'nobody')
    expect({ exitCode, ok, error }).toEqual({
      ...{ exitCode: 1, ok: false },
      error: { message: expect.stringContaining('nobody'), status_code: 404 },
    })
  })
})

describe('-o table', () => {
  test('lists tasks in aligned columns', async () => {
    const { graph_id } = await control.submit([
      { id: 'table-sleep', type: 'sleep', params: { duration_ms: 600_000 } },
      { id: 'table-bad', type: 'file', params: { action: 'read', path: 'nothing' } },
      { id: 'table-after', type: 'noop', depends_on: ['table-bad'] },
    ])
    await control.ended('table-after')
    await control.reached('table-sleep', 'running')
    // The tasks of `run` are not in the list of the service: a new user has to learn where they are.
    const none = await client(['list', '--status', 'cancelled', '-o', 'table'])
    expect(none.stdout).toBe(
      'no tasks here; those of taskmill run: taskmill graphs, then taskmill list --graph GRAPH_ID\n',
    )
    const { exitCode, stdout } = await client(['list', '--graph', graph_id, '-o', 'table'])
    expect(exitCode).toBe(0)
    const [header, ...rows] = stdout.trimEnd().split('\n')
    expect(header).toMatch(/^ID +STATUS +TYPE +TOOK +CREATED +WHY$/)
    const at = header!.indexOf('STATUS')
    expect(rows.map((row) => [row.slice(0, at).trim(), row.slice(at).split(' ')[0]])).toEqual([
      ['table-sleep', 'running'],
      ['table-bad', 'failed'],
      ['table-after', 'skipped'],
    ])
    expect(rows[2]).toEndWith('dependency table-bad failed')
  })

  test('can be the default, by TASKMILL_OUTPUT; the flag beats it', async () => {
    const env = { TASKMILL_OUTPUT: 'table' }
    expect((await client(['version'], env)).stdout).toMatch(
      /^version {2}\d+\.\d+\.\d+\ncommit {3}\S+\nbuild {4}\S+\nbun {6}\S+\n$/,
    )
    expect((await client(['version', '--output', 'json'], env)).envelope.ok).toBe(true)
    const { exitCode, envelope } = await client(['version'], { TASKMILL_OUTPUT: 'pretty' })
    expect(exitCode).toBe(2)
    expect(envelope.error?.message).toBe('invalid TASKMILL_OUTPUT="pretty": expected json or brief or table')
  })

  test('shows a task with its output and its earlier attempts', async () => {
    const { id } = await control.run({ type: 'shell', params: { command: 'echo', args: ['one\ntwo\x1b[31m'] } })
    const { stdout } = await client(['get', id, '-o', 'table'])
    expect(stdout).toStartWith(`id       ${id}\nstatus   success\ntype     os.shell\n`)
    expect(stdout).toEndWith('stdout\n  one\n  two\\e[31m\n')
    const again = await control.run({ type: 'file', retry: 1, params: { action: 'read', path: 'nothing' } })
    expect((await client(['get', again.id, '-o', 'table'])).stdout).toMatch(
      /\nattempts\nATTEMPT +TOOK +CODE +ERROR\n +1 /,
    )
  })

  test('shows any other answer by its fields', async () => {
    const { id } = await control.run({ type: 'noop' })
    const { stdout } = await client(['wait', id, '-o', 'table'])
    expect(stdout.split('\n').slice(0, 2)).toEqual([
      'all_terminal      true',
      expect.stringMatching(/^deadline_rfc3339 {2}2/),
    ])
    expect(stdout).toEndWith(`\ntasks\n${'id'.padEnd(id.length)}  status\n${id}  success\n`)
  })

  test('says an error once, on standard error', async () => {
    const { exitCode, stdout, stderr } = await client(['get', 'nobody', '-o', 'table'])
    expect({ exitCode, stdout, stderr }).toEqual({
      exitCode: 1,
      stdout: '',
      stderr: 'taskmill: task not found: nobody\n',
    })
  })

  test('has colours on a terminal, unless NO_COLOR is set', async () => {
    const { id } = await control.run({ type: 'noop' })
    const { output } = await onTerminal(['get', id, '-o', 'table'])
    expect(output).toContain('\x1b[32msuccess\x1b[0m')
    const plain = await onTerminal(['get', id, '-o', 'table'], { env: { NO_COLOR: '1' } })
    expect(plain.output).not.toContain('\x1b')
    expect((await client(['get', id, '-o', 'table'])).stdout).not.toContain('\x1b')
  })

  test('fits a narrow terminal and shows escapes of tasks as text', async () => {
    await hostileTask()
    const { output } = await onTerminal(['list', '-o', 'table'], { columns: 40, env: { NO_COLOR: '1' } })
    expect(output).toContain('\\e[2J\\e]0;owned')
    expect(output).not.toMatch(/(?!\n)\p{Cc}|\u202e/u)
    for (const line of output.split('\n')) expect(Bun.stringWidth(line)).toBeLessThanOrEqual(40)
  })
})
