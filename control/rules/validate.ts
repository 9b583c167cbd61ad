/**
 * Checks 2 to 7 of POST /tasks, in the order of the specification. Pure.
 *
 * Each check covers the whole graph before the next one begins, and reports faults in the order of the list. The time
 * is linear in tasks and dependencies. The checks work in ranges and without recursion.
 */
import { APPROVAL_TYPE } from '../../shared/contract/approval.ts'
import { GROUP_TYPE } from '../../shared/contract/fan-out.ts'
import { WAIT_TYPE } from '../../shared/contract/signal.ts'
import { MAX_RETRY, MAX_TASK_ID_BYTES, type TaskInput } from '../../shared/contract/submission.ts'
import { inRanges, type Steps } from '../../shared/process/steps.ts'
import { didYouMean } from '../../shared/request/unknown-names.ts'
import { nearestName, type Synonyms } from '../../shared/text/nearest-name.ts'
import type { ShapedTasks } from './decode.ts'
import {
  type Dependent,
  dependenciesStartOf,
  type Edges,
  edgesInSteps,
  fillDependenciesStart,
  noEdges,
} from './edges.ts'
import { LEGACY_OS_TYPES, normalizeTool } from './normalize.ts'
import { isNotBefore } from './not-before.ts'
import { findCycle } from './order.ts'
import { type Report, refuse } from './report.ts'

/** Characters of an id that is too long in its error text. */
const SHOWN_ID = 40

/** Maximum ids of a cycle in its error text. */
const MAX_CYCLE_IDS = 8

/** Maximum reported cycles. Each takes a pass over the graph. */
const MAX_CYCLES = 10

/** A graph that passed all checks: the tasks have ids and registered types, and `edges` has no cycle. */
export interface ValidGraph {
  readonly tasks: readonly ValidTask[]
  readonly edges: Edges
}

export type ValidTask = TaskInput & { readonly id: string; readonly type: string }

/** The valid graph. Throws 400 with the text of the failed check. */
export function* validateGraph(tasks: TaskInput[], registeredTypes: ReadonlySet<string>): Steps<ValidGraph> {
  const shaped = { arePlain: false, tasks, incomplete: new Set<TaskInput>(), submitted: tasks.length }
  const { edges } = yield* checkTasks(shaped, registeredTypes, refuse)
  return { tasks: tasks as ValidTask[], edges: edges! }
}

/** The part of a graph that passed the checks. */
export interface CheckedTasks {
  /** The tasks that have an id. Tasks with a fault may lack a type. */
  readonly tasks: readonly ValidTask[]
  /** Undefined if a check of ids or dependencies has found a fault. */
  readonly edges: Edges | undefined
}

/**
 * Makes checks 2 to 7 of a graph, or of the part of it that passed check 1.
 *
 * The first pass combines the checks that look at one task at a time. If it finds a fault, each of these checks gets a
 * pass of its own, in order. A pass over 100,000 tasks takes 2 to 3 ms.
 */
export function* checkTasks(
  { tasks, incomplete, submitted }: ShapedTasks,
  registeredTypes: ReadonlySet<string>,
  report: Report,
): Steps<CheckedTasks> {
  if (submitted === 0) report('task graph is empty')
  const { length } = tasks
  const starts = new Uint32Array(length + 1)
  let isSound = true
  yield* inRanges(length, (from, to) => {
    fillDependenciesStart(starts, tasks, from, to)
    if (isSound) isSound = areSound(tasks, registeredTypes, from, to)
  })
  if (!isSound) yield* inRanges(length, (from, to) => checkFields(tasks, incomplete, report, from, to))
  const named = isSound ? (tasks as ValidTask[]) : tasks.filter(hasId)
  const namedStarts = named.length === length ? starts : dependenciesStartOf(named)
  const ids = yield* checkIds(named, report)
  if (isSound && starts[length] === 0 && ids.repeated.size === 0) return { tasks: named, edges: noEdges(starts) }
  const edges = yield* checkEdges(named, namedStarts, ids, report)
  if (!isSound) yield* inRanges(named.length, (from, to) => checkTypes(named, registeredTypes, report, from, to))
  return { tasks: named, edges: named.length === submitted && !lacksDependencies(incomplete) ? edges : undefined }
}

