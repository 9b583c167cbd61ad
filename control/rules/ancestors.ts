/**
 * Checks that a task refers only to its ancestors: the tasks that it depends on, directly or through others. Pure.
 *
 * Most references name a direct dependency. One pass over the dependencies finds these. For a task with many other
 * references, a search collects its ancestors once.
 *
 * The remaining references are checked in passes, for 32 referenced tasks at a time. A pass gives each of the 32 tasks
 * a bit. It visits tasks in topological order, and each task collects the bits of its dependencies. A pass begins at
 * the first of the 32 tasks and ends at the last task that refers to one of them. So references between neighbours of a
 * long chain are cheap. So are 100,000 references to one task, or from one task.
 */
import { inRanges, isYieldDue, type Steps } from '../../shared/process/steps.ts'
import type { Edges } from './edges.ts'
import { dependencyOrder } from './order.ts'
import type { Report } from './report.ts'

/** A reference from one task to another task of its graph. */
export interface TaskReference {
  /** Position of the referring task. */
  readonly position: number
  /** The id of the referenced task. */
  readonly id: string
}

/** Referenced tasks of one pass. Each needs a bit of a 32-bit integer. */
const TASKS_PER_PASS = 32

/**
 * Maximum dependencies that all passes together follow. That takes less than a second, in steps. Only a graph with tens
 * of thousands of references to as many distant ancestors needs more.
 */
export const MAX_FOLLOWED_DEPENDENCIES = 200_000_000

export interface ReferenceCheckOptions {
  readonly maxFollowed?: number
  /** Follows the error about a task. */
  readonly hint?: (id: string) => string
  /** Whether the task `id` runs after `other` without depending on it. */
  readonly runsAfter?: (id: string, other: string) => boolean
}

type Tasks = readonly { readonly id: string }[]

/**
 * Reports unknown ids and tasks that are not ancestors, in the order of `references`. The references of each task are
 * adjacent. If `edges` is undefined, because the graph has invalid dependencies, only the ids are checked.
 */
export function* checkReferences(
  { tasks, edges }: { readonly tasks: Tasks; readonly edges: Edges | undefined },
  references: readonly TaskReference[],
  report: Report,
  { maxFollowed = MAX_FOLLOWED_DEPENDENCIES, hint = () => '', runsAfter = () => false }: ReferenceCheckOptions = {},
): Steps<void> {
  if (references.length === 0) return
  const named = yield* positionsOf(tasks, references)
  const isSound = edges && (yield* directDependencies(edges, references, named))
  const isChecked = edges && isSound && (yield* farAncestors(edges, { references, named, isSound, maxFollowed }))
  if (isChecked === false) report(TOO_MANY_FAR_REFERENCES)
  yield* inRanges(references.length, (from, to) => {
    for (let i = from; i < to; i++) {
      const { position, id: other } = references[i]!
      const { id } = tasks[position]!
      if (named[i] === UNKNOWN) report(`task ${id} references unknown task ${other}${hint(other)}`, id)
      else if (isChecked && !isSound![i] && !runsAfter(id, other))
        report(`task ${id} references ${other} but does not depend on it${hint(other)}`, id)
    }
  })
}

const TOO_MANY_FAR_REFERENCES =
  'the graph has too many references to tasks that are no direct dependencies: let tasks depend directly on those that they reference'

const UNKNOWN = -1

/** For each reference the position of the referenced task, or `UNKNOWN`. */
function* positionsOf(tasks: Tasks, references: readonly TaskReference[]): Steps<Int32Array> {
  const positions = new Map<string, number>()
  yield* inRanges(tasks.length, (from, to) => {
    for (let i = from; i < to; i++) positions.set(tasks[i]!.id, i)
  })
  const named = new Int32Array(references.length)
  yield* inRanges(references.length, (from, to) => {
    for (let i = from; i < to; i++) named[i] = positions.get(references[i]!.id) ?? UNKNOWN
  })
  return named
}

/** For each reference 1 if it names a direct dependency. */
function* directDependencies(
  { dependenciesStart, dependencies }: Edges,
  references: readonly TaskReference[],
  named: Int32Array,
): Steps<Uint8Array> {
  const isDirect = new Uint8Array(references.length)
  /** For each task the last task that was found to depend on it. */
  const dependent = new Int32Array(dependenciesStart.length - 1).fill(-1)
  let steps = 0
  let current = -1
  for (let i = 0; i < references.length; i++) {
    const { position } = references[i]!
    if (position !== current) {
      for (let d = dependenciesStart[position]!; d < dependenciesStart[position + 1]!; d++) {
        dependent[dependencies[d]!] = position
        if (isYieldDue(steps++)) yield
      }
      current = position
    }
    const other = named[i]!
    if (other !== UNKNOWN && dependent[other] === position) isDirect[i] = 1
    if (isYieldDue(steps++)) yield
  }
  return isDirect
}

