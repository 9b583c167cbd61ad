/** `taskmill rerun`. Source: docs/client.md, "Run a graph again". */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import { runClient } from '../support/client.ts'
import { type Control, startControl } from '../support/control.ts'
import { type TempDir, tempDir } from '../support/temp.ts'

let control: Control
let temp: TempDir
const client = (args: readonly string[], stdin?: string) => runClient(args, { url: control.url, stdin })

beforeAll(async () => {
  temp = tempDir()
  control = await startControl({ env: { SERVICE_FILE_ROOT: temp.path } })
})
afterAll(async () => {
  await control.dispose()
  temp[Symbol.dispose]()
})

/** A graph in which `read` fails until its file exists. Resolves with its id, once it has ended. */
async function failedGraph(path: string): Promise<string> {
  const graph = {
    params: { path, word: 'before' },
    tasks: [
      { id: 'first', type: 'noop', params: { message: { $param: 'word' } } },
      { id: 'read', type: 'file', params: { action: 'read', path: { $param: 'path' } }, depends_on: ['first'] },
      { id: 'last', type: 'noop', params: { message: { $param: 'word' } }, depends_on: ['read'] },
    ],
  }
  const { exitCode, envelope } = await client(['run'], JSON.stringify(graph))
  expect(exitCode).toBe(1)
  return String(envelope.data?.graph_id)
}

describe('rerun', () => {
  test('keeps what succeeded, and prints the answer of the service', async () => {
    const source = await failedGraph('later')
    await Bun.write(join(temp.path, 'later'), 'text')
    const { exitCode, envelope } = await client(['rerun', source])
    expect({ exitCode, data: envelope.data }).toMatchObject({
      exitCode: 0,
      data: { accepted: 3, reused: ['first'], task_ids: ['first', 'read', 'last'] },
    })
    const id = String(envelope.data?.graph_id)
    expect((await client(['wait', id, '--fail'])).exitCode).toBe(0)
    expect((await client(['graph', id])).envelope.data?.tasks).toMatchObject([
      { id: 'first', reused_from: { graph_id: source, task_id: 'first' } },
      { id: 'read' },
      { id: 'last' },
    ])
    const table = (await client(['graph', id, '-o', 'table'])).stdout
    expect(table).toMatch(new RegExp(`^first +success .* reused from ${source}/first$`, 'm'))
    const record = (await client(['get', `${id}/first`, '-o', 'table'])).stdout
    expect(record).toMatch(new RegExp(`^reused from +${source}/first$`, 'm'))
  })

  test('--follow shows it, --from names tasks, --set changes parameters', async () => {
    const source = await failedGraph('nowhere')
    await Bun.write(join(temp.path, 'somewhere'), 'text')
    const { exitCode, envelope, stderr } = await client([
      ...['rerun', source, '--follow', '--from', 'first', '--set', 'path=somewhere', '--set', 'word:="after, too"'],
    ])
    expect({ exitCode, data: envelope.data }).toMatchObject({
      exitCode: 0,
      data: { state: 'success', tasks: [{ id: 'first' }, { id: 'read' }, { id: 'last' }] },
    })
    expect(stderr).toStartWith(` taskmill  runs 3 of 3 tasks of ${source} again on ${control.url}\n`)
    const { envelope: first } = await client(['get', `${envelope.data?.graph_id}/first`])
    expect(first.data).toMatchObject({ result: { message: 'after, too' } })
    const again = await client(['rerun', source, '-f', '--from', 'failed'])
    expect({ exitCode: again.exitCode, data: again.envelope.data }).toMatchObject({
      ...{ exitCode: 1, data: { state: 'failed' } },
    })
    expect(again.stderr).toContain('runs 2 of 3 tasks of')
    expect(again.stderr).toContain('  first: success (reused)\n')
  })

  test.each([
    [[], 2, 'no graph id: give it as argument'],
    [['nobody'], 1, 'graph not found: nobody'],
    [['nobody', '--set', 'x'], 2, 'invalid --set x: expected name=value, or name:=json'],
  ])('%j is refused', async (args, exitCode, message) => {
    const { envelope, ...run } = await client(['rerun', ...args])
    expect([run.exitCode, envelope.error?.message]).toEqual([exitCode, message])
  })

  test('of unknown tasks and parameters is refused by the service', async () => {
    const source = await failedGraph('missing')
    for (const flags of [
      ['--from', 'frist'],
      ['--set', 'wrod=x'],
    ]) {
      const { exitCode, envelope } = await client(['rerun', source, ...flags])
      expect([exitCode, envelope.error?.status_code]).toEqual([1, 400])
    }
  })
})
