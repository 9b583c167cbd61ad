/**
 * Delivers events to listeners.
 *
 * The rows of what was written to the journal go into the history. If somebody listens, they are also kept until the
 * next sync of the journal has ended, then become events and go to the listeners. While somebody listens to a graph,
 * its changes are written and synced at once instead of after 20 ms. If nobody listens, nothing of this is done.
 */
import type { ServiceEvent } from '../../shared/contract/events.ts'
import { eachByTurns, nextTurn, SLICE_MS, WRITES_PER_TURN } from '../../shared/process/steps.ts'
import type { EventHistory } from './event-history.ts'
import { type EventRow, eventsOf } from './event-rows.ts'

/** Events that a listener gets at a time: making them takes about 1 ms. */
const MAX_BATCH_EVENTS = 512

/** Listeners beyond which events go out in intervals, so that many listeners share the work of a batch. */
export const CROWD = 100

/** Milliseconds of such an interval. */
const CROWD_INTERVAL_MS = 100

/** Milliseconds before a journal that could not be synced is asked again. */
const RETRY_MS = 500

/** What a listener wants: all events, those of a graph, or those of a task and the end of its graph's record. */
export interface EventFilter {
  readonly graphId?: string | undefined
  /** Only with `graphId`. */
  readonly taskId?: string | undefined
  /** Whose graphs; without one, everybody's. A listener to all graphs filters by it. */
  readonly tenant?: string | undefined
}

/** Called with events in order, after their changes were synced. Must not throw. */
export type EventListener = (events: readonly ServiceEvent[]) => void

const graphIdOf = (event: ServiceEvent): string => ('graph_id' in event ? (event.graph_id ?? '') : '')

/** Whether a listener with this filter gets the event. */
export const isWanted = ({ graphId, taskId, tenant }: EventFilter, event: ServiceEvent): boolean =>
  (tenant === undefined || ('tenant' in event && event.tenant === tenant)) &&
  (graphId === undefined || graphIdOf(event) === graphId) &&
  (taskId === undefined || event.event === 'graph_removed' || ('task_id' in event && event.task_id === taskId))

/** The events of one write of the journal, or of several, with the number of the last event. */
interface Written {
  readonly last: number
  readonly rows: readonly EventRow[]
}

export class EventFeed {
  readonly #history: EventHistory
  readonly #sync: () => Promise<void>
  readonly #ofAll = new Set<EventListener>()
  /** By graph, then by task; the empty id stands for all of the graph. */
  readonly #ofGraphs = new Map<string, Map<string, Set<EventListener>>>()
  #listeners = 0
  /** Written to the journal, and perhaps not synced yet. */
  #pending: Written[] = []
  #delivered: number
  /** All listeners have been called with the events up to this number. */
  #handed = 0
  #target = 0
  #isDelivering = false
  #isPumping = false
  #isDue = false
  #lastBatchAt = 0

  /** `sync` resolves when all that was written to the journal is on disk. */
  constructor(history: EventHistory, sync: () => Promise<void>) {
    this.#history = history
    this.#sync = sync
    this.#delivered = history.last
  }

  /** Writes all changes so far to the journal. To be set before anybody listens. */
  flush: () => void = () => {}

  /** Listeners have been called, or are being called, with the events up to this number, and none after it. */
  get delivered(): number {
    return this.#delivered
  }

  /** The graph `graphId` has changed. */
  changed(graphId: string): void {
    if (this.#listeners > 0 && this.#isHeard(graphId)) this.#pump()
  }

  #isHeard(graphId: string): boolean {
    return this.#ofAll.size > 0 || this.#ofGraphs.has(graphId)
  }

