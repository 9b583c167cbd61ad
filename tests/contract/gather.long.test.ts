/**
 * Goal: a value of each of thousands of children, and a file of each of hundreds, reach one task, complete and in order. Method:
 * both built services; the task repeats what it gets as standard input and as files.
 */
import { expect, test } from 'bun:test'
import type { TaskRecord } from '../../shared/contract/control.ts'
import { startControl } from '../support/control.ts'
import { startRuntime } from '../support/runtime.ts'
import { until } from '../support/until.ts'

const CHILDREN = 5_000
const FILES = 500

/** Makes the report larger than one argument of a command can be (128 KiB). */
const TEXT = 'x'.repeat(100)

test(`${CHILDREN} results, and ${FILES} files, are gathered into one report`, async () => {
  await using runtime = await startRuntime()
  await using control = await startControl({ flags: ['--max-concurrency', '8', '--runtime-url', runtime.url] })
  const all = { $from: 'test', path: '/result/*/stdout', as: 'json' }
  const graph = {
    scope: 'graph',
    tasks: [
      {
        ...{ id: 'test', type: 'shell', for_each: Array.from({ length: CHILDREN }, (_, n) => ({ n, text: TEXT })) },
        params: { command: 'echo', args: ['-n', { $item: '', as: 'text' }] },
      },
      {
        ...{ id: 'part', type: 'runtime.script', for_each: Array.from({ length: FILES }, (_, n) => n) },
        params: { script: 'echo $N > part', env: { N: { $index: true, as: 'text' } } },
      },
      {
        ...{ id: 'report', type: 'runtime.script', depends_on: ['test', 'part'] },
        params: {
          script: `cat > given; cmp given all.json && for n in $(seq 0 ${FILES - 1}); do cat parts/$n/part; done`,
          outputs: ['given'],
          stdin: all,
          inputs: { 'all.json': { content: all }, parts: { $from: 'part', file: 'part' } },
        },
      },
    ],
  }
  const response = await control.post(graph)
  expect(response.status).toBe(202)
  const { graph_id } = (await response.json()) as { graph_id: string }
  const at = `/graphs/${graph_id}/tasks/report`
  const report = await until(
    async () => (await (await control.fetch(`${at}?wait_ms=20000`)).json()) as TaskRecord,
    ({ finished_at }) => finished_at !== undefined,
    { patienceMs: 400_000 },
  )
  expect([report.status, report.error]).toEqual(['success', undefined])
  const { stdout } = report.result as { stdout: string }
  expect(stdout).toBe(Array.from({ length: FILES }, (_, n) => `${n}\n`).join(''))
  const given = await (await control.fetch(`${at}/files/given`)).json()
  expect(given).toEqual(Array.from({ length: CHILDREN }, (_, n) => ({ n, text: TEXT })))
}, 450_000)
