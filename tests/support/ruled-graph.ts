/** Random graphs with rules, and how their tasks end. */
import fc from 'fast-check'
import { ON_END_STATES, type OnEndState } from '../../shared/contract/on-end.ts'
import type { OnEndEntry, TaskInput } from '../../shared/contract/submission.ts'
import type { ModelTask } from '../model/graph-model.ts'
import { randomGraph } from './random-graph.ts'
import type { Script } from './scripted-executor.ts'

export type RuledTask = ModelTask & TaskInput & { id: string; depends_on: string[]; input: Script; ends?: ApprovalEnd }

/** How an approval ends. */
export type ApprovalEnd = 'approved' | 'rejected' | 'expires'

const randomRule = fc.record(
  {
    run_if: fc.oneof(
      { weight: 2, arbitrary: fc.constant('success' as const) },
      { weight: 3, arbitrary: fc.constantFrom('failed' as const, 'always' as const) },
    ),
    continue_on_error: fc.boolean(),
  },
  { requiredKeys: [] },
)

/** For most tasks undefined: they are no approvals. */
const randomEnd = fc.option(fc.constantFrom<ApprovalEnd>('approved', 'approved', 'rejected', 'expires'), {
  nil: undefined,
  freq: 2,
})

const randomScript = fc.record({ turns: fc.nat(3), outcomes: fc.constantFrom<Script['outcomes']>([], [], ['fail']) })

/** The test of a condition on the status of a dependency. */
const randomTest = fc.option(
  fc.oneof(
    fc.constantFrom('success', 'failed', 'skipped').map((equals) => ({ equals })),
    fc.constantFrom('success', 'failed', 'cancelled').map((not) => ({ not })),
    fc.subarray(['success', 'failed', 'skipped', 'cancelled']).map((all) => ({ in: all })),
  ),
  { nil: undefined, freq: 2 },
)

/** The elements of a task that runs for each of them: how the attempts for it end. */
const randomFanOut = fc.option(
  fc.record(
    {
      for_each: fc.array(fc.record({ outcomes: fc.constantFrom<string[]>([], [], ['fail']) }), { maxLength: 5 }),
      max_parallel: fc.integer({ min: 1, max: 3 }),
      fail_fast: fc.boolean(),
    },
    { requiredKeys: ['for_each'] },
  ),
  { nil: undefined, freq: 2 },
)

/** The members of a group: for most tasks undefined. */
const randomMembers = fc.option(
  fc
    .tuple(
      randomGraph({ type: 'test', maxTasks: 5 }),
      fc.array(fc.tuple(randomScript, randomRule, fc.nat(), randomTest), { minLength: 5, maxLength: 5 }),
    )
    .map(([tasks, more]) =>
      tasks.map((each, i) => {
        const [input, rule, pick, test] = more[i]!
        const { length } = each.depends_on
        const nameOf = (id: string) => `m${tasks.findIndex((other) => other.id === id)}` // most ids are not for members
        const depends_on = each.depends_on.map(nameOf)
        const when = { $from: depends_on[pick % length]!, path: '/status', ...test }
        const condition = length > 0 && test !== undefined && { when }
        return { ...each, id: `m${i}`, depends_on, ...rule, input, ...condition } as RuledTask
      }),
    ),
  { nil: undefined, freq: 2 },
)

/** `task` as a group of `members`. With a list of its own, the element says how the first member ends. */
function groupOf({ input: _, type: __, ...task }: RuledTask, members: readonly RuledTask[]): RuledTask {
  const [first, ...others] = members
  const script = { ...first!.input, outcomes: { $item: '/outcomes' } }
  const tasks = Array.isArray(task.for_each) ? [{ ...first!, input: script }, ...others] : members
  return { ...task, tasks } as unknown as RuledTask
}

type FanOut = Pick<RuledTask, 'max_parallel' | 'fail_fast'> & { readonly for_each: readonly object[] }

