/** The open event streams: limits their number, keeps them alive, and ends them with the service. */
import { ServiceError } from '../../shared/contract/errors.ts'
import { eachByTurns, WRITES_PER_TURN } from '../../shared/process/steps.ts'
import { isWanted } from '../log/event-feed.ts'
import { HistoryGone } from '../log/event-reader.ts'
import type { Positions } from '../log/positions.ts'
import type { Task } from '../task/graph.ts'
import type { Ground } from './ground.ts'
import { knownGraph, knownTask, NotFound } from './named-tasks.ts'
import { WaitingEvents } from './waiting-events.ts'
import { Watch } from './watch.ts'
import {
  type EventSink,
  isKnownNumber,
  type RemovedSubject,
  type Seen,
  type WatchAddress,
  type WatchParts,
  type WatchRequest,
  type WatchSubject,
} from './watch-request.ts'
import { withOwn } from './with-own.ts'

/** Streams for other replicas, for each stream that clients may open. Clusters rarely have more replicas. */
const PARTS_PER_STREAM = 8

/** Milliseconds between two queries for the reasons why delegated tasks wait. */
const LOOK_MS = 1_000

export class EventStreams {
  readonly #parts: WatchParts
  readonly #maxStreams: number
  readonly #open = new Set<Watch>()
  /** Open streams of clients, and of other replicas. */
  readonly #counts = { clients: 0, parts: 0 }
  /** Runs while a stream is open. */
  #lookTimer: Timer | undefined
  #isLooking = false
  /** Number of streams that were ended because their clients read too slowly. */
  laggingTotal = 0
  /** Number of events sent. */
  sentTotal = 0

  /** `maxStreams`: how many clients may have open. */
  constructor(ground: Ground, maxStreams: number) {
    this.#parts = { ...ground, waiting: new WaitingEvents(ground) }
    this.#maxStreams = maxStreams
    ground.stopping.addEventListener('abort', () => void this.#endAll())
  }

  get openCount(): number {
    return this.#open.size
  }

  /** The streams of callers that see what is `seen`, and their share of the limit. */
  seenBy(seen: Seen): EventStreams {
    const own: Partial<EventStreams> = {
      open: (request, sink) => this.open({ ...request, seen }, sink),
      subjectOf: (address, after) => this.subjectOf(address, after, seen),
    }
    return withOwn<EventStreams>(this, own)
  }

  /** The number of the last change that a present answer includes, if the changes were flushed. */
  get position(): number {
    const { store, keeper } = this.#parts
    return Math.min(store.seq, keeper.numbers.reserved)
  }

  /** Throws 503 if too many streams are open, or the service is stopping. */
  open(request: WatchRequest, sink: EventSink): Watch {
    const leave = this.enter(request.part === undefined ? 'clients' : 'parts')
    const watch: Watch = new Watch(this.#parts, request, this.#counted(sink), (isLagging) => {
      leave()
      this.#open.delete(watch)
      if (isLagging) this.laggingTotal++
      if (this.#open.size === 0) this.#stopLooking()
    })
    this.#open.add(watch)
    this.#lookTimer ??= setInterval(() => void this.#lookElsewhere(), LOOK_MS)
    void watch.start()
    return watch
  }

  /** Counts a stream until the function that it returns is called, once. Throws as `open`. */
  enter(kind: 'clients' | 'parts'): () => void {
    const maxStreams = this.#maxStreams
    if (this.#parts.stopping.aborted) throw new ServiceError(503, 'the service is stopping')
    if (this.#counts[kind] >= (kind === 'clients' ? maxStreams : maxStreams * PARTS_PER_STREAM))
      throw new ServiceError(503, `${maxStreams} event streams are open (--max-event-streams); close one or try later`)
    this.#counts[kind]++
    return () => {
      this.#counts[kind]--
    }
  }

  /**
   * The subject of a stream that a client opens, or resumes after the event `after`. A removed graph or task can be the
   * subject only of a resumed stream, while the history has later events of it. Throws `NotFound`.
   */
  async subjectOf(
    address: WatchAddress,
    after: number | Positions | undefined,
    { tenant, store }: Seen = this.#parts,
  ): Promise<WatchSubject> {
    const { graphId, id } = address
    try {
      return id === undefined ? { graph: knownGraph(store, graphId) } : { task: knownTask(store, { ...address, id }) }
    } catch (error) {
      if (!(error instanceof NotFound) || graphId === undefined || after === undefined) throw error
      const removed = { graphId, taskId: id, tenant }
      if (!(await this.#hasPast(removed, after))) throw error
      return { removed }
    }
  }

  /**
   * Whether the history has an event of the removed graph or task. Looks behind the event `after` if that is still
   * kept.
   */
  async #hasPast(removed: RemovedSubject, after: number | Positions): Promise<boolean> {
    const { events, history } = this.#parts.keeper
    await events.settle().catch(() => {}) // if the disk fails, the removal is no event yet
    const { graphId } = removed
    const isKnown = typeof after === 'number' && isKnownNumber(this.#parts, after, graphId)
    const from = isKnown ? after : history.oldest
    try {
      for await (const some of history.read({ after: from, upTo: events.delivered, graphId }))
        if (some.some((event) => isWanted(removed, event))) return true
    } catch (error) {
      if (!(error instanceof HistoryGone)) throw error
    }
    return false
  }

  #stopLooking(): void {
    clearInterval(this.#lookTimer)
    this.#lookTimer = undefined
  }

  /** Sends changed reasons of delegated tasks to the streams. */
  async #lookElsewhere(): Promise<void> {
    if (this.#isLooking) return
    this.#isLooking = true
    const reasons = await this.#parts.waiting.look(this.#isWatched())
    if (reasons.length > 0) await this.#eachOpen((watch) => watch.tell(reasons))
    this.#isLooking = false
  }

  #isWatched(): (task: Task) => boolean {
    const graphIds = new Set<string>()
    for (const { filter } of this.#open) {
      if (filter.graphId === undefined) return () => true
      graphIds.add(filter.graphId)
    }
    return ({ graph }) => graphIds.has(graph.id)
  }

  #eachOpen(work: (watch: Watch) => void): Promise<void> {
    return eachByTurns([...this.#open], WRITES_PER_TURN, work)
  }

  #counted(sink: EventSink): EventSink {
    const { send } = sink
    sink.send = (events, previous) => {
      this.sentTotal += events.length
      send(events, previous)
    }
    return sink
  }

  /** Ends all streams after they have sent the last changes of attempts. */
  async #endAll(): Promise<void> {
    await this.#parts.keeper.events.settle().catch(() => {})
    await this.#eachOpen((watch) => watch.end())
  }
}
