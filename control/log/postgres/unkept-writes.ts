/**
 * Changes on their way to the database: first as the newest states of tasks, then encoded, then in a turn.
 *
 * They are encoded when somebody asks for them to be kept, so that a turn that is under way does not hide which states a
 * caller has seen. Each graph has frames of its own, because a graph is what another replica takes over.
 */
import type { Graph, Task } from '../../task/graph.ts'
import { type EventRow, eventRows, type NumberedChange, rangeOf } from '../event-rows.ts'
import type { KeptKey } from '../idempotency.ts'
import { withStates } from '../journaled-patch.ts'
import { encodeStates, groupsOf, type StateGroup } from '../journaled-state.ts'
import type { CallbackState } from '../kept-callbacks.ts'
import type { OrphanState } from '../kept-orphans.ts'
import { patchPayload } from './frame-payloads.ts'
import {
  type NewFrame,
  type NewGraph,
  placeIn,
  type Removal,
  type RevivedGraph,
  type TurnWrites,
} from './turn-writes.ts'

/** Maximum tasks that are encoded together. More would block the event loop. */
const MAX_ENCODED = 2_048

/** Maximum characters of the frames of a turn. A larger turn would hold up the next one, and with it the lease. */
const MAX_TURN_CHARACTERS = 8 * 1024 * 1024

