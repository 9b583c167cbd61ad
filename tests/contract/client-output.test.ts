/**
 * What the client prints: JSON on one line in a pipe, indented on a terminal, text for people with `-o table`. Nothing
 * that a task wrote is obeyed by a terminal.
 */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { runClient } from '../support/client.ts'
import { type Control, startControl } from '../support/control.ts'
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
    expect(envelope.error?.message).toBe('invalid TASKMILL_OUTPUT="pretty": expected json or table')
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
