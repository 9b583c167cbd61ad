/**
 * Reviews the groups of a submitted graph: what a group cannot have, its members as a graph of their own, and whether an id is
 * that of a child. Pure.
 *
 * The other reviews get the members as tasks of the graph, under ids such as `<group>/<member>`. There they depend on each
 * other, and on all that their group depends on.
 */
import { GROUP_TYPE } from '../../shared/contract/fan-out.ts'
import { MAX_TASK_ID_BYTES } from '../../shared/contract/submission.ts'
import { inRanges, isYieldDue, type Steps } from '../../shared/process/steps.ts'
import { parentIdOf } from './child-ids.ts'
import { dependenciesStartOf, edgesInSteps } from './edges.ts'
import { isGroup, memberId } from './group-rule.ts'
import type { Report } from './report.ts'
import { type CheckedTasks, checkTasks, type ValidTask } from './validate.ts'

/** What a group has no use for, because its members execute in its place. */
const OF_MEMBERS = [
  ...['tool_name', 'params', 'input', 'retry', 'retry_on', 'backoff', 'cache', 'timeout', 'queue_timeout', 'secrets'],
] as const satisfies readonly (keyof ValidTask)[]

/** What only the group itself has. */
const OF_GROUPS = ['for_each', 'max_parallel', 'fail_fast'] as const

/** Bytes that the index of an element, the brackets and the slash add to the ids of a child. */
const MOST_INDEX_BYTES = '[99999]/'.length

/** The tasks of a graph, and behind them the members of its groups. */
export interface ReviewedMembers extends CheckedTasks {
  /** The group of each member. */
  readonly groups: ReadonlyMap<ValidTask, ValidTask>
  /** The id among `tasks` of the task that `task` calls `id`. */
  nameFor(task: ValidTask, id: string): string
  /** What to write instead of `id`, which a child of a group may have; empty for any other id. */
  hintFor(id: string): string
}

/** A graph that has no groups. */
export const withoutGroups = (graph: CheckedTasks): ReviewedMembers => ({
  ...graph,
  groups: new Map(),
  nameFor: (_, id) => id,
  hintFor: () => '',
})

/** Reports faults of groups in the order of the tasks, then ids that are those of children. */
export function* reviewGroups(
  { tasks, edges }: CheckedTasks,
  registeredTypes: ReadonlySet<string>,
  report: Report,
): Steps<ReviewedMembers> {
  const found: ValidTask[] = []
  yield* inRanges(tasks.length, (from, to) => {
    for (let i = from; i < to; i++) {
      const task = tasks[i]!
      if (isGroup(task)) found.push(task)
      else if (task.type === GROUP_TYPE)
        report(`task ${task.id}: type ${GROUP_TYPE} means nothing without tasks`, task.id)
    }
  })
  if (found.length === 0) return withoutGroups({ tasks, edges })
  const groups = new Map<ValidTask, ValidTask>()
  const all = [...tasks]
  const members = new Map<string, ReadonlySet<string>>()
  for (const group of found) {
    const { id, depends_on } = group
    members.set(id, new Set(group.tasks!.map((member) => member.id ?? '')))
    for (const member of yield* soundMembers(group, registeredTypes, report)) {
      const siblings = (member.depends_on ?? []).map((other) => memberId(id, undefined, other))
      const task = {
        ...member,
        id: memberId(id, undefined, member.id),
        depends_on: [...siblings, ...(depends_on ?? [])],
      }
      groups.set(task, group)
      all.push(task)
      if (isYieldDue(all.length)) yield
    }
  }
  const byId = new Map(found.map((group) => [group.id, group]))
  const placeOf = (id: string) => memberPlace(id, byId, members)
  yield* inRanges(tasks.length, (from, to) => {
    for (const { id } of tasks.slice(from, to)) {
      const place = placeOf(id)
      if (place !== undefined) report(`task id ${id} is reserved for a task of the group ${place.group.id}`, id)
    }
  })
  const nameFor = (task: ValidTask, id: string): string => {
    const group = groups.get(task)
    return group !== undefined && members.get(group.id)!.has(id) ? memberId(group.id, undefined, id) : id
  }
  const hintFor = (id: string): string => {
    const { group, index = '*', local } = placeOf(id) ?? {}
    if (group === undefined) return ''
    const path = `/result/${group.for_each == null ? '' : `${index}/`}${local}`
    return ` (it is in the group ${group.id}: use {"$from": ${JSON.stringify(group.id)}, "path": ${JSON.stringify(path)}})`
  }
  const whole = { tasks: all, groups, nameFor, hintFor }
  if (edges === undefined) return { ...whole, edges }
  const positions = new Map<string, number>(all.map(({ id }, i) => [id, i]))
  return { ...whole, edges: yield* edgesInSteps(all, dependenciesStartOf(all), (id) => positions.get(id)!) }
}

