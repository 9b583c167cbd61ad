/**
 * Goal: a task is spare exactly if its graph can succeed although the task fails whenever it is executed.
 * Method: random graphs with rules, executed in each possible way by the rules of `conditions.ts`; a table of fields; a long
 * chain.
 */
import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { decide, STANDING_BITS, type Standing, standingOf } from '../../../control/rules/conditions.ts'
import { dependenciesStartOf, edgesAtOnce } from '../../../control/rules/edges.ts'
import { withoutGroups } from '../../../control/rules/group-review.ts'
import { spareTasks } from '../../../control/rules/spare-tasks.ts'
import type { ValidTask } from '../../../control/rules/validate.ts'
import type { RunIf } from '../../../shared/contract/run-if.ts'
import { runSync } from '../../../shared/process/steps.ts'

type Fields = Partial<Omit<ValidTask, 'id' | 'type'>>

const WHEN = { $from: 't0', equals: 1 }

function spareIn(fields: readonly Fields[], params?: Record<string, unknown>): string[] {
  const tasks = fields.map((more, i) => ({ id: `t${i}`, type: 'noop', ...more }) as ValidTask)
  const positions = new Map(tasks.map(({ id }, position) => [id, position]))
  const edges = edgesAtOnce(tasks, dependenciesStartOf(tasks), (id) => positions.get(id))
  return [...runSync(spareTasks(withoutGroups({ tasks, edges }), params))]
}

/** Whether the graph succeeds if `doomed` fails, the tasks of `failing` do, and the conditions of `unmet` are not met. */
function succeeds(tasks: readonly Fields[], doomed: number, failing: number, unmet: number): boolean {
  const standings: Standing[] = []
  tasks.forEach(({ depends_on, run_if, when, continue_on_error }, i) => {
    const bits = (depends_on ?? []).reduce((sum, id) => sum | STANDING_BITS[standings[Number(id.slice(1))]!], 0)
    const decision = decide((run_if ?? 'success') as RunIf, bits, true)
    const isUnmet = when != null && ((unmet >> i) & 1) === 1
    const hasFailed = i === doomed || ((failing >> i) & 1) === 1
    const isSkipped = decision !== 'run' || isUnmet
    standings.push(
      standingOf({
        status: isSkipped ? 'skipped' : hasFailed ? 'failed' : 'success',
        neverRuns: false,
        continuesOnError: continue_on_error === true,
        rare: { skip_standing: decision === 'run' || decision === 'wait' ? 'neutral' : decision },
      })!,
    )
  })
  return standings.every((standing) => standing === 'good' || standing === 'neutral')
}

const anyTasks = fc
  .array(
    fc.record({
      edges: fc.nat(7),
      run_if: fc.constantFrom(undefined, undefined, 'success', 'failed', 'always'),
      when: fc.constantFrom(undefined, undefined, WHEN),
      continue_on_error: fc.constantFrom(undefined, undefined, true, false),
    }),
    { minLength: 1, maxLength: 4 },
  )
  .map((tasks) =>
    tasks.map(({ edges, ...rules }, i) => {
      const depends_on = tasks.slice(0, i).flatMap((_, d) => ((edges >> d) & 1 ? [`t${d}`] : []))
      // Only a task that depends on another can have these rules.
      return depends_on.length === 0 ? { continue_on_error: rules.continue_on_error } : { ...rules, depends_on }
    }),
  )

test('the graph can succeed with a failed spare task, and not with another', () => {
  let found = 0
  fc.assert(
    fc.property(anyTasks, (tasks) => {
      const spare = spareIn(tasks as Fields[])
      const ways = Array.from({ length: 2 ** tasks.length }, (_, bits) => bits)
      const expected = tasks.flatMap((_, doomed) =>
        ways.some((failing) => ways.some((unmet) => succeeds(tasks as Fields[], doomed, failing, unmet)))
          ? [`t${doomed}`]
          : [],
      )
      expect(spare.sort()).toEqual(expected)
      found += spare.length
    }),
    { numRuns: 1_000 },
  )
  expect(found).toBeGreaterThan(100)
})

test.each<[string, Fields, boolean]>([
  ['no rule', {}, false],
  ['an earlier outcome to take over', { cache: { key: 'k' } }, true],
  ['a list with elements', { for_each: [1] }, false],
  ['an empty list', { for_each: [] }, true],
  ['a list of a parameter', { for_each: { $param: 'some' } }, false],
  ['an empty list of a parameter', { for_each: { $param: 'none' } }, true],
  ['a list of another task', { for_each: { $from: 't0' }, depends_on: ['t0'] }, true],
  ['further attempts', { retry: 3 }, false],
])('%s', (_, fields, isSpare) => {
  expect(spareIn([{}, fields], { some: [1], none: [] })).toEqual(isSpare ? ['t1'] : [])
})

test('a chain behind a condition is spare', () => {
  const length = 100_000
  const chain = Array.from(
    { length },
    (_, i): Fields => ({
      ...(i > 0 && { depends_on: [`t${i - 1}`] }),
      ...(i === 1 && { when: WHEN }),
    }),
  )
  expect(spareIn(chain)).toHaveLength(length - 1)
})
