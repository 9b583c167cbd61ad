/**
 * The events of all replicas, as one stream to one client.
 *
 * This replica reads a stream of events from each other replica. The hop header of the request says that the other replica
 * must send its own events only (`replica-events.ts`). This replica buffers no more than one chunk of each stream: while the
 * buffer of the client is full, it reads none of them, and the other replicas keep the events in their history.
 *
 * A session covers a fixed set of replicas. When a replica joins or leaves, a new session resumes at the positions of the
 * client, as after a reconnect. The replicas that adopted the graphs of a dead one send the events of it that the client
 * lacks. If nobody knows which events the client lacks, the session begins with the present state (`reset`).
 */
import { MAX_RESET_GRAPHS, type ServiceEvent } from '../../shared/contract/events.ts'
import { isoTime } from '../../shared/text/iso-time.ts'
import { JoinedPositions } from '../log/joined-positions.ts'
import type { OtherReplica } from '../log/keeper.ts'
import { blockOf } from '../log/number-blocks.ts'
import { type Positions, positionsText } from '../log/positions.ts'
import type { Joined } from '../operations/joined-pages.ts'
import { listGraphs } from '../operations/list-graphs.ts'
import type { Membership } from '../operations/membership.ts'
import type { OperationParts } from '../operations/parts.ts'
import type { EventSink } from '../operations/watch-request.ts'
import type { EventStream } from './event-stream.ts'
import { type EventPart, eventParts, LIVE, partText } from './event-text.ts'
import { readReplicaEvents } from './replica-events.ts'

/** Milliseconds before a replica that does not answer, or still takes graphs over, is asked again. */
const RETRY_MS = 1_000

/** Milliseconds that a stream waits for the positions of all replicas before it begins without those that are missing. */
const BEGIN_MS = 5_000

export interface JoinedEventsOptions {
  readonly parts: OperationParts
  readonly membership: Membership
  readonly keepAliveMs: number
  readonly client: EventStream
  /** Where the client resumes: 0 stands for the oldest kept events, undefined for the present. */
  readonly after: 0 | Positions | undefined
  readonly traceId: string
  /** Called once. */
  readonly onEnd: () => void
}

export class JoinedEvents {
  readonly #options: JoinedEventsOptions
  readonly #ended = new AbortController()

  constructor(options: JoinedEventsOptions) {
    this.#options = options
  }

