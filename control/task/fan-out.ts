/**
 * What the children of a task have in common: which elements they are for, which of them are under way, and how they depend
 * on each other.
 *
 * `graph.ts` has the tasks, which refer to their fan-outs. So this file knows of a task only what `FannedTask` says.
 */

import { isTerminal, type TaskStatus } from '../../shared/contract/task-status.ts'
import { lengthAt } from '../rules/edges.ts'
import { isReferenceToList } from '../rules/fan-out-rule.ts'
import { Members } from '../rules/members.ts'
import type { Places } from '../rules/placeholders.ts'
import type { RareState } from './rare-state.ts'
import type { TaskOptions } from './task-options.ts'

/** A task that has children, or is one of them. */
interface FannedTask<T> {
  readonly graph: { readonly tasks: readonly T[] }
  readonly position: number
  readonly options: TaskOptions
  readonly status: TaskStatus
  readonly startedAt: number | undefined
  readonly attemptStartedAt: number | undefined
  readonly rare: Readonly<RareState>
  readonly isDeleted: boolean
}

/**
 * The children of a task with `for_each`, or of a group, which stand in their graph behind all tasks that were submitted.
 *
 * The edges of the graph know nothing of them. The children of a plain task share its definition, one for each element, and
 * have no dependencies. An element of a group has a child for each member, next to each other; these depend on each other as
 * the members do. Graphs without fan-out have none of this.
 */
export class FanOut<T extends FannedTask<T>> {
  readonly parent: T
  /** Position of the first child, once the graph has the children. The others follow it. */
  first = 0
  /** Number of elements; 1 for a group without `for_each`. */
  readonly elements: number
  /** What each element of a group consists of; undefined for the children of a plain task. */
  readonly members: Members | undefined
  /** Number of children. */
  readonly count: number
  /** The elements, until the parent has ended. */
  #items: readonly unknown[] | undefined
  /** The placeholders of inputs, found at their first use: those of each member, or of all children of a plain task. */
  #places: (Places | undefined)[] = []

  /** Children before this index were queued, wait for their dependencies, or had ended. The others wait for their elements. */
  next = 0
  /** Elements that have begun, with children that have not ended. */
  readonly active = new Set<number>()
  /** Children that have not ended. */
  open: number
  /** For each element of a group the same. */
  readonly #openOf: Uint32Array | undefined
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

  constructor(parent: T, items: readonly unknown[] | undefined, elements: number) {
    const { tasks } = parent.options
    this.parent = parent
    this.#items = items
    this.elements = elements
    this.members = tasks === undefined ? undefined : new Members(tasks)
    this.count = elements * this.width
    this.open = this.count
    if (this.members !== undefined) this.#openOf = new Uint32Array(elements).fill(this.width)
  }

  /** Number of children for each element. */
  get width(): number {
    return this.members?.tasks.length ?? 1
  }

  /** False for a group without `for_each`. */
  get hasList(): boolean {
    return this.parent.options.for_each !== undefined
  }

  /** How many elements may be under way at a time. */
  get maxParallel(): number {
    return this.parent.options.max_parallel ?? Number.POSITIVE_INFINITY
  }

  /** Whether `child`, which has not ended, is not to start: it is cancelled because of `stop`, or deleted with the parent. */
  stops(child: T): boolean {
    if (this.stop === undefined && !this.parent.isDeleted) return false
    if (this.parent.status === 'cancelling' || isTerminal(this.parent.status)) return true
    if (hasStarted(child)) return false
    return this.members === undefined || this.parent.isDeleted || !this.#hasBegun(this.indexOf(child))
  }

