/** `--max-graph-result-bytes` of the built service: what one graph stores is bounded, whatever its children return. */
import { expect, test } from 'bun:test'
import { readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import type { TaskRecord } from '../../shared/contract/control.ts'
import type { GraphDetails } from '../../shared/contract/graphs.ts'
import type { SubmitResponse } from '../../shared/contract/submission.ts'
import { isTerminal } from '../../shared/contract/task-status.ts'
import { type Control, startControl } from '../support/control.ts'
import { tempDir } from '../support/temp.ts'
import { until } from '../support/until.ts'

const KIB = 1024
const MAX_BYTES = 1024 * KIB
const FLAGS = ['--max-graph-result-bytes', String(MAX_BYTES), '--max-concurrency', '4']

/** Its result has what it gets. */
const echo = (id: string, message: unknown, more: object = {}) => ({
  ...{ id, type: 'mcp', tool_name: 'echo', params: { message }, ...more },
})

const storedBytes = ({ dataDir }: Control): number => {
  const results = join(dataDir, 'results')
  return readdirSync(results).reduce((sum, name) => sum + statSync(join(results, name)).size, 0)
}

async function run(control: Control, tasks: object[], more: object = {}) {
  const response = await control.post({ scope: 'graph', tasks, ...more })
  expect(response.status).toBe(202)
  const { graph_id, warnings } = (await response.json()) as SubmitResponse
  for (;;) {
    const graph = (await (await control.fetch(`/graphs/${graph_id}?wait_ms=20000`)).json()) as GraphDetails
    if (graph.state !== 'running') return { graph, warnings }
  }
}

async function read(control: Control, graphId: string, id: string): Promise<TaskRecord> {
  return (await (await control.fetch(`/graphs/${graphId}/tasks/${encodeURIComponent(id)}`)).json()) as TaskRecord
}

const FULL = new RegExp(
  `^the result is too large to be kept: its graph may store \\d+ more bytes of results and inputs, of ${MAX_BYTES} in all ` +
    '\\(--max-graph-result-bytes\\): return less, pass on files, divide the graph, or raise the limit$',
)

/** 240 KiB in each of 20 children, of a submission of a few KiB. */
const wide = (more: object = {}) =>
  echo(
    'map',
    Array.from({ length: 40 }, () => ({ $item: '' })),
    { for_each: Array.from({ length: 20 }, (_, i) => String(i % 10).repeat(6 * KIB)), ...more },
  )

test('the children of a task with for_each store no more than --max-graph-result-bytes together', async () => {
  await using control = await startControl({ flags: FLAGS })
  const { graph, warnings } = await run(control, [wide()])
  expect(graph.counts).toEqual({ success: 4, failed: 17 })
  expect(storedBytes(control)).toBeLessThanOrEqual(MAX_BYTES)
  const children = await Promise.all(Array.from({ length: 20 }, (_, i) => read(control, graph.graph_id, `map[${i}]`)))
  const failed = children.filter(({ status }) => status === 'failed')
  for (const { error, runtime, attempt } of failed) {
    expect([error, runtime?.error?.code, attempt]).toEqual([expect.stringMatching(FULL), 'resource_limit_exceeded', 1])
  }
  // Of inputs as large as these, only digests are kept.
  expect(warnings).toBeUndefined()
  // Another graph has room of its own.
  const other = await run(control, [wide({ for_each: ['x'.repeat(6 * KIB)] })])
  expect([other.graph.state, other.warnings]).toEqual(['success', undefined])
})

test('small results and small inputs count as well', async () => {
  await using control = await startControl({ flags: FLAGS })
  const elements = Array.from({ length: 60 }, () => 'x'.repeat(10 * KIB))
  const { graph } = await run(control, [echo('map', [{ $item: '' }], { for_each: elements, retry: 3 })])
  // Each child stores its input and its result.
  const succeeded = graph.counts.success!
  expect(succeeded).toBeGreaterThan(45)
  expect(succeeded * 20 * KIB).toBeLessThanOrEqual(MAX_BYTES)
  expect(graph.counts.failed).toBe(61 - succeeded)
})

test('a submission is warned of the inputs that are certain to be kept, and of no others', async () => {
  await using control = await startControl({ env: { SERVICE_SHELL_POLICY: 'open' }, flags: FLAGS })
  const map = { id: 'map', type: 'shell', params: { script: { $param: 'text' } }, for_each: Array(20).fill(0) }
  const dryRun = async (text: string) => {
    const body = JSON.stringify({ scope: 'graph', tasks: [map], params: { text } })
    return (await control.fetch('/tasks?dry_run=true', { method: 'POST', body })).json()
  }
  const [small, large] = ['#'.repeat(60 * KIB), '#'.repeat(100 * KIB)]
  const message = `for_each: the inputs of its 20 children have at least ${20 * (60 * KIB + 2)} bytes together, but a graph may store ${MAX_BYTES} bytes of results and inputs (--max-graph-result-bytes): what does not fit fails`
  expect(await dryRun(small)).toMatchObject({ valid: false, errors: [{ message: `task map: ${message}` }] })
  const failed = await run(control, [map], { params: { text: small } })
  expect(failed).toMatchObject({ graph: { state: 'failed' }, warnings: [{ message }] })
  expect(await dryRun(large)).toMatchObject({ valid: true, warnings: [] })
  const { graph, warnings } = await run(control, [map], { params: { text: large } })
  expect([graph.counts, warnings]).toEqual([{ success: 21 }, undefined])
})

test('a large input with values of other tasks counts while it is kept', async () => {
  await using control = await startControl({ flags: FLAGS })
  const { graph } = await run(control, [
    echo('source', 'x'.repeat(300 * KIB)),
    echo(
      'reader',
      Array.from({ length: 4 }, () => ({ $from: 'source', path: '/result/echo/message' })),
      { depends_on: ['source'], retry: 3 },
    ),
  ])
  const { status, error, runtime, attempt } = await read(control, graph.graph_id, 'reader')
  expect([status, error, runtime?.error?.code, attempt]).toEqual([
    'failed',
    expect.stringMatching(/^the input with the values of its placeholders is too large to be kept: /),
    'resource_limit_exceeded',
    1,
  ])
  expect(storedBytes(control)).toBeLessThan(MAX_BYTES)
})

test('what a graph has stored counts after a kill', async () => {
  using dir = tempDir()
  const options = { dataDir: join(dir.path, 'data'), flags: FLAGS }
  const tasks = [
    echo('first', 'x'.repeat(600 * KIB)),
    { id: 'ask', type: 'approval', depends_on: ['first'], params: { message: 'go on?' } },
    echo('second', 'x'.repeat(600 * KIB), { depends_on: ['ask'] }),
  ]
  let graphId: string
  {
    await using control = await startControl(options)
    const response = await control.post({ scope: 'graph', tasks })
    graphId = ((await response.json()) as SubmitResponse).graph_id
    await until(
      () => read(control, graphId, 'ask'),
      ({ waiting }) => waiting?.reason === 'approval',
    )
    await control.stop('SIGKILL')
  }
  await using control = await startControl(options)
  await until(
    async () =>
      (await control.fetch(`/graphs/${graphId}/tasks/ask/approve`, { method: 'POST', body: '{"who":"ada","why":""}' }))
        .status,
    (status) => status === 200,
  )
  await until(
    () => read(control, graphId, 'second'),
    ({ status }) => isTerminal(status),
  )
  const statuses = await Promise.all(['first', 'second'].map(async (id) => (await read(control, graphId, id)).status))
  expect(statuses).toEqual(['success', 'failed'])
})
