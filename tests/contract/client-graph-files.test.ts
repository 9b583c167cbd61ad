/** Graphs in files: `check`, `submit --dry-run`, and YAML. Source: docs/client.md. */
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
  control = await startControl()
})
afterAll(async () => {
  await control.dispose()
  temp[Symbol.dispose]()
})

async function file(name: string, text: string): Promise<string> {
  const path = join(temp.path, name)
  await Bun.write(path, text)
  return path
}

const GRAPH = `
# Two tasks, one after the other.
tasks:
  - id: first
    type: noop
    params: {message: on}
  - id: second
    type: noop
    depends_on: [first]
`

describe('YAML', () => {
  test('runs, is checked and submitted', async () => {
    for (const name of ['graph.yaml', 'graph.YML']) {
      const path = await file(name, GRAPH)
      const run = await client(['run', path])
      expect({ exitCode: run.exitCode, data: run.envelope.data }).toMatchObject({
        exitCode: 0,
        data: { state: 'success', tasks: [{ id: 'first' }, { id: 'second' }] },
      })
      expect(run.stderr).toStartWith(` taskmill  runs the 2 tasks of ${path} on `)
      const { envelope } = await client(['get', `${run.envelope.data?.graph_id}/first`])
      expect(envelope.data).toMatchObject({ result: { message: 'on' } })
      expect((await client(['check', '--file', path])).envelope.data).toMatchObject({ valid: true })
    }
    const id = crypto.randomUUID()
    const submitted = await client(['submit', '-', '--format', 'yaml'], `tasks:\n- {id: ${id}, type: noop}`)
    expect(submitted.envelope.data).toMatchObject({ task_ids: [id] })
  })

  test('is only what a file says it is', async () => {
    expect((await client(['submit', '-'], GRAPH)).envelope.error?.status_code).toBe(400)
    expect((await client(['check', await file('g.json', GRAPH)])).envelope.data).toMatchObject({ valid: false })
    expect((await client(['check', '--format', 'json', await file('g.yaml', '{"tasks": []}')])).exitCode).toBe(1)
  })

  test('with a fault names the file, the line and the column', async () => {
    const path = await file('bad.yaml', 'tasks:\n  - id: a\n    type: noop\n   bad: indent\n')
    for (const command of ['submit', 'run', 'check']) {
      const { exitCode, envelope } = await client([command, path])
      expect({ exitCode, error: envelope.error }).toEqual({
        exitCode: 1,
        error: { message: `${path}: line 4, column 4: invalid YAML: Unexpected token`, status_code: 0, body: '' },
      })
    }
    const { envelope } = await client(['check', '--format', 'yaml'], 'tasks: [')
    expect(envelope.error?.message).toMatch(/^standard input: line 1, column \d+: invalid YAML: Unexpected token$/)
  })
})

describe('--set', () => {
  const PARAMETERS = JSON.stringify({
    params: { word: null, jobs: 1 },
    tasks: [{ id: 'a', type: 'noop', params: { message: { $param: 'word' } } }],
  })

  test('gives the parameters of a graph their values', async () => {
    const run = await client(['run', '--set', 'word=a,b=c'], PARAMETERS)
    expect(run.exitCode).toBe(0)
    const { envelope } = await client(['get', `${run.envelope.data?.graph_id}/a`])
    expect(envelope.data).toMatchObject({ result: { message: 'a,b=c' } })
    expect((await client(['check', '--set', 'word=x', '--set', 'jobs:=2'], PARAMETERS)).exitCode).toBe(0)
    const lacking = await client(['check'], PARAMETERS)
    expect({ exitCode: lacking.exitCode, data: lacking.envelope.data }).toMatchObject({
      ...{ exitCode: 1, data: { errors: [{ message: 'graph needs parameter word' }] } },
    })
    const yaml = await file(
      'params.yml',
      'params: {word: ~}\ntasks: [{id: a, type: noop, params: {message: {$param: word}}}]',
    )
    expect((await client(['submit', '--dry-run', yaml, '--set', 'word=x'])).envelope.data).toMatchObject({
      valid: true,
    })
  })
})

describe('check', () => {
  const FAULTY = JSON.stringify({
    tasks: [
      { id: 'a', type: 'nop' },
      { id: 'b', type: 'noop', depends_on: ['c'] },
    ],
  })

  test('data is the answer of the dry run; exit code 1 with a fault', async () => {
    const good = await client(['check', await file('graph.yaml', GRAPH)])
    expect({ exitCode: good.exitCode, envelope: good.envelope as object }).toEqual({
      exitCode: 0,
      envelope: {
        ok: true,
        data: {
          ...{ valid: true, errors: [], warnings: [], runtime: {} },
          waves: [['first'], ['second']],
          critical_path: ['first', 'second'],
        },
      },
    })
    const bad = await client(['check'], FAULTY)
    expect({ exitCode: bad.exitCode, ok: bad.envelope.ok, data: bad.envelope.data }).toMatchObject({
      ...{ exitCode: 1, ok: true },
      data: { valid: false, errors: [{ task_id: 'b' }, { task_id: 'a' }] },
    })
    expect((await control.fetch('/graphs?name=checked')).status).toBe(200)
  })

  test('-o table has the faults, or the waves', async () => {
    const good = await client(['check', '-o', 'table', await file('graph.yaml', GRAPH)])
    expect(good.stdout).toBe(
      'valid    yes\nlongest  2: first > second\n\nWAVE  TASKS  IDS\n   1      1  first\n   2      1  second\n',
    )
    const bad = await client(['check', '-o', 'table'], FAULTY)
    expect(bad.stdout).toMatch(/^valid {2}no\n\nTASK {2}ERROR\nb {5}.*unknown.*\na {5}.*nop.*\n$/)
  })

  test('judges the file; submit --dry-run also tells of ids that are taken', async () => {
    const id = crypto.randomUUID()
    const graph = JSON.stringify({ tasks: [{ id, type: 'sleep', params: { duration_ms: 600_000 } }] })
    const dry = await client(['submit', '--dry-run'], graph)
    expect({ exitCode: dry.exitCode, data: dry.envelope.data }).toMatchObject({ exitCode: 0, data: { valid: true } })
    expect((await client(['get', id])).exitCode).toBe(1)
    expect((await client(['submit'], graph)).exitCode).toBe(0)
    expect((await client(['check'], graph)).exitCode).toBe(0)
    const taken = await client(['submit', '--dry-run'], graph)
    expect({ exitCode: taken.exitCode, data: taken.envelope.data }).toMatchObject({
      ...{ exitCode: 1, data: { valid: false, errors: [{ task_id: id }] } },
    })
  })
})