  /** Resolves when the stream has ended. `joined`: the replicas at first. */
  async run(joined: Joined): Promise<void> {
    const { membership, client, onEnd } = this.#options
    let { after } = this.#options
    let reason: string | undefined
    try {
      for (let known = joined; ; known = await membership.now().catch(() => known)) {
        const session = new JoinedSession(this.#options, { joined: known, after, reason }, this.#ended.signal)
        reason = await session.run()
        if (this.#ended.signal.aborted) return
        after = reason === undefined ? session.positions.all : undefined
      }
    } catch {
      // the present state cannot be told: the client comes again
    } finally {
      this.#ended.abort()
      client.end()
      onEnd()
    }
  }

  end(): void {
    this.#ended.abort()
  }
}

/** How a session begins. */
interface Beginning {
  readonly joined: Joined
  readonly after: 0 | Positions | undefined
  /** If set, the client first gets the present state (`reset`), with this reason. */
  readonly reason: string | undefined
}

/** Why a session is over. */
type Over = { readonly reason: string | undefined }

class JoinedSession {
  readonly positions: JoinedPositions
  readonly #options: JoinedEventsOptions
  readonly #beginning: Beginning
  readonly #over = Promise.withResolvers<Over>()
  readonly #stop = new AbortController()
  readonly #client: AbortSignal
  /** Resolves when events may be sent. */
  readonly #open = Promise.withResolvers<void>()
  #isOpen = false
  /** Whether the client can resume from its positions. */
  #isKnown: boolean
  #isIncomplete = false
  /** Where a client without a position begins: at the moment of its request, not of the answers of other replicas. */
  readonly #now: number
  /** The number of the last event that the client got. */
  #lastSeq: number | undefined
  /** Replicas that have sent their past, or have not answered. */
  readonly #settled = new Set<number>()
  #ownPast: (() => void)[] = []

  constructor(options: JoinedEventsOptions, beginning: Beginning, client: AbortSignal) {
    const { after, joined } = beginning
    this.#options = options
    this.#beginning = beginning
    this.#client = client
    this.#now = options.parts.eventStreams.position
    this.#isKnown = typeof after === 'object'
    this.positions = new JoinedPositions(typeof after === 'object' ? after : undefined)
    if (this.#isKnown) this.positions.expect([this.#ownId, ...joined.others.map(({ id }) => id), ...joined.silent])
  }

  get #ownId(): number {
    return this.#options.parts.keeper.replica!.id
  }

  /** Resolves with the reason for a session that begins with the present state; undefined for one that goes on. */
  async run(): Promise<string | undefined> {
    const { membership } = this.#options
    const { joined, reason } = this.#beginning
    const finish = () => this.#over.resolve({ reason: undefined })
    const unwatch = membership.watch(joined, finish)
    this.#client.addEventListener('abort', finish)
    if (this.#client.aborted) finish()
    const late = setTimeout(() => void this.#begin(), BEGIN_MS)
    if (reason === undefined) this.#openNow()
    try {
      const openings = joined.others.map((replica) => this.#follow(replica))
      await Promise.race([Promise.all(openings), this.#over.promise])
      const watch = this.#client.aborted ? undefined : this.#watchOwn()
      const over = await this.#over.promise
      watch?.end()
      return over.reason
    } finally {
      clearTimeout(late)
      unwatch()
      this.#client.removeEventListener('abort', finish)
      this.#stop.abort()
      this.#openNow()
    }
  }

  /** Reads the events of another replica until the session ends. Resolves with the first answer or failure. */
  #follow(replica: OtherReplica): Promise<void> {
    const opened = Promise.withResolvers<void>()
    const read = async () => {
      while (!this.#stop.signal.aborted) {
        await this.#read(replica, opened.resolve).catch(() => {})
        opened.resolve()
        if (this.#stop.signal.aborted) return
        if (!this.#isKnown) this.positions.silent(replica.id)
        this.#settle(replica.id)
        await Bun.sleep(RETRY_MS)
      }
    }
    void read()
    return opened.promise
  }

  async #read(replica: OtherReplica, onOpened: () => void): Promise<void> {
    const { parts, keepAliveMs, traceId } = this.#options
    const answer = await readReplicaEvents(
      { others: parts.keeper.others, replica, keepAliveMs, signal: this.#stop.signal, traceId },
      this.#textFor(replica.id),
    )
    this.positions.begun(replica.id, answer.blocks)
    if (answer.isAdopting) this.#isIncomplete = true
    onOpened()
    for await (const { type, data, id } of answer.events) {
      if (type !== LIVE && this.#isPresent(replica.id)) continue
      if (type !== LIVE) await this.#open.promise
      if (this.#stop.signal.aborted) return
      this.#take(replica.id, { kind: type, seq: Number(id), data })
      if (!(await this.#options.client.drained())) this.#cut()
    }
  }

  #watchOwn() {
    const { keeper, eventStreams } = this.#options.parts
    const id = this.#ownId
    if (keeper.others.adopting.length > 0) this.#isIncomplete = true
    const { own } = keeper.numbers.blocks!()
    const isOthers = (block: number) => this.positions.isClaimed(block) && !keeper.numbers.blocks!().own.includes(block)
    const known = this.#positionsFor(id)
    const after = known === undefined ? this.#unknownAfter : new Map(known)
    this.positions.begun(id, own)
    const isNew = !this.#isKnown && this.#beginning.after === undefined
    const part = { tellsRemovalsOf: (block: number) => !isOthers(block), isNew }
    return eventStreams.open({ subject: {}, after, untilEnded: false, part }, this.#ownSink(id))
  }

  /** The positions to resume the stream of a replica from: those of the client until that replica has begun to send. */
  #positionsFor(replica: number): Positions | undefined {
    const { after } = this.#beginning
    if (typeof after === 'object' && !this.positions.hasBegun(replica)) return after
    return this.#isKnown ? this.positions.all : undefined
  }

  #textFor(replica: number): string | undefined {
    const positions = this.#positionsFor(replica)
    return positions === undefined ? this.#beginning.after?.toString() : positionsText(positions)
  }

  get #unknownAfter(): 0 | Positions | undefined {
    const { after, reason } = this.#beginning
    return after === undefined && reason === undefined ? new Map([[blockOf(this.#now), this.#now]]) : after
  }

  #ownSink(id: number): EventSink {
    const { client } = this.#options
    const isFull = () => !this.#isOpen || client.isFull
    const whenOpen = (work: () => void) => (this.#isOpen ? work() : this.#ownPast.push(work))
    return {
      begin: (seq) => this.#take(id, { kind: LIVE, seq, data: '' }),
      send: (events, previous) => {
        if (this.#isPresent(id)) return
        whenOpen(() => {
          for (const part of eventParts(events, previous)) this.#take(id, part)
        })
      },
      get isFull() {
        return isFull()
      },
      drained: async () => {
        await this.#open.promise
        return await client.drained()
      },
      end: () => this.#over.reject(new Error('the stream of this replica has ended')), // with the service, mostly
    }
  }

  /** Whether what a replica sends now is older than the beginning of the stream. */
  #isPresent(replica: number): boolean {
    return !this.#isOpen && !this.positions.isLive(replica)
  }

  #take(replica: number, part: EventPart): void {
    const { kind, seq, data } = part
    if (this.#stop.signal.aborted) return
    const { client } = this.#options
    if (kind === LIVE) {
      this.positions.live(replica, seq)
      this.#settle(replica)
    } else if (kind === 'reset') this.#over.resolve({ reason: (JSON.parse(data) as { reason: string }).reason })
    else if (kind === 'lagging') {
      if (replica === this.#ownId) this.#cut(part) // another one goes on where it was
    } else {
      this.#lastSeq = seq
      this.positions.sent(replica, seq)
      client.sendText(partText(this.#isKnown ? this.positions.text : undefined, part))
    }
  }

  /** A replica has sent its past, or has not answered. */
  #settle(replica: number): void {
    this.#settled.add(replica)
    const { others } = this.#beginning.joined
    if (this.#settled.size > others.length) void this.#begin()
  }

  /** Begins the stream once the position of each answering replica is known. */
  async #begin(): Promise<void> {
    const { joined, reason } = this.#beginning
    const ids = [this.#ownId, ...joined.others.map(({ id }) => id)]
    if (ids.every((id) => this.positions.isLive(id)) && joined.missing.length === joined.silent.length) {
      if (this.#isIncomplete) setTimeout(() => this.#over.resolve({ reason: undefined }), RETRY_MS)
      else if (this.positions.settle(joined.silent) && this.#isKnown) this.#tellPosition()
    }
    if (this.#isKnown || this.#stop.signal.aborted) return
    for (const id of [...ids, ...joined.silent]) if (!this.positions.isLive(id)) this.positions.silent(id)
    this.#isKnown = true
    if (reason !== undefined) await this.#sendPresent(reason).catch((error) => this.#over.reject(error))
    else this.#tellPosition()
    this.#openNow()
  }

  #tellPosition(): void {
    this.#options.client.sendText(`id: ${this.positions.text ?? ''}\n\n`)
  }

  async #sendPresent(reason: string): Promise<void> {
    const { parts, client, traceId } = this.#options
    const all = { filter: {}, after: undefined, limit: MAX_RESET_GRAPHS }
    const { graphs, nextCursor } = await listGraphs(parts, all, traceId)
    const truncated = nextCursor !== undefined
    const seq = parts.eventStreams.position
    const event: ServiceEvent = {
      ...{ event: 'reset', seq, at: isoTime(Date.now()), reason, graphs: [...graphs] },
      ...(truncated && { truncated }),
    }
    const [part] = eventParts([event], undefined)
    if (!this.#stop.signal.aborted) client.sendText(partText(this.positions.text, part!))
  }

  #openNow(): void {
    if (this.#isOpen) return
    this.#isOpen = true
    for (const work of this.#ownPast.splice(0)) work()
    this.#open.resolve()
  }

  /** The client reads too slowly. */
  #cut(told?: EventPart): void {
    if (this.#stop.signal.aborted) return
    const { client, parts } = this.#options
    const event: ServiceEvent = { event: 'lagging', seq: this.#lastSeq ?? 0, at: isoTime(Date.now()) }
    const [part] = eventParts([event], this.#lastSeq)
    client.sendText(partText(this.positions.text, told ?? part!))
    if (told === undefined) parts.eventStreams.laggingTotal++
    this.#over.reject(new Error('the client reads too slowly'))
  }
}
