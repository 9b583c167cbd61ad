/**
 * The children of a task with `for_each`, which stand in their graph behind all tasks that were submitted. Pure.
 *
 * Children have no dependencies and no dependents, so the edges of the graph know nothing of them. All children of a task
 * share its definition. Graphs without fan-out have none of this.
 */
import type { TaskStatus } from '../../shared/contract/task-status.ts'
import { type FanOut, isReferenceToList } from './fan-out.ts'
import type { Places } from './placeholders.ts'

/** What an expansion needs to know of tasks. */
interface Expandable<T> {
  readonly graph: { readonly tasks: readonly T[] }
  readonly position: number
  readonly status: TaskStatus
  readonly isBackingOff: boolean
  readonly isDeleted: boolean
  readonly startedAt: number | undefined
  readonly fanOut: FanOut | undefined
}

/** `T` is `Task` (`graph.ts`). */
export class Expansion<T extends Expandable<T>> {
  readonly parent: T
  /** Position of the first child, once the graph has the children. The others follow it. */
  first = 0
  readonly count: number
  /** The elements, until the parent has ended. */
  #items: readonly unknown[] | undefined
  /** The placeholders of the input, which is the same for all children, once somebody has looked for them. */
  places: Places | undefined = undefined

  /** Children before this index were queued, or have ended. */
  next = 0
  /** Queued children that have not ended. */
  readonly active = new Set<T>()
  /** Children that have not ended. */
  open: number
  /** Why children that have not started are cancelled: with the parent (empty), or for this reason. */
  stop: string | undefined = undefined
  /** Children before this index were cancelled because of `stop`, or were not to be. */
  stopped = 0
  /** The record of the parent was deleted: children before this index were deleted with it. */
  deleted = 0
  /** The outcome of the parent is being determined. */
  isEnding = false
  /** The scheduler has it on its list of work. */
  isQueued = false

  constructor(parent: T, items: readonly unknown[] | undefined, count: number) {
    this.parent = parent
    this.#items = items
    this.count = count
    this.open = count
  }

  /** How many children may be queued at a time. */
  get maxParallel(): number {
    return this.parent.fanOut?.max_parallel ?? Number.POSITIVE_INFINITY
  }

  /** Whether `child`, which has not ended, is not to start: it is cancelled because of `stop`, or deleted with the parent. */
  stops(child: T): boolean {
    if (this.stop === undefined && !this.parent.isDeleted) return false
    if (this.parent.status === 'cancelling') return true
    // A child whose first attempts were missed (`queue_timeout`) is running, but has not started.
    return child.startedAt === undefined && (child.status === 'pending' || child.isBackingOff)
  }

  child(index: number): T {
    return this.parent.graph.tasks[this.first + index]!
  }

  indexOf({ position }: T): number {
    return position - this.first
  }

  /** The element for which `child` runs. Undefined once the parent has ended. */
  itemOf(child: T): { readonly value: unknown } | undefined {
    return this.#items === undefined ? undefined : { value: this.#items[this.indexOf(child)] }
  }

  /** The elements as a restart needs them; undefined where the definition of the parent has them, or nobody needs them. */
  get itemsToKeep(): readonly unknown[] | undefined {
    return isReferenceToList(this.parent.fanOut?.for_each) ? this.#items : undefined
  }

  /** Frees what only children that have not ended need. */
  release(): void {
    this.#items = undefined
    this.places = undefined
  }
}
