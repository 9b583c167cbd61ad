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
import type { Joined } from '../operations/joined-lines.ts'
import { type JoinedEventsOptions, JoinedSession } from './joined-session.ts'

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
