/**
 * Whether the tasks that a task refers to are its ancestors: tasks that it depends on, directly or through others. Pure.
 *
 * Only tasks with references are looked at. Most references name a direct dependency, which one pass over the
 * dependencies finds. For a task with many other references, its ancestors are searched once. The rest is answered 32
 * referenced tasks at a time: in an order that the dependencies allow, each task collects the bits of the referenced tasks
 * among its ancestors. A pass covers only the part of the order between the first referenced task and the last one that
 * refers to it. So references between neighbours of a long chain are cheap, and so are 100,000 references to one task, or
 * of one task.
 */
import { inRanges, isYieldDue, type Steps } from '../../shared/steps.ts'
import type { Edges } from './edges.ts'
import { dependencyOrder } from './order.ts'
import type { Report } from './report.ts'

/** A task refers to another one of its graph. */
export interface TaskReference {
  /** Position of the task that refers to the other. */
  readonly position: number
  /** The id by which it names the other. */
  readonly id: string
}

/** Referenced tasks of one pass: the bits of a number. */
const TASKS_PER_PASS = 32

/**
 * Dependencies that all passes together may follow: less than a second, in steps. A graph needs more only if tens of
 * thousands of tasks refer to as many far ancestors.
 */
export const MAX_FOLLOWED_DEPENDENCIES = 200_000_000

type Tasks = readonly { readonly id: string }[]

/**
 * Reports, in the order of `references`, an id that no task has, and a task that is no ancestor. References of one task
 * stand together. Without sound edges only the ids are checked.
 */
export function* checkReferences(
  { tasks, edges }: { readonly tasks: Tasks; readonly edges: Edges | undefined },
  references: readonly TaskReference[],
  report: Report,
  maxFollowed = MAX_FOLLOWED_DEPENDENCIES,
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
      if (named[i] === UNKNOWN) report(`task ${id} references unknown task ${other}`, id)
      else if (isChecked && !isSound![i]) report(`task ${id} references ${other} but does not depend on it`, id)
    }
  })
}

const TOO_MANY_FAR_REFERENCES =
  'the graph has too many references to tasks that are no direct dependencies: let tasks depend directly on those that they reference'

const UNKNOWN = -1

/** The position of the task that each reference names, or `UNKNOWN`. */
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
  /** For each task the last one that was found to depend on it. */
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

/** Marks those of `open` that name an ancestor of the task at `position`. Returns how many steps that took. */
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

/** Marks those of `open` that name an ancestor. False if that would take more than `maxFollowed` steps. */
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
  /** For each task the referenced ones of this pass among its ancestors, and its own bit if it is one. */
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