/** Whether tasks `from` to `to` pass checks 3 and 7. */
function areSound(
  tasks: readonly TaskInput[],
  registeredTypes: ReadonlySet<string>,
  from: number,
  to: number,
): boolean {
  let known: string | undefined
  for (let i = from; i < to; i++) {
    const task = tasks[i]!
    if (!hasFields(task)) return false
    // Most tasks have the type of the task before.
    if (task.type !== known && !isKnownType(task.type, registeredTypes)) return false
    known = task.type
  }
  return true
}

function checkFields(
  tasks: readonly TaskInput[],
  incomplete: ReadonlySet<TaskInput>,
  report: Report,
  from: number,
  to: number,
): void {
  for (let i = from; i < to; i++) {
    const task = tasks[i]!
    if (!hasFields(task)) reportFields(task, incomplete.has(task), report)
  }
}

function reportFields(task: TaskInput, isIncomplete: boolean, report: Report): void {
  const { id, type, retry, cache, not_before } = task
  if (!id) {
    report('task id is required')
    return
  }
  // The id has no UTF-8 form, so it could not be part of a path.
  if (!id.isWellFormed()) report(`task ${id}: id has half of a character (a lone surrogate)`, id)
  const bytes = Buffer.byteLength(id)
  if (bytes > MAX_TASK_ID_BYTES)
    report(`task ${id.slice(0, SHOWN_ID)}...: id has ${bytes} bytes, at most ${MAX_TASK_ID_BYTES} are allowed`, id)
  if (!type && !isIncomplete) report(`task ${id}: type is required`, id)
  if (!isCount(retry)) report(`task ${id}: retry must be a non-negative integer`, id)
  else if (!isRetry(retry)) report(`task ${id}: retry must be at most ${MAX_RETRY}`, id)
  if (!isNotBefore(not_before)) report(`task ${id}: not_before must be a time that exists, not ${not_before}`, id)
  if (!mayCache(type, cache)) {
    const why = type === APPROVAL_TYPE ? 'approvals: somebody has to give each of them' : 'waits: each has its own end'
    report(`task ${id}: cache is not for ${why}`, id)
  }
  const other = besideDynamic(task)
  if (other !== undefined) report(`task ${id}: dynamic and ${other} exclude each other`, id)
}

/** A character has at most three bytes, or two of them have four. */
const isShort = (id: string): boolean =>
  id.length * 3 <= MAX_TASK_ID_BYTES || Buffer.byteLength(id) <= MAX_TASK_ID_BYTES

const isCount = (retry: TaskInput['retry']): boolean => retry == null || (Number.isSafeInteger(retry) && retry >= 0)

const isRetry = (retry: TaskInput['retry']): boolean => isCount(retry) && (retry ?? 0) <= MAX_RETRY

const mayCache = (type: TaskInput['type'], cache: TaskInput['cache']): boolean =>
  cache == null || (type !== APPROVAL_TYPE && type !== WAIT_TYPE)

/** What excludes `dynamic`: children, a result that others have given, and one of an earlier graph. */
function besideDynamic({ dynamic, type, ...task }: TaskInput): string | undefined {
  if (dynamic !== true) return undefined
  if (type === APPROVAL_TYPE || type === WAIT_TYPE) return `the type ${type}`
  return (['for_each', 'tasks', 'cache'] as const).find((name) => task[name] != null)
}

const hasId = (task: TaskInput): task is ValidTask => !!task.id

/** Whether a task of the right shape has all required fields. */
export function hasFields(task: TaskInput): task is ValidTask {
  const { id, type, retry, cache, not_before } = task
  return (
    !!id &&
    id.isWellFormed() &&
    isShort(id) &&
    !!type &&
    isRetry(retry) &&
    mayCache(type, cache) &&
    besideDynamic(task) === undefined &&
    isNotBefore(not_before)
  )
}

interface Ids {
  readonly positions: ReadonlyMap<string, number>
  readonly repeated: ReadonlySet<string>
}

/** Check 4: unique ids. */
function* checkIds(tasks: readonly ValidTask[], report: Report): Steps<Ids> {
  const positions = new Map<string, number>()
  const repeated = new Set<string>()
  let repeats = 0
  yield* inRanges(tasks.length, (from, to) => {
    for (let i = from; i < to; i++) {
      const { id } = tasks[i]!
      if (positions.set(id, i).size > i - repeats) continue
      repeats++
      if (!repeated.has(id)) report(`duplicate task id: ${id}`, id)
      repeated.add(id)
    }
  })
  return { positions, repeated }
}