type Writable<T> = { -readonly [K in keyof T]: T[K] }

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
  #isOneFrame = false
  /** A patch whose frame has the states of its graph, too. */
  #patch: { readonly graph: Graph; readonly payload: readonly string[] } | undefined
  #revived: RevivedGraph[] = []
  #frames: Writable<NewFrame>[] = []
  #removals: Removal[] = []
  #graphs: WaitingGraph[] = []
  #removed = new Set<number>()
  #freedIds: (readonly [ordinal: number, id: string])[] = []
  #freedKeys: KeptKey[] = []
  #resultUses = new Map<string, number>()
  /** By id. */
  #callbacks = new Map<string, CallbackState>()
  /** By id. */
  #orphans = new Map<string, OrphanState>()
  #number = 0
  readonly #ended = new WeakSet<Graph>()

  /** Whether a turn has nothing to write. */
  get isEmpty(): boolean {
    const rows =
      this.#frames.length +
      this.#graphs.length +
      this.#removed.size +
      this.#freedIds.length +
      this.#resultUses.size +
      this.#callbacks.size +
      this.#orphans.size
    return rows === 0 && !this.#hasStates
  }

  /** Graphs that no turn has been sent with yet. */
  get graphCount(): number {
    return this.#graphs.length
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

  /** Tasks of `graph` are pending again: their states are in one frame. A graph that had ended takes its place again. */
  retry(graph: Graph, tasks: readonly Task[]): void {
    for (const task of tasks) this.addTask(task)
    this.#isOneFrame = true
    if (!this.#ended.delete(graph)) return
    this.#revived.push({
      ordinal: graph.ordinal,
      place: graph.options.concurrency && placeIn(graph.options.concurrency, graph.tenant),
    })
  }

  /** The states of `graph` that are encoded next are in one frame with the patch. */
  addPatch(graph: Graph, payload: readonly string[]): void {
    this.#patch = { graph, payload }
    this.#isOneFrame = true
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

  /** A frame tells already when `graph` ended. */
  noteEnded(graph: Graph): void {
    this.#ended.add(graph)
  }

  /** Adds a frame of `graph` after the states of its tasks so far. */
  addFrame(graph: Graph, payload: string, more?: Partial<Pick<NewFrame, 'seq' | 'freedIds' | 'key'>>): void {
    const { ordinal, endedAt, visible: tasks, options } = graph
    const ends = endedAt !== undefined
    const isEnd = ends && !this.#ended.has(graph)
    if (isEnd) this.noteEnded(graph)
    const frame = { ordinal, number: ++this.#number, payload, ends, seq: 0, changes: 0 }
    const freesPlace = options.concurrency !== undefined
    this.#frames.push({ ...frame, ...(isEnd && { endedAt, tasks, freesPlace }), ...more })
  }

  /** The graph was refused, although a turn under way may keep it: the next one removes it, and its key. Or it frees the ids. */
  refuse({ ordinal, payload, taskIds, key }: NewGraph): void {
    if (payload === '') for (const id of taskIds) this.#freedIds.push([ordinal, id])
    else this.#removed.add(ordinal)
    if (key !== undefined) this.#freedKeys.push(key)
  }

  /** Nothing of the graph is kept from the next turn on. */
  remove(ordinal: number): void {
    this.#removed.add(ordinal)
  }

  /** As `remove`, for a graph whose last change has the number `seq`. Who resumes from before is told that it is gone. */
  removeEmpty(graph: Graph, seq: number, at: number): void {
    this.#removed.add(graph.ordinal)
    this.#removals.push(removalOf(graph, seq, at))
  }

  /** The id of a task belongs to the task no more: another graph may have it. */
  freeId({ graph, id }: Pick<Task, 'graph' | 'id'>): void {
    this.#freedIds.push([graph.ordinal, id])
  }

  /** In the states so far, one more task refers to a large result (1), or one fewer (-1). */
  useResult(name: string, change: 1 | -1): void {
    const sum = (this.#resultUses.get(name) ?? 0) + change
    if (sum === 0) this.#resultUses.delete(name)
    else this.#resultUses.set(name, sum)
  }

  /** The newest state of a callback. */
  addCallback(callback: CallbackState): void {
    this.#callbacks.set(callback.id, callback)
  }

  /** The newest state of an orphan. */
  addOrphan(orphan: OrphanState): void {
    this.#orphans.set(orphan.id, orphan)
  }

  /** Encodes the newest states. Returns their events. */
  encode(): EventRow[] {
    let rows: EventRow[] = []
    const earlier = this.#frames.length
    while (this.#hasStates) {
      const isAll = this.#isOneFrame || this.#tasks.length <= MAX_ENCODED
      const tasks = isAll ? this.#tasks : this.#tasks.slice(0, MAX_ENCODED)
      const changes = isAll ? this.#changes : []
      const groups = groupsOf(tasks)
      this.#encodeByGraph(groups, changes)
      const more = eventRows(groups, changes)
      rows = rows.length === 0 ? more : [...rows, ...more]
      this.#tasks = isAll ? [] : this.#tasks.slice(MAX_ENCODED)
      if (isAll) {
        this.#changes = []
        this.#isOneFrame = false
      }
      for (const task of tasks) task.isUnwritten = false
    }
    if (rows.length > 0) this.#mark(earlier, rows)
    return rows
  }

  /** The frames from `from` on were encoded together, with the events `rows`. */
  #mark(from: number, rows: readonly EventRow[]): void {
    const { last, count } = rangeOf(rows)
    for (let i = from; i < this.#frames.length; i++) {
      this.#frames[i]!.seq = last
      this.#frames[i]!.changes = i === from ? count : 0
    }
  }

  #encodeByGraph(groups: readonly StateGroup[], changes: readonly NumberedChange[]): void {
    const parts = new Map<Graph, { groups: StateGroup[]; changes: NumberedChange[] }>()
    const partOf = (graph: Graph) => {
      const part = parts.get(graph) ?? { groups: [], changes: [] }
      if (part.groups.length + part.changes.length === 0) parts.set(graph, part)
      return part
    }
    for (const group of groups) partOf(group.task.graph).groups.push(group)
    for (const change of changes) {
      if (change.kind === 'removed') this.#removals.push(removalOf(change.graph, change.seq, change.at))
    }
    for (const change of changes) partOf('graph' in change ? change.graph : change.task.graph).changes.push(change)
    for (const [graph, part] of parts) {
      if (this.#removed.has(graph.ordinal)) continue
      const key = part.changes.flatMap((change) => (change.kind === 'retried' && change.idempotency) || []).at(-1)
      const states = encodeStates(part.groups, part.changes)
      const patch = this.#patch?.graph === graph ? this.#patch.payload : undefined
      this.addFrame(graph, patch === undefined ? states : patchPayload(withStates(patch, states)), { key })
    }
    this.#patch = undefined
  }

  /** Takes the graphs that no turn has been sent with yet. */
  takeGraphs(): readonly WaitingGraph[] {
    const graphs = this.#graphs
    this.#graphs = []
    return graphs
  }

  /** Takes what the next turn writes. Call `encode` before. */
  take(): Turn {
    const graphs = this.takeGraphs()
    const removed = this.#removed
    this.#removed = new Set()
    let characters = 0
    const end = this.#frames.findIndex(({ payload }) => {
      characters += payload.length
      return characters > MAX_TURN_CHARACTERS
    })
    const some = this.#frames.splice(0, end < 0 ? this.#frames.length : Math.max(1, end))
    const frames = some.filter(({ ordinal }) => !removed.has(ordinal))
    const isAll = end < 0
    const resultUses = [...this.#resultUses].filter(([, change]) => isAll || change > 0) // states without them come first
    for (const [name] of resultUses) this.#resultUses.delete(name)
    const callbacks = [...this.#callbacks.values()]
    this.#callbacks = new Map()
    const orphans = [...this.#orphans.values()]
    this.#orphans = new Map()
    for (const { ordinal, freedIds } of frames) for (const id of freedIds ?? []) this.#freedIds.push([ordinal, id])
    const freedIds = this.#freedIds
    const freedKeys = this.#freedKeys // each with a removed graph
    this.#freedIds = []
    this.#freedKeys = []
    const revived = this.#revived // each with a frame
    this.#revived = []
    const removals = this.#removals // each with a removed graph
    this.#removals = []
    const changes = removed.size + freedIds.length + resultUses.length + callbacks.length + orphans.length
    const isEmpty = graphs.length + frames.length + changes === 0
    return {
      graphs,
      writes: { frames, removed: [...removed], freedIds, freedKeys, resultUses, callbacks, orphans, removals, revived },
      isEmpty,
    }
  }
}

const removalOf = ({ id: graphId, tenant }: Graph, seq: number, at: number): Removal => ({ seq, graphId, tenant, at })