/** `task`, for each element of a list: of its own, or of the dependencies of `source`, which is its first one. */
function forEach(task: RuledTask, fanOut: FanOut, source: RuledTask | undefined): RuledTask {
  const others = source?.depends_on ?? []
  if (fanOut.for_each.length % 2 === 0 && others.length > 0) {
    const list = { for_each: { $from: source!.id, path: '/depends_on' }, elements: others.length }
    return { ...task, ...fanOut, ...list } as RuledTask
  }
  return { ...task, ...fanOut, input: { ...task.input, outcomes: { $item: '/outcomes' } } } as unknown as RuledTask
}

/** Graphs with rules, scripts, approvals, lists and groups. */
export const ruledGraph = (maxTasks: number) =>
  fc
    .tuple(
      randomGraph({ type: 'test', maxTasks }),
      fc.array(fc.tuple(randomScript, randomRule, fc.nat(), randomTest, randomEnd, randomFanOut, randomMembers), {
        minLength: maxTasks,
        maxLength: maxTasks,
      }),
    )
    .map(([tasks, more]) =>
      tasks.map((each, i): RuledTask => {
        const [input, rule, pick, test, ends, fanOut, members] = more[i]!
        const { length } = each.depends_on
        const when = { $from: each.depends_on[pick % length]!, path: '/status', ...test }
        const asks = ends && { type: 'approval', input: {}, ends, retry: 1, ...(ends === 'expires' && { timeout: 1 }) }
        const task = {
          ...each,
          ...rule,
          input,
          ...(length > 0 && test !== undefined && { when }),
          ...asks,
        } as RuledTask
        if (ends !== undefined) return task
        const source = tasks.find(({ id }) => id === each.depends_on[0]) as RuledTask | undefined
        const fanned = fanOut === undefined ? task : forEach(task, fanOut as FanOut, source)
        return members === undefined ? fanned : groupOf(fanned, members)
      }),
    )

/** The states in which the entries of `on_end` run. */
export const randomEndings = fc.array(fc.constantFrom(...ON_END_STATES), { maxLength: 3 })

/** The field `on_end`, and its tasks for the model. Every second one fails. */
export function endingsOf(states: readonly OnEndState[]) {
  const scripts = states.map((_, i): Script => ({ turns: i, outcomes: i % 2 === 1 ? ['fail'] : [] }))
  const on_end = states.map((when, i): OnEndEntry => ({ when, type: 'test', params: scripts[i]! }))
  const tasks = states.map((at_end, i) => ({
    ...{ id: `on_end/${i}`, type: 'test', depends_on: [], input: scripts[i]!, at_end, continue_on_error: true },
  }))
  return { on_end, tasks: tasks as RuledTask[] }
}

/** How each task, and each child of one, ends if it runs. */
export function outcomesOf(tasks: readonly RuledTask[]): (id: string) => 'success' | 'failed' {
  const byId = new Map(tasks.map((each) => [each.id, each]))
  return (id) => (isLost(byId, id) ? 'failed' : 'success')
}

const fails = ({ outcomes }: Script): boolean => outcomes!.length > 0

/** Whether a task, or a child of one, fails if it runs. */
function isLost(byId: ReadonlyMap<string, RuledTask>, id: string): boolean {
  const [, start, local] = /^(.*)\/(m\d+)$/s.exec(id) ?? []
  if (local !== undefined) return isMemberLost(byId, start!, local)
  const task = byId.get(id) ?? byId.get(id.slice(0, id.lastIndexOf('[')))!
  const { ends, input, for_each, elements } = task
  if (ends !== undefined) return ends !== 'approved'
  if (!Array.isArray(for_each)) return fails(input) && elements !== 0
  const scripts = for_each as readonly Script[]
  return byId.has(id) ? scripts.some(fails) : fails(scripts[Number(/\[(\d+)\]$/.exec(id)![1])]!)
}

/** Whether a member fails if it runs for the element at `start`. */
function isMemberLost(byId: ReadonlyMap<string, RuledTask>, start: string, local: string): boolean {
  const { tasks, for_each } = byId.get(start) ?? byId.get(start.slice(0, start.lastIndexOf('[')))!
  const member = (tasks as readonly RuledTask[]).find(({ id }) => id === local)!
  if (Array.isArray(member.input.outcomes)) return fails(member.input)
  return fails((for_each as readonly Script[])[Number(/\[(\d+)\]$/.exec(start)![1])]!)
}
