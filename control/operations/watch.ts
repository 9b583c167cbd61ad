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

import { stackOf } from '../../shared/contract/errors.ts'
import type { ServiceEvent } from '../../shared/contract/events.ts'
import { isTerminal } from '../../shared/contract/task-status.ts'
import { isoTime } from '../../shared/text/iso-time.ts'
import { type EventFilter, isWanted } from '../log/event-feed.ts'
import { HistoryGone } from '../log/event-reader.ts'
import { blockOf, startOf } from '../log/number-blocks.ts'
import { type OwedRange, owedAfter, type Positions, positionsText } from '../log/positions.ts'
import { ResentEvents } from '../log/resent-events.ts'
import type { Task } from '../task/graph.ts'
import { presentState } from './present-state.ts'
import type { Reason } from './waiting-events.ts'
import {
  type EventSink,
  isKnownNumber,
  type WatchParts,
  type WatchRequest,
  type WatchSubject,
} from './watch-request.ts'

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
  /** Set for a client that has come as far in the events of this replica: other blocks were sent before. */
  #ownAfter: number | undefined
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
    this.filter = { ...filterOf(request.subject), tenant: request.seen?.tenant }
    this.#unsubscribe = parts.keeper.events.subscribe(this.filter, (events) => {
      if (this.#isLive) this.#sendLive(events)
    })
  }

  /** Resolves when the stream is live, or has ended. */
  start(): Promise<void> {
    return this.#unlessBroken(() => this.#begin())
  }

  /** Ends the stream after a fault of `work`. The client reconnects. */
  async #unlessBroken(work: () => Promise<void>): Promise<void> {
    try {
      await work()
    } catch (error) {
      if (this.#hasEnded) return // perhaps with the service, which has closed the database
      this.#parts.log.error('an event stream broke', { cause: stackOf(error) })
      this.end()
    }
  }

  async #begin(): Promise<void> {
    const { keeper, store } = this.#parts
    const { events } = keeper
    const { after } = this.#request
    const opened = store.seq
    await events.settle().catch(() => {}) // if the disk fails, the stream begins with an earlier event
    if (this.#hasEnded) return
    if (typeof after === 'object') await this.#continueAt(after).catch((error) => this.#resetIfGone(error))
    else await this.#continueAfter(after, opened)
    await this.#replay()
    if (this.#request.subject.removed !== undefined) this.end()
    if (this.#hasEnded) return
    if (this.#request.part !== undefined) this.#sink.begin(this.#position)
    this.#goLive()
    if (!this.#request.untilEnded || !this.#isOver) return
    await events.settle().catch(() => {})
    this.end() // the last wanted event has been sent
  }

  /** `opened`: the number of the last change before the stream was opened, after which a new stream begins. */
  async #continueAfter(after: number | undefined, opened: number): Promise<void> {
    this.#previous = after
    this.#cursor = after ?? Math.min(opened, this.#parts.keeper.events.delivered)
    if (after === undefined && this.#request.part === undefined) this.#sink.begin(this.#cursor)
    else if (after === 0) this.#cursor = this.#parts.keeper.history.oldest
    else if (after !== undefined && !this.#isKnown(after)) await this.#resetUnknown(after)
  }

  /** Sends the events of dead replicas that the client lacks. Those of this replica follow. */
  async #continueAt(positions: Positions): Promise<void> {
    const { keeper, store } = this.#parts
    const { history, numbers } = keeper
    const blocks = numbers.blocks!()
    const owed = owedAfter(positions, blocks)
    const starts = owed === undefined ? [] : [owed.after, ...owed.inherited.map(({ after }) => after)]
    if (owed === undefined || owed.after > store.seq || starts.some((after) => after < history.oldest))
      return await this.#resetUnknown(positionsText(positions))
    const resent = new ResentEvents(owed, blocks)
    for (const range of resent.ranges()) {
      this.#previous = owed.inherited.includes(range) ? range.after : undefined
      const after = Math.max(history.oldest, range.after)
      if (after < range.upTo) await this.#replayRange({ ...range, after }, (event) => resent.takes(event))
    }
    this.#previous = undefined
    if (!owed.isNew) this.#previous = this.#request.part?.isNew ? undefined : owed.after
    this.#cursor = owed.after
    this.#ownAfter = owed.after
  }

  /** What a client of a part resumes after. All numbers of the blocks before the present one are used up. */
  get #position(): number {
    const { own } = this.#parts.keeper.numbers.blocks!()
    return Math.max(this.#cursor, startOf(own.at(-1)!))
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
    return isKnownNumber(this.#parts, after, this.filter.graphId)
  }

  /** Replays until nothing is left, and returns in the same turn of the event loop. */
  async #replay(): Promise<void> {
    const { events } = this.#parts.keeper
    while (!this.#hasEnded && this.#cursor < events.delivered) {
      try {
        await this.#replayTo(events.delivered)
      } catch (error) {
        await this.#resetIfGone(error)
      }
    }
  }

  async #resetIfGone(error: unknown): Promise<void> {
    if (!(error instanceof HistoryGone)) throw error
    await this.#reset('the events to resume from are not kept any more')
  }

  async #replayTo(last: number): Promise<void> {
    const { graphId } = this.filter
    const past = this.#parts.keeper.history.read({ after: this.#cursor, upTo: last, graphId })
    for await (const some of past) {
      const wanted = some.filter((event) => isWanted(this.filter, event) && !this.#isTold(event))
      this.#cursor = some.at(-1)!.seq
      if (wanted.length > 0) this.#send(wanted)
      if (!this.#hasEnded && !(await this.#sink.drained())) this.#cut()
      if (this.#hasEnded) return
    }
    this.#cursor = Math.max(this.#cursor, last)
  }

  /** Sends past events, and leaves the cursor where it is. */
  async #replayRange(range: OwedRange, isMeant: (event: ServiceEvent) => boolean): Promise<void> {
    if (this.#hasEnded) return
    const { graphId } = this.filter
    for await (const some of this.#parts.keeper.history.read({ ...range, graphId })) {
      const wanted = some.filter((event) => isWanted(this.filter, event) && !this.#isTold(event) && isMeant(event))
      if (wanted.length > 0) this.#send(wanted)
      if (!this.#hasEnded && !(await this.#sink.drained())) this.#cut()
      if (this.#hasEnded) return
    }
  }

  /** Whether the client has the past event, from this replica or from another one. */
  #isTold({ event, seq }: ServiceEvent): boolean {
    const { part } = this.#request
    if (event === 'graph_removed' && part?.tellsRemovalsOf(blockOf(seq)) === false) return true
    if (this.#ownAfter === undefined || seq <= this.#ownAfter) return false
    return !this.#parts.keeper.numbers.blocks!().own.includes(blockOf(seq))
  }

  /** As `#reset`, for a removed subject. It has no state, so all its kept events follow. */
  #resetUnknown(after: number | string): Promise<void> {
    const { events, history } = this.#parts.keeper
    const isRemoved = this.#request.subject.removed !== undefined
    const seq = isRemoved ? history.oldest : events.delivered
    return this.#reset(`the events after ${after} are not known here any more`, seq)
  }

  /** Sends the present state, which has all changes up to `seq`. Later events follow. */
  async #reset(reason: string, seq = this.#parts.keeper.events.delivered): Promise<void> {
    const { part, subject, seen = this.#parts } = this.#request
    const { waiting } = this.#parts
    const state = part === undefined ? await presentState({ store: seen.store, waiting }, subject) : {} // a part has a part of the state
    if (this.#hasEnded) return
    this.#cursor = seq
    this.#previous = undefined
    this.#sink.send([{ event: 'reset', seq, at: isoTime(Date.now()), reason, ...state }], undefined)
    this.#previous = seq
    if (part !== undefined) this.end()
    else if (!(await this.#sink.drained())) this.#cut()
  }

  #sendLive(events: readonly ServiceEvent[]): void {
    const last = events.at(-1)!.seq
    if (last <= this.#cursor) return
    const isNew = events[0]!.seq > this.#cursor
    const unsent = isNew ? events : events.filter(({ seq }) => seq > this.#cursor)
    const wanted = this.filter.tenant === undefined ? unsent : unsent.filter((event) => isWanted(this.filter, event))
    this.#cursor = last
    if (wanted.length > 0) this.#send(wanted)
    this.#pauseIfFull()
  }

  /** Sends changed reasons now, or when the stream goes live. */
  tell(reasons: readonly Reason[]): void {
    if (!this.#isLive) {
      this.#hasMissedReasons = true
      return
    }
    const { graphId, tenant } = this.filter
    const wanted = (graphId ?? tenant) === undefined ? reasons : reasons.filter(({ task }) => this.#isAbout(task))
    if (wanted.length === 0) return
    const seq = this.#previous ?? this.#cursor
    this.#sink.send(this.#parts.waiting.eventsOf(wanted, seq), this.#previous)
    this.#previous = seq
    this.#pauseIfFull()
  }

  #isAbout({ id, graph }: Task): boolean {
    const { graphId = graph.id, taskId = id, tenant = graph.tenant } = this.filter
    return graph.id === graphId && id === taskId && graph.tenant === tenant
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
    void this.#unlessBroken(() => this.#catchUp())
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

const filterOf = ({ graph, task, removed }: WatchSubject): EventFilter =>
  removed ?? { graphId: graph?.id ?? task?.graph.id, taskId: task?.id }