/** The members of a group, if they pass the checks of a graph. */
function* soundMembers(group: ValidTask, types: ReadonlySet<string>, report: Report): Steps<readonly ValidTask[]> {
  const { id } = group
  const members = group.tasks!
  let isSound = true
  const fault: Report = (text) => {
    isSound = false
    report(text, id)
  }
  // A record, which may be submitted again, says that nothing is tried again.
  const own = OF_MEMBERS.filter((name) => group[name] != null && !(name === 'retry' && group[name] === 0))
  const type = group.type === GROUP_TYPE ? [] : ['type']
  const useless = [...type, ...own]
  if (useless.length > 0) report(`task ${id}: a group has no ${useless.join(', ')}: give them to its tasks`, id)
  if (members.length === 0) fault(`task ${id}: tasks: expected at least one task`)
  for (const member of members) {
    const local = member.id ?? ''
    if (/[/[\]]/.test(local)) fault(`task ${id}: the id ${local} of a task in a group must not have "/", "[" or "]"`)
    const inner = member as ValidTask
    if (isGroup(inner)) fault(`task ${id}/${local}: a group in a group is not possible: make it a task of the graph`)
    for (const name of OF_GROUPS)
      if (inner[name] != null) fault(`task ${id}/${local}: ${name} is not possible in a group: give it to the group`)
    if (inner.dynamic != null)
      fault(`task ${id}/${local}: dynamic is not possible in a group: make it a task of the graph`)
    if (Buffer.byteLength(id) + Buffer.byteLength(local) + MOST_INDEX_BYTES > MAX_TASK_ID_BYTES)
      fault(
        `task ${id}: the ids of its children have more than ${MAX_TASK_ID_BYTES} bytes: give the task ${local} a shorter id`,
      )
  }
  if (!isSound) return []
  const graph = { arePlain: false, tasks: [...members], incomplete: new Set<never>(), submitted: members.length }
  const checked = yield* checkTasks(graph, types, (text) => fault(`task ${id}: tasks: ${text}`))
  return isSound ? checked.tasks : []
}

/** The member that a child with this id would be. With `for_each`, an id without an index stands for that of each element. */
function memberPlace(
  id: string,
  groups: ReadonlyMap<string, ValidTask>,
  members: ReadonlyMap<string, ReadonlySet<string>>,
): { readonly group: ValidTask; readonly index: string | undefined; readonly local: string } | undefined {
  const slash = id.lastIndexOf('/')
  if (slash < 0) return undefined
  const start = id.slice(0, slash)
  const local = id.slice(slash + 1)
  const ofElement = parentIdOf(start)
  const list = ofElement === undefined ? undefined : groups.get(ofElement)
  const isElement = list?.for_each != null
  const group = isElement ? list : groups.get(start)
  if (group === undefined || !members.get(group.id)!.has(local)) return undefined
  return { group, index: isElement ? start.slice(group.id.length + 1, -1) : undefined, local }
}
