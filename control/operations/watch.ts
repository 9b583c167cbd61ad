/**
 * One stream of events for one client.
 *
 * If the client resumes, the stream first replays past events from the history. If these are gone, it begins with the
 * present state (`reset`). The stream goes live in the same turn of the event loop in which the replay ends. From then
 * on, the feed delivers each event after its change was synced. So there is neither a gap nor a repetition in between.
 *
 * If the buffer of a live client is full, the stream waits until the client has read, then replays the missed events. A
 * client that does not read for too long gets `lagging`, and the stream ends. No stream holds more than its buffer.
 */
import type { ServiceEvent } from '../../shared/contract/events.ts'
import { isTerminal } from '../../shared/contract/task-status.ts'
import { isoTime } from '../../shared/iso-time.ts'
import type { Task } from '../graph/graph.ts'
import { type EventFilter, isWanted } from '../journal/event-feed.ts'
import { HistoryGone } from '../journal/event-reader.ts'
import type { KeptEvents } from '../journal/keeper.ts'
import type { TaskStore } from '../store/tasks.ts'
import { presentState } from './present-state.ts'
import type { Reason, WaitingEvents } from './waiting-events.ts'
import { filterOf, type WatchSubject } from './watch-subject.ts'

export interface WatchRequest {
  readonly subject: WatchSubject
  /** The number to resume after. 0 stands for the oldest kept event. Undefined: from now on. */
  readonly after: number | undefined
  /** Whether the stream ends when its graph or task has ended. */
  readonly untilEnded: boolean
}

/** The connection to the client. */
export interface EventSink {
  /** Sends the number to resume after, for a client that has got no event yet. */
  begin(seq: number): void
  /** Sends `events`. `previous` is the number before the first of them. */
  send: (events: readonly ServiceEvent[], previous: number | undefined) => void
  /** Whether the buffer of the client is full. */
  readonly isFull: boolean
  /** Resolves with true when the client has read its buffer, or with false if that takes too long. */
  drained(): Promise<boolean>
  end(): void
}

export interface WatchParts extends KeptEvents {
  readonly store: TaskStore
  readonly waiting: WaitingEvents
}

/** Whether the history has all events after `after`. */
export const isKnownNumber = ({ history, numbers, store }: WatchParts, after: number): boolean =>
  after >= history.oldest && after <= store.seq && !numbers.isLost(after)

export class Watch {
  readonly #parts: WatchParts
  readonly #request: WatchRequest
  readonly #sink: EventSink
  readonly #onEnd: (isLagging: boolean) => void
  readonly filter: EventFilter
  readonly #unsubscribe: () => void
  /** Events up to this number were sent or are not wanted. */
  #cursor = 0
  /** The number of the last sent event, or the number that the stream was resumed after. */
  #previous: number | undefined
  #isLive = false
  /** Whether reasons have changed while the stream was not live. */
  #hasMissedReasons = false
  #hasEnded = false

