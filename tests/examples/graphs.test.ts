/** The graphs of docs/graphs.md: the page leads to the files, and each ends as the page says. */
import { expect, test } from 'bun:test'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { TaskRecord } from '../../shared/contract/control.ts'
import { runClient } from '../support/client.ts'
import { startControl } from '../support/control.ts'
import { startRuntime } from '../support/runtime.ts'
import { until } from '../support/until.ts'

const ROOT = join(import.meta.dir, '../..')
const GRAPHS = join(ROOT, 'examples/graphs')

/** The state of each graph, and how its tasks end that do not succeed. */
const ENDS: Readonly<Record<string, { state: string; others: Readonly<Record<string, string>> }>> = {
  'at-the-end.json': { state: 'failed', others: { test: 'failed', publish: 'skipped', 'on_end/2': 'skipped' } },
  'build-matrix.json': { state: 'success', others: {} },
  'branch.json': { state: 'success', others: { preview: 'skipped' } },
  'clean-up.json': { state: 'failed', others: { test: 'failed', publish: 'skipped' } },
  'gather.json': { state: 'success', others: {} },
  'map-reduce.json': { state: 'success', others: {} },
  'map.json': { state: 'success', others: {} },
  'plan.json': { state: 'success', others: {} },
  'optional-step.json': { state: 'success', others: { cache: 'failed' } },
}

const page = readFileSync(join(ROOT, 'docs/graphs.md'), 'utf8')
const readme = readFileSync(join(ROOT, 'examples/README.md'), 'utf8')

test('each file is known here', () => {
  expect(readdirSync(GRAPHS).toSorted()).toEqual(
    [...Object.keys(ENDS), 'approval.json', 'ci-matrix.yaml', 'files.json'].toSorted(),
  )
})

test.each(Object.entries(ENDS))('%s is linked, and ends as the page says', async (name, { state, others }) => {
  expect(page).toContain(`(../examples/graphs/${name})`)
  expect(readme).toContain(`\`graphs/${name}\``)
  await using control = await startControl()
  const { exitCode, envelope } = await runClient(['run', join(GRAPHS, name)], { url: control.url })
  const { data } = envelope as unknown as { data: { state: string; tasks: { id: string; status: string }[] } }
  expect(exitCode).toBe(state === 'success' ? 0 : 1)
  expect(data.state).toBe(state)
  const ended = data.tasks.filter(({ status }) => status !== 'success').map(({ id, status }) => [id, status])
  expect(Object.fromEntries(ended)).toEqual(others)
})

test('files.json is linked, and hands files from task to task', async () => {
  const path = join(GRAPHS, 'files.json')
  expect(page).toContain('(../examples/graphs/files.json)')
  expect(readme).toContain('`graphs/files.json`')
  await using runtime = await startRuntime()
  await using control = await startControl({ flags: ['--runtime-url', runtime.url] })
  const { exitCode, envelope } = await runClient(['run', path], { url: control.url })
  expect([exitCode, envelope.data?.state]).toEqual([0, 'success'])
  const { graph_id } = envelope.data as { graph_id: string }
  const count = (await (await control.fetch(`/graphs/${graph_id}/tasks/count`)).json()) as TaskRecord
  const words = (count.result as { stdout: string }).stdout.split('\n').map((line) => line.trim())
  expect(words).toEqual(['3 the', '2 sea', '1 back', ''])
})

