/**
 * Goal: a value of each of thousands of children reaches one command, complete and in order.
 * Method: the built service; the command repeats what it reads on standard input.
 */
import { expect, test } from 'bun:test'
import type { TaskRecord } from '../../shared/contract/control.ts'
import { startControl } from '../support/control.ts'
import { until } from '../support/until.ts'

const CHILDREN = 5_000

/** Makes the report larger than one argument of a command can be (128 KiB). */
const TEXT = 'x'.repeat(100)

test(`${CHILDREN} results are gathered into one report`, async () => {
  await using control = await startControl({ flags: ['--max-concurrency', '8'] })
  const graph = {
    scope: 'graph',
    tasks: [
      {
        ...{ id: 'test', type: 'shell', for_each: Array.from({ length: CHILDREN }, (_, n) => ({ n, text: TEXT })) },
        params: { command: 'echo', args: ['-n', { $item: '', as: 'text' }] },
      },
      {
        ...{ id: 'list', type: 'mcp', tool_name: 'builtin/echo', depends_on: ['test'] },
        input: { all: { $from: 'test', path: '/result/*/stdout', as: 'json' } },
      },
      {
        ...{ id: 'report', type: 'shell', depends_on: ['list'] },
        params: { command: 'cat', stdin: { $from: 'list', path: '/result/echo/all', as: 'text' } },
      },
    ],
  }
  const response = await control.post(graph)
  expect(response.status).toBe(202)
  const { graph_id } = (await response.json()) as { graph_id: string }
  const report = await until(
    async () => (await (await control.fetch(`/graphs/${graph_id}/tasks/report?wait_ms=20000`)).json()) as TaskRecord,
    ({ finished_at }) => finished_at !== undefined,
    { patienceMs: 200_000 },
  )
  expect(report).toMatchObject({ status: 'success' })
  const { stdout } = report.result as { stdout: string }
  expect(JSON.parse(stdout)).toEqual(Array.from({ length: CHILDREN }, (_, n) => ({ n, text: TEXT })))
}, 240_000)