  /** `onEnd` is called once, after the last event was sent. */
  constructor(parts: WatchParts, request: WatchRequest, sink: EventSink, onEnd: (isLagging: boolean) => void) {
    this.#parts = parts
    this.#request = request
    this.#sink = sink
    this.#onEnd = onEnd
    this.filter = filterOf(request.subject)
    this.#unsubscribe = parts.events.subscribe(this.filter, (events) => {
      if (this.#isLive) this.#sendLive(events)
    })
  }

  /** Resolves when the stream is live, or has ended. */
  async start(): Promise<void> {
    const { events } = this.#parts
    const { after } = this.#request
    await events.settle().catch(() => {}) // if the disk fails, the stream begins with an earlier event
    if (this.#hasEnded) return
    this.#previous = after
    this.#cursor = after ?? events.delivered
    if (after === undefined) this.#sink.begin(this.#cursor)
    else if (after === 0) this.#cursor = this.#parts.history.oldest
    else if (!this.#isKnown(after)) await this.#resetUnknown(after)
    await this.#replay()
    if (this.#request.subject.removed !== undefined) this.end()
    if (this.#hasEnded) return
    this.#goLive()
    if (!this.#request.untilEnded || !this.#isOver) return
    await events.settle().catch(() => {})
    this.end() // the last wanted event has been sent
  }

  /** Ends the stream. */
  end(isLagging = false): void {
    if (this.#hasEnded) return
    this.#hasEnded = true
    this.#unsubscribe()
    this.#sink.end()
    this.#onEnd(isLagging)
  }

  get #isOver(): boolean {
    const { graph, task } = this.#request.subject
    return task?.isTerminal ?? graph?.endedAt !== undefined
  }

  #isKnown(after: number): boolean {
    return isKnownNumber(this.#parts, after)
  }

  /** Replays until nothing is left, and returns in the same turn of the event loop. */
  async #replay(): Promise<void> {
    const { events } = this.#parts
    while (!this.#hasEnded && this.#cursor < events.delivered) {
      try {
        await this.#replayTo(events.delivered)
      } catch (error) {
        if (!(error instanceof HistoryGone)) throw error
        await this.#reset('the events to resume from are not kept any more')
      }
    }
  }

  async #replayTo(last: number): Promise<void> {
    const { graphId } = this.filter
    const past = this.#parts.history.read({ after: this.#cursor, upTo: last, graphId })
    for await (const some of past) {
      const wanted = some.filter((event) => isWanted(this.filter, event))
      this.#cursor = some.at(-1)!.seq
      if (wanted.length > 0) this.#send(wanted)
      if (!this.#hasEnded && !(await this.#sink.drained())) this.#cut()
      if (this.#hasEnded) return
    }
    this.#cursor = Math.max(this.#cursor, last)
  }

  /** As `#reset`, for a removed subject. It has no state, so all its kept events follow. */
  #resetUnknown(after: number): Promise<void> {
    const { events, history } = this.#parts
    const isRemoved = this.#request.subject.removed !== undefined
    const seq = isRemoved ? history.oldest : events.delivered
    return this.#reset(`the events after ${after} are not known here any more`, seq)
  }

  /** Sends the present state, which has all changes up to `seq`. Later events follow. */
  async #reset(reason: string, seq = this.#parts.events.delivered): Promise<void> {
    const state = await presentState(this.#parts, this.#request.subject)
    if (this.#hasEnded) return
    this.#cursor = seq
    this.#previous = undefined
    this.#sink.send([{ event: 'reset', seq, at: isoTime(Date.now()), reason, ...state }], undefined)
    this.#previous = seq
    if (!(await this.#sink.drained())) this.#cut()
  }

  #sendLive(events: readonly ServiceEvent[]): void {
    const last = events.at(-1)!.seq
    if (last <= this.#cursor) return
    const isNew = events[0]!.seq > this.#cursor
    this.#send(isNew ? events : events.filter(({ seq }) => seq > this.#cursor))
    this.#cursor = last
    this.#pauseIfFull()
  }

  /** Sends changed reasons now, or when the stream goes live. */
  tell(reasons: readonly Reason[]): void {
    if (!this.#isLive) {
      this.#hasMissedReasons = true
      return
    }
    const { graphId } = this.filter
    const wanted = graphId === undefined ? reasons : reasons.filter(({ task }) => this.#isAbout(task))
    if (wanted.length === 0) return
    const seq = this.#previous ?? this.#cursor
    this.#sink.send(this.#parts.waiting.eventsOf(wanted, seq), this.#previous)
    this.#previous = seq
    this.#pauseIfFull()
  }

  #isAbout({ id, graph }: Task): boolean {
    const { graphId, taskId } = this.filter
    return graph.id === graphId && (taskId === undefined || id === taskId)
  }

  #goLive(): void {
    this.#isLive = true
    const known = [...this.#parts.waiting.reasons]
    this.tell(this.#hasMissedReasons ? known : known.filter(({ waiting }) => waiting !== undefined))
    this.#hasMissedReasons = false
  }

  #pauseIfFull(): void {
    if (this.#hasEnded || !this.#sink.isFull) return
    this.#isLive = false
    void this.#catchUp()
  }

  /** Waits until the client has read, then replays the events that came meanwhile. Bursts can exceed any buffer. */
  async #catchUp(): Promise<void> {
    if (!(await this.#sink.drained())) this.#cut()
    await this.#replay()
    if (!this.#hasEnded) this.#goLive()
  }

  #send(unexplained: readonly ServiceEvent[]): void {
    const events = this.#parts.waiting.explained(unexplained)
    const end = events.findIndex((event) => this.#isLast(event))
    const sent = end < 0 || end === events.length - 1 ? events : events.slice(0, end + 1)
    this.#sink.send(sent, this.#previous)
    this.#previous = sent.at(-1)!.seq
    if (end >= 0) this.end()
  }

  /** Whether no wanted event can follow `event`. */
  #isLast(event: ServiceEvent): boolean {
    const { graphId, taskId } = this.filter
    if (graphId === undefined) return false
    if (event.event === 'graph_removed' || (taskId !== undefined && event.event === 'task_deleted')) return true
    if (!this.#request.untilEnded) return false
    return taskId === undefined
      ? event.event === 'graph_ended'
      : event.event === 'task_changed' && isTerminal(event.status)
  }

  #cut(): void {
    const seq = this.#previous ?? this.#cursor
    this.#sink.send([{ event: 'lagging', seq, at: isoTime(Date.now()) }], this.#previous)
    this.end(true)
  }
}