/** Checks 5 and 6: known dependencies, no cycle. Returns the edges; undefined if there was a fault. */
function* checkEdges(
  tasks: readonly ValidTask[],
  starts: Uint32Array,
  { positions, repeated }: Ids,
  report: Report,
): Steps<Edges | undefined> {
  let isSound = repeated.size === 0
  const edges = yield* edgesInSteps(tasks, starts, (dependency, of) => {
    const position = positions.get(dependency)
    if (position !== undefined && position !== of) return position
    isSound = false
    const { id } = tasks[of]!
    if (position === undefined) report(`task ${id} depends on unknown task ${dependency}`, id)
    else report(`task ${id} cannot depend on itself`, id)
    return of
  })
  if (isSound && (yield* findCycle(edges)) === null) return edges
  yield* reportCycles(tasks, yield* soundDependencies(tasks, { positions, repeated }), positions, report)
  return undefined
}

/** The dependencies of `tasks` that are no faults themselves. Leaves out ids that several tasks have. */
function* soundDependencies(tasks: readonly ValidTask[], { positions, repeated }: Ids): Steps<Dependent[]> {
  const sound: Dependent[] = []
  yield* inRanges(tasks.length, (from, to) => {
    for (let i = from; i < to; i++) {
      const { id, depends_on } = tasks[i]!
      const isSound = (dependency: string) =>
        dependency !== id && positions.has(dependency) && !repeated.has(dependency)
      sound.push({ depends_on: repeated.has(id) ? [] : depends_on?.filter(isSound) })
    }
  })
  return sound
}

/** Check 6: no cycle. Removes the dependencies of each found cycle before the search for the next one. */
function* reportCycles(
  tasks: readonly ValidTask[],
  dependents: Dependent[],
  positions: ReadonlyMap<string, number>,
  report: Report,
): Steps<void> {
  for (let count = 0; count < MAX_CYCLES; count++) {
    const edges = yield* edgesInSteps(dependents, dependenciesStartOf(dependents), (id) => positions.get(id)!)
    const cycle = yield* findCycle(edges)
    if (cycle === null) return
    report(`cycle detected in task graph: ${describeCycle(cycle.map((i) => tasks[i]!.id))}`)
    cycle.forEach((position, i) => {
      const next = tasks[cycle[(i + 1) % cycle.length]!]!.id
      dependents[position] = { depends_on: dependents[position]!.depends_on?.filter((id) => id !== next) }
    })
  }
}

/** Whether a task of `tasks` had invalid dependencies. */
const lacksDependencies = (tasks: ReadonlySet<TaskInput>): boolean =>
  [...tasks].some(({ depends_on }) => depends_on === undefined)

function checkTypes(
  tasks: readonly ValidTask[],
  registered: ReadonlySet<string>,
  report: Report,
  from: number,
  to: number,
): void {
  for (let i = from; i < to; i++) {
    const { id, type } = tasks[i]!
    if (type && !isKnownType(type, registered)) report(unknownTypeText(type, registered), id)
  }
}

export function unknownTypeText(type: string, registeredTypes: ReadonlySet<string>): string {
  const available = [...registeredTypes].sort().join(', ')
  const shortForms = registeredTypes.has('os') ? [...LEGACY_OS_TYPES].sort() : []
  const orShort = shortForms.length === 0 ? '' : ` or a short form: ${shortForms.join(', ')}`
  const dotted = registeredTypes.has('runtime') ? ['runtime.command', 'runtime.script'] : []
  const nearest = nearestName(type, [...shortForms, ...registeredTypes, ...dotted], TYPE_SYNONYMS)
  return `unknown task type: ${type} (available: ${available})${orShort}${didYouMean(nearest)}`
}

/** Names of task types in other systems. */
const TYPE_SYNONYMS: Synonyms = {
  bash: 'shell',
  cli: 'cli-skills',
  cmd: 'shell',
  command: 'runtime.command',
  curl: 'http',
  delay: 'sleep',
  exec: 'shell',
  fetch: 'http',
  process: 'runtime.command',
  request: 'http',
  script: 'runtime.script',
  sh: 'shell',
  skill: 'cli-skills',
  wait: 'sleep',
}

export const isKnownType = (type: string, registeredTypes: ReadonlySet<string>): boolean =>
  registeredTypes.has(type) || type === GROUP_TYPE || registeredTypes.has(normalizeTool(type, undefined).type)

function describeCycle(ids: readonly string[]): string {
  const named = ids.length <= MAX_CYCLE_IDS ? [...ids, ids[0]] : [...ids.slice(0, MAX_CYCLE_IDS), '...']
  return named.join(' -> ')
}