  /** Whether a child for this element has started. */
  #hasBegun(element: number): boolean {
    const { width } = this
    for (let m = 0; m < width; m++) if (hasStarted(this.child(element * width + m))) return true
    return false
  }

  /** Notes that `child` has ended, or was deleted before it ran. */
  ended(child: T): void {
    this.open--
    const element = this.indexOf(child)
    if (this.#openOf === undefined || --this.#openOf[element]! === 0) this.active.delete(element)
  }

  /** After a retry: runs the children that are pending again, for the elements of before. */
  restart(items: readonly unknown[]): void {
    this.#items = items
    this.next = 0
    this.active.clear()
    this.open = 0
    this.#openOf?.fill(0)
    this.stop = undefined
    this.stopped = 0
    this.isEnding = false
    for (let i = 0; i < this.count; i++) {
      if (isTerminal(this.child(i).status)) continue
      this.open++
      if (this.#openOf !== undefined) this.#openOf[Math.floor(i / this.width)]!++
    }
  }

  child(index: number): T {
    return this.parent.graph.tasks[this.first + index]!
  }

  /** The children of the elements that are under way. */
  *activeChildren(): Generator<T, void> {
    const { width } = this
    for (const element of this.active) for (let m = 0; m < width; m++) yield this.child(element * width + m)
  }

  /** Whether `child` is before `next`. */
  isReached({ position }: T): boolean {
    return position - this.first < this.next
  }

  /** Whether `child` waits for others of these children, which are as many as may run at a time. */
  isHeldBack(child: T): boolean {
    return !this.isReached(child) && this.active.size >= this.maxParallel
  }

  /** The index of the element for which `child` runs. */
  indexOf({ position }: T): number {
    return Math.floor((position - this.first) / this.width)
  }

  #memberOf({ position }: T): number {
    return (position - this.first) % this.width
  }

  /** The child that `child` calls `id`: that of the same element. Undefined if no member has this id. */
  siblingOf(child: T, id: string): T | undefined {
    const member = this.members?.positionOf(id)
    return member === undefined ? undefined : this.child(this.indexOf(child) * this.width + member)
  }

  dependentCount(child: T): number {
    return this.members === undefined ? 0 : lengthAt(this.members.edges.dependentsStart, this.#memberOf(child))
  }

  dependent(child: T, i: number): T {
    const { dependents, dependentsStart } = this.members!.edges
    const member = this.#memberOf(child)
    return this.parent.graph.tasks[child.position - member + dependents[dependentsStart[member]! + i]!]!
  }

  dependencyCount(child: T): number {
    return this.members === undefined ? 0 : lengthAt(this.members.edges.dependenciesStart, this.#memberOf(child))
  }

  dependency(child: T, i: number): T {
    const { dependencies, dependenciesStart } = this.members!.edges
    const member = this.#memberOf(child)
    return this.parent.graph.tasks[child.position - member + dependencies[dependenciesStart[member]! + i]!]!
  }

  /** The element for which `child` runs. Undefined once the parent has ended. */
  itemOf(child: T): { readonly value: unknown } | undefined {
    return this.#items === undefined ? undefined : { value: this.#items[this.indexOf(child)] }
  }

  /** The elements for a restart. Undefined where the definition of the parent has them, or no restart needs them. */
  get itemsToKeep(): readonly unknown[] | undefined {
    return isReferenceToList(this.parent.options.for_each) ? this.#items : undefined
  }

  placesOf(child: T): Places | undefined {
    return this.#places[this.#memberOf(child)]
  }

  keepPlaces(child: T, places: Places): void {
    this.#places[this.#memberOf(child)] = places
  }

  /** Frees what only children that have not ended need. */
  release(): void {
    this.#items = undefined
    this.#places = []
  }
}

/**
 * Since the last retry in place. A child whose first attempts were missed (`queue_timeout`) is running, but has not started.
 */
const hasStarted = ({ startedAt, attemptStartedAt, status, rare }: StartOfTask): boolean =>
  attemptStartedAt !== undefined ||
  (startedAt !== undefined && rare.retried === undefined) ||
  !(NOT_STARTED.has(status) || rare.isBackingOff === true)

type StartOfTask = Pick<FannedTask<unknown>, 'startedAt' | 'attemptStartedAt' | 'status' | 'rare'>

const NOT_STARTED: ReadonlySet<TaskStatus> = new Set(['pending', 'skipped', 'cancelled'])
