/** The graphs of docs/graphs.md: the page shows the files, and each ends as the page says. */
import { expect, test } from 'bun:test'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { TaskRecord } from '../../shared/contract/control.ts'
import { runClient } from '../support/client.ts'
import { startControl } from '../support/control.ts'

const ROOT = join(import.meta.dir, '../..')
const GRAPHS = join(ROOT, 'examples/graphs')

/** The state of each graph, and how its tasks end that do not succeed. */
const ENDS: Readonly<Record<string, { state: string; others: Readonly<Record<string, string>> }>> = {
  'branch.json': { state: 'success', others: { preview: 'skipped' } },
  'clean-up.json': { state: 'failed', others: { test: 'failed', publish: 'skipped' } },
  'map.json': { state: 'success', others: {} },
  'optional-step.json': { state: 'success', others: { cache: 'failed' } },
}

const page = readFileSync(join(ROOT, 'docs/graphs.md'), 'utf8')
const readme = readFileSync(join(ROOT, 'examples/README.md'), 'utf8')

test('each file is known here', () => {
  expect(readdirSync(GRAPHS).toSorted()).toEqual(Object.keys(ENDS).toSorted())
})

test.each(Object.entries(ENDS))('%s is shown, and ends as the page says', async (name, { state, others }) => {
  expect(page).toContain(`\`\`\`json\n${readFileSync(join(GRAPHS, name), 'utf8')}\`\`\`\n`)
  expect(readme).toContain(`\`graphs/${name}\``)
  await using control = await startControl()
  const { exitCode, envelope } = await runClient(['run', join(GRAPHS, name)], { url: control.url })
  const { data } = envelope as unknown as { data: { state: string; tasks: { id: string; status: string }[] } }
  expect(exitCode).toBe(state === 'success' ? 0 : 1)
  expect(data.state).toBe(state)
  const ended = data.tasks.filter(({ status }) => status !== 'success').map(({ id, status }) => [id, status])
  expect(Object.fromEntries(ended)).toEqual(others)
})

test('map.json hands the outputs of tasks to others', async () => {
  await using control = await startControl()
  const { envelope } = await runClient(['run', join(GRAPHS, 'map.json')], { url: control.url })
  const { graph_id } = envelope.data as { graph_id: string }
  const report = (await (await control.fetch(`/graphs/${graph_id}/tasks/report`)).json()) as TaskRecord
  expect(report.result).toEqual({
    tool_name: 'echo',
    echo: {
      counts: { north: 6, south: 5 },
      first: 'the river runs to the sea\n',
      shortest: 4,
      note: 'none',
      form: { $from: 'a task' },
    },
  })
})