test('ci-matrix.yaml is linked, brings the coverage of 21 jobs together, and asks before it publishes', async () => {
  expect(page).toContain('(../examples/graphs/ci-matrix.yaml)')
  expect(readme).toContain('`graphs/ci-matrix.yaml`')
  await using runtime = await startRuntime()
  await using control = await startControl({ flags: ['--runtime-url', runtime.url] })
  const submitted = await runClient(['submit', join(GRAPHS, 'ci-matrix.yaml')], { url: control.url })
  const { graph_id, task_ids } = submitted.envelope.data as { graph_id: string; task_ids: string[] }
  const waited = await runClient(['wait', ...task_ids.map((id) => `${graph_id}/${id}`)], { url: control.url })
  expect([waited.exitCode, waited.envelope.data?.approvals]).toEqual([3, [`${graph_id}/release`]])
  const answered = await runClient(['approve', `${graph_id}/release`, '--who', 'ada'], { url: control.url })
  expect(answered.exitCode).toBe(0)
  const { exitCode } = await runClient(['watch', graph_id], { url: control.url })
  expect(exitCode).toBe(0)
  const published = (await (await control.fetch(`/graphs/${graph_id}/tasks/publish`)).json()) as TaskRecord
  expect(published.result).toMatchObject({ stdout: 'published with\n21 jobs cover 97.5 % of the lines\n' })
})

const approval = join(GRAPHS, 'approval.json')

test('approval.json is linked', () => {
  expect(page).toContain('(../examples/graphs/approval.json)')
  expect(readme).toContain('`graphs/approval.json`')
})

test.each([
  ['approve', 'success', 'carry-out', 'apologise', 'carried out, as agreed with ada\n'],
  ['reject', 'failed', 'apologise', 'carry-out', 'not carried out: not on a Friday\n'],
])('approval.json ends as the page says after %s', async (verb, state, taken, notTaken, stdout) => {
  await using control = await startControl()
  const submitted = await runClient(['submit', approval], { url: control.url })
  const { graph_id } = submitted.envelope.data as { graph_id: string }
  const recordOf = async (id: string) =>
    (await (await control.fetch(`/graphs/${graph_id}/tasks/${id}`)).json()) as TaskRecord
  const { waiting } = await until(
    () => recordOf('sure'),
    ({ waiting }) => waiting?.reason === 'approval',
  )
  expect(waiting?.detail).toContain('2. migrate the database')
  const answer = ['--who', 'ada', '--why', 'not on a Friday']
  expect((await runClient([verb, `${graph_id}/sure`, ...answer], { url: control.url })).exitCode).toBe(0)
  const { exitCode, envelope: watched } = await runClient(['watch', graph_id], { url: control.url })
  expect([exitCode, watched.data?.state]).toEqual([state === 'success' ? 0 : 1, state])
  expect((await recordOf(taken)).result).toMatchObject({ stdout })
  expect((await recordOf(notTaken)).status).toBe('skipped')
  expect((await recordOf('release')).status).toBe('success')
})

test.each([
  ['build-matrix.json', 'publish', 'the first one: build for linux 20\n\n'],
  ['map-reduce.json', 'total', '11 words in 2 files\n'],
])('%s runs a task for each element', async (name, id, stdout) => {
  await using control = await startControl()
  const { envelope } = await runClient(['run', join(GRAPHS, name)], { url: control.url })
  const { graph_id } = envelope.data as { graph_id: string }
  const record = (await (await control.fetch(`/graphs/${graph_id}/tasks/${id}`)).json()) as TaskRecord
  expect(record.result).toMatchObject({ stdout })
})

test('at-the-end.json tells what failed', async () => {
  await using control = await startControl()
  const { envelope } = await runClient(['run', join(GRAPHS, 'at-the-end.json')], { url: control.url })
  const { graph_id } = envelope.data as { graph_id: string }
  const told = (await (await control.fetch(`/graphs/${graph_id}/tasks/on_end%2F0`)).json()) as TaskRecord
  expect(told.result).toMatchObject({ stdout: expect.stringMatching(/^test failed: .*no\/such\/report/) })
})

test('gather.json hands a list of values to a task', async () => {
  await using control = await startControl()
  const { envelope } = await runClient(['run', join(GRAPHS, 'gather.json')], { url: control.url })
  const { graph_id } = envelope.data as { graph_id: string }
  const report = (await (await control.fetch(`/graphs/${graph_id}/tasks/report`)).json()) as TaskRecord
  expect(report.result).toEqual({ tool_name: 'echo', echo: { ports: [8080, 25] } })
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