interface FarReferences {
  readonly references: readonly TaskReference[]
  readonly named: Int32Array
  /** Set for each reference that names an ancestor. */
  readonly isSound: Uint8Array
  readonly maxFollowed: number
}

/** Marks the references that name an ancestor. False if that would take more than `maxFollowed` steps. */
function* farAncestors(edges: Edges, far: FarReferences): Steps<boolean> {
  const { references, named, isSound, maxFollowed } = far
  const open: number[] = []
  yield* inRanges(references.length, (from, to) => {
    for (let i = from; i < to; i++) if (!isSound[i] && named[i] !== UNKNOWN) open.push(i)
  })
  if (open.length === 0) return true
  const rest: number[] = []
  let followed = 0
  for (let from = 0, to = 0; from < open.length; from = to) {
    const { position } = references[open[from]!]!
    while (to < open.length && references[open[to]!]!.position === position) to++
    if (to - from <= TASKS_PER_PASS) rest.push(...open.slice(from, to))
    else followed += yield* searchFrom(edges, position, far, open.slice(from, to))
    if (followed > maxFollowed) return false
  }
  return rest.length === 0 || (yield* collectBits(edges, far, rest, maxFollowed - followed))
}

/** Marks the references of `open` that name an ancestor of the task at `position`. Returns the number of steps. */
function* searchFrom(
  { dependenciesStart, dependencies }: Edges,
  position: number,
  { named, isSound }: FarReferences,
  open: readonly number[],
): Steps<number> {
  const isAncestor = new Uint8Array(dependenciesStart.length - 1)
  const found = [position]
  let steps = 0
  for (let task = found.pop(); task !== undefined; task = found.pop()) {
    for (let d = dependenciesStart[task]!; d < dependenciesStart[task + 1]!; d++) {
      const dependency = dependencies[d]!
      if (isAncestor[dependency] === 0) {
        isAncestor[dependency] = 1
        found.push(dependency)
      }
      if (isYieldDue(steps++)) yield
    }
  }
  for (const i of open) {
    isSound[i] = isAncestor[named[i]!]!
    if (isYieldDue(steps++)) yield
  }
  return steps
}

/** Marks the references of `open` that name an ancestor. False if that would take more than `maxFollowed` steps. */
function* collectBits(
  edges: Edges,
  { references, named, isSound }: FarReferences,
  open: readonly number[],
  maxFollowed: number,
): Steps<boolean> {
  const { dependenciesStart, dependencies } = edges
  const order = yield* dependencyOrder(edges)
  const rank = new Uint32Array(order.length)
  yield* inRanges(order.length, (from, to) => {
    for (let i = from; i < to; i++) rank[order[i]!] = i
  })
  const ranks = Uint32Array.from(open, (i) => rank[named[i]!]!)
  const byRank = Uint32Array.from(open, (_, k) => k).sort((a, b) => ranks[a]! - ranks[b]!)
  /** For each task the bits of this pass: of referenced tasks among its ancestors, and of the task itself. */
  const bits = new Uint32Array(order.length)
  let followed = 0
  for (let next = 0; next < byRank.length; ) {
    const batch: { readonly reference: number; readonly mask: number }[] = []
    const first = ranks[byRank[next]!]!
    let last = first
    let mask = 0
    for (let count = 0, previous = UNKNOWN; next < byRank.length; next++) {
      const reference = open[byRank[next]!]!
      const other = named[reference]!
      if (other !== previous) {
        if (count === TASKS_PER_PASS) break
        mask = 1 << count++
        bits[other]! |= mask
        previous = other
      }
      batch.push({ reference, mask })
      last = Math.max(last, rank[other]!, rank[references[reference]!.position]!)
    }
    for (let r = first; r <= last; r++) {
      const task = order[r]!
      let found = bits[task]!
      for (let d = dependenciesStart[task]!; d < dependenciesStart[task + 1]!; d++) {
        found |= bits[dependencies[d]!]!
        if (isYieldDue(followed++)) yield
      }
      bits[task] = found
      if (isYieldDue(followed++)) yield
    }
    for (const { reference, mask } of batch) {
      const { position } = references[reference]!
      if (position !== named[reference] && (bits[position]! & mask) !== 0) isSound[reference] = 1
    }
    for (let r = first; r <= last; r++) bits[order[r]!] = 0
    if (followed > maxFollowed) return false
  }
  return true
}