  /** The events of one write of the journal. Their numbers are higher than all before. */
  written(rows: readonly EventRow[]): void {
    if (rows.length === 0) return
    this.#history.append(rows)
    if (this.#listeners === 0) return
    const heard = this.#ofAll.size > 0 ? rows : rows.filter(([, graphId]) => this.#ofGraphs.has(graphId))
    if (heard.length === 0) return
    this.#pending.push({ last: this.#history.last, rows: heard })
    this.#pump()
  }

  /**
   * Calls `listener` with the events after `delivered`, from now on. Returns a function that stops the calls. Calls
   * nobody before the caller has had its turn.
   */
  subscribe(filter: EventFilter, listener: EventListener): () => void {
    const { graphId, taskId = '' } = filter
    this.#listeners++
    if (graphId === undefined) {
      this.#ofAll.add(listener)
      return once(() => {
        this.#ofAll.delete(listener)
        this.#left()
      })
    }
    const ofGraph = this.#ofGraphs.get(graphId) ?? new Map<string, Set<EventListener>>()
    const ofTask = ofGraph.get(taskId) ?? new Set()
    this.#ofGraphs.set(graphId, ofGraph.set(taskId, ofTask.add(listener)))
    return once(() => {
      ofTask.delete(listener)
      if (ofTask.size === 0) ofGraph.delete(taskId)
      if (ofGraph.size === 0) this.#ofGraphs.delete(graphId)
      this.#left()
    })
  }

  #left(): void {
    if (--this.#listeners === 0) this.#pending = []
  }

  /** Resolves when listeners have the events of all changes so far. Rejects if the changes may not be on disk. */
  async settle(): Promise<void> {
    this.flush()
    this.#history.flush() // what was sent is found again after a kill, also if its task is gone by then
    this.#isDue = false
    const upTo = this.#history.last
    try {
      await this.#sync()
    } catch (error) {
      this.#isDue = true
      throw error
    }
    this.#target = Math.max(this.#target, upTo)
    if (!this.#isDelivering) await this.#deliver()
    while (this.#isDelivering && this.#handed < upTo) await nextTurn()
  }

  /** Delivers what is due soon, and repeats that while more comes. */
  #pump(): void {
    this.#isDue = true
    if (!this.#isPumping) void this.#pumpAll()
  }

  async #pumpAll(): Promise<void> {
    this.#isPumping = true
    while (this.#isDue && this.#listeners > 0) {
      await this.#pause()
      await this.settle().catch(() => Bun.sleep(RETRY_MS))
    }
    this.#isPumping = false
  }

  /** Lets further changes of this turn of the event loop join, with many listeners those of an interval. */
  async #pause(): Promise<void> {
    if (this.#listeners <= CROWD) return nextTurn()
    const since = performance.now() - this.#lastBatchAt
    await (since < CROWD_INTERVAL_MS ? Bun.sleep(CROWD_INTERVAL_MS - since) : nextTurn())
    this.#lastBatchAt = performance.now()
  }

  /** In slices: there may be thousands of events. */
  async #deliver(): Promise<void> {
    this.#isDelivering = true
    let sliceEnd = performance.now() + SLICE_MS
    for (let batch = this.#takeBatch(); batch !== undefined; batch = this.#takeBatch()) {
      const events = eventsOf(batch.rows)
      for (let from = 0; from < events.length; from += MAX_BATCH_EVENTS) {
        const some =
          from === 0 && events.length <= MAX_BATCH_EVENTS ? events : events.slice(from, from + MAX_BATCH_EVENTS)
        this.#delivered = Math.max(this.#delivered, some.at(-1)!.seq)
        await eachByTurns(this.#calls(some), WRITES_PER_TURN, (call) => call())
        this.#handed = this.#delivered
        if (performance.now() < sliceEnd) continue
        await nextTurn()
        sliceEnd = performance.now() + SLICE_MS
      }
      this.#delivered = Math.max(this.#delivered, batch.last)
    }
    this.#delivered = Math.max(this.#delivered, this.#target)
    this.#handed = this.#delivered
    this.#isDelivering = false
  }

  /** The next events to deliver, with small writes of the journal merged. Undefined if no further write is synced. */
  #takeBatch(): Written | undefined {
    const isDue = (written: Written | undefined) => written !== undefined && written.last <= this.#target
    if (!isDue(this.#pending[0])) return undefined
    const rows: EventRow[] = []
    let count = 0
    while (isDue(this.#pending[count]) && (count === 0 || rows.length < MAX_BATCH_EVENTS))
      rows.push(...this.#pending[count++]!.rows)
    const { last } = this.#pending[count - 1]!
    this.#pending.splice(0, count)
    return { last, rows }
  }

  /** A call of each listener that wants some of the events and still listens when its turn comes. */
  *#calls(events: readonly ServiceEvent[]): Iterable<() => void> {
    yield* callsOf(this.#ofAll, events)
    if (this.#ofGraphs.size === 0) return
    for (const [graphId, ofGraph] of Map.groupBy(events, graphIdOf)) {
      for (const [taskId, listeners] of [...(this.#ofGraphs.get(graphId) ?? [])]) {
        const wanted = taskId === '' ? ofGraph : ofGraph.filter((event) => isWanted({ graphId, taskId }, event))
        if (wanted.length > 0) yield* callsOf(listeners, wanted)
      }
    }
  }
}

function* callsOf(listeners: ReadonlySet<EventListener>, events: readonly ServiceEvent[]): Iterable<() => void> {
  for (const listener of [...listeners]) {
    yield () => {
      if (listeners.has(listener)) listener(events)
    }
  }
}

function once(work: () => void): () => void {
  let isDone = false
  return () => {
    if (isDone) return
    isDone = true
    work()
  }
}
