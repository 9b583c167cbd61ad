/**
 * Changes on their way to the database: first as the newest states of tasks, then encoded, then in a turn.
 *
 * They are encoded when somebody asks for them to be kept, so that a turn that is under way does not hide which states a
 * caller has seen. Each graph has frames of its own, because a graph is what another replica takes over.
 */
import type { Graph, Task } from '../graph/graph.ts'
import { type EventRow, eventRows, type NumberedChange } from '../journal/event-rows.ts'
import type { KeptKey } from '../journal/idempotency.ts'
import { encodeStates, groupsOf, type StateGroup } from '../journal/journaled-state.ts'
import type { NewFrame, NewGraph, TurnWrites } from './turn-writes.ts'

/** Maximum tasks that are encoded together. More would block the event loop. */
const MAX_ENCODED = 2_048

/** Maximum characters of the frames of a turn. A larger turn would hold up the next one, and with it the lease. */
const MAX_TURN_CHARACTERS = 8 * 1024 * 1024

/** A graph with the promise that it is kept. */
export interface WaitingGraph extends PromiseWithResolvers<void> {
  readonly graph: NewGraph
}

export interface Turn {
  readonly graphs: readonly WaitingGraph[]
  readonly writes: Omit<TurnWrites, 'graphs'>
  readonly isEmpty: boolean
}

export class UnkeptWrites {
  #tasks: Task[] = []
  #changes: NumberedChange[] = []
  #frames: NewFrame[] = []
  #graphs: WaitingGraph[] = []
  #removed = new Set<number>()
  #freedIds: (readonly [ordinal: number, id: string])[] = []
  #freedKeys: KeptKey[] = []
  #unusedResults: string[] = []
  #number = 0

  /** Whether a turn has nothing to write. */
  get isEmpty(): boolean {
    const rows =
      this.#frames.length +
      this.#graphs.length +
      this.#removed.size +
      this.#freedIds.length +
      this.#unusedResults.length
    return rows === 0 && !this.#hasStates
  }

  get #hasStates(): boolean {
    return this.#tasks.length + this.#changes.length > 0
  }

  /** Whether the states should be encoded now instead of waiting for more. */
  get isFull(): boolean {
    return this.#tasks.length + this.#changes.length >= MAX_ENCODED
  }

  /** Frames get numbers above `number` from now on. */
  raise(number: number): void {
    this.#number = Math.max(this.#number, number)
  }

  addTask(task: Task): void {
    if (task.isUnwritten) return
    task.isUnwritten = true
    this.#tasks.push(task)
  }

  addNumbered(change: NumberedChange): void {
    this.#changes.push(change)
  }

  /** Resolves when the graph is kept. Rejects with `InUse`, or with what the keeper rejects it with. */
  addGraph(graph: NewGraph): WaitingGraph {
    const waiting = { graph, ...Promise.withResolvers<void>() }
    this.#graphs.push(waiting)
    return waiting
  }

  /** Adds a frame of `graph` after the states of its tasks so far. */
  addFrame(graph: Graph, payload: string): void {
    this.#frames.push({ ordinal: graph.ordinal, number: ++this.#number, payload })
  }

  /** The graph was refused, although a turn under way may keep it: the next one removes it, and its key. */
  refuse({ ordinal, key }: NewGraph): void {
    this.#removed.add(ordinal)
    if (key !== undefined) this.#freedKeys.push(key)
  }

  /** Nothing of the graph is kept from the next turn on. */
  remove(ordinal: number): void {
    this.#removed.add(ordinal)
  }

  /** The id of a task belongs to the task no more: another graph may have it. */
  freeId({ graph, id }: Pick<Task, 'graph' | 'id'>): void {
    this.#freedIds.push([graph.ordinal, id])
  }

  /** No task refers to the result, in the states so far. */
  dropResult(name: string): void {
    this.#unusedResults.push(name)
  }

  /** Encodes the newest states. Returns their events. */
  encode(): EventRow[] {
    let rows: EventRow[] = []
    while (this.#hasStates) {
      const isAll = this.#tasks.length <= MAX_ENCODED
      const tasks = isAll ? this.#tasks : this.#tasks.slice(0, MAX_ENCODED)
      const changes = isAll ? this.#changes : []
      const groups = groupsOf(tasks)
      this.#encodeByGraph(groups, changes)
      const more = eventRows(groups, changes)
      rows = rows.length === 0 ? more : [...rows, ...more]
      this.#tasks = isAll ? [] : this.#tasks.slice(MAX_ENCODED)
      if (isAll) this.#changes = []
      for (const task of tasks) task.isUnwritten = false
    }
    return rows
  }

  #encodeByGraph(groups: readonly StateGroup[], changes: readonly NumberedChange[]): void {
    const parts = new Map<Graph, { groups: StateGroup[]; changes: NumberedChange[] }>()
    const partOf = (graph: Graph) => {
      const part = parts.get(graph) ?? { groups: [], changes: [] }
      if (part.groups.length + part.changes.length === 0) parts.set(graph, part)
      return part
    }
    for (const group of groups) partOf(group.task.graph).groups.push(group)
    for (const change of changes) partOf('graph' in change ? change.graph : change.task.graph).changes.push(change)
    for (const [graph, part] of parts) {
      if (!this.#removed.has(graph.ordinal)) this.addFrame(graph, encodeStates(part.groups, part.changes))
    }
  }

  /** Takes what the next turn writes. Call `encode` before. */
  take(): Turn {
    const graphs = this.#graphs
    const removed = this.#removed
    this.#graphs = []
    this.#removed = new Set()
    let characters = 0
    const end = this.#frames.findIndex(({ payload }) => {
      characters += payload.length
      return characters > MAX_TURN_CHARACTERS
    })
    const some = this.#frames.splice(0, end < 0 ? this.#frames.length : Math.max(1, end))
    const frames = some.filter(({ ordinal }) => !removed.has(ordinal))
    const unusedResults = end < 0 ? this.#unusedResults : [] // the states without them come first
    if (end < 0) this.#unusedResults = []
    const freedIds = this.#freedIds
    const freedKeys = this.#freedKeys // each with a removed graph
    this.#freedIds = []
    this.#freedKeys = []
    const isEmpty = graphs.length + frames.length + removed.size + freedIds.length + unusedResults.length === 0
    return { graphs, writes: { frames, removed: [...removed], freedIds, freedKeys, unusedResults }, isEmpty }
  }
}
