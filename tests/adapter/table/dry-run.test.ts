/** Goal: the table of a dry run says of each runtime task what its user should know before the graph runs. */
import { expect, test } from 'bun:test'
import { dryRunTable } from '../../../adapter/table/dry-run.ts'
import type { GraphDryRun, TaskPlan } from '../../../shared/contract/graph-dry-run.ts'

const look = { paint: (_style: unknown, text: string) => text, columns: Number.POSITIVE_INFINITY, nowMs: 0 }

const planOf = (degraded: boolean, fallback_reasons: string[], capability_warnings: string[]) =>
  ({ execution_plan: { degraded, fallback_reasons, capability_warnings } }) as unknown as TaskPlan

const NOTHING: GraphDryRun = { valid: true, errors: [], warnings: [], waves: [], critical_path: [], runtime: {} }

const lineOf = (plan: TaskPlan): string =>
  dryRunTable({ ...NOTHING, runtime: { a: plan } }, look)
    .at(-1)!
    .trim()

test.each([
  [planOf(false, [], []), 'as asked for'],
  [planOf(false, [], ['it has the network of the host']), 'as asked for, but it has the network of the host'],
  [planOf(true, ['no cgroup'], ['it can leave']), 'degraded: no cgroup; it can leave'],
  [{ error: 'refused' } as TaskPlan, 'refused'],
])('the plan %j', (plan, text) => {
  expect(lineOf(plan)).toMatch(new RegExp(`^a +${text}$`))
})

test('the time limits of each task, under the name of what the clock measures', () => {
  const time_limits = { both: { queue_timeout: 5_000, timeout: 120_000 }, runs: { timeout: 1_500 } }
  const lines = dryRunTable({ ...NOTHING, time_limits }, look).slice(-3)
  expect(lines.map((line) => line.trim().split(/ {2,}/))).toEqual([
    ['TASK', 'WAITS AT MOST', 'THEN RUNS AT MOST'],
    ['both', '5.00s', '2m0s'],
    ['runs', 'any time', '1.50s'],
  ])
})
