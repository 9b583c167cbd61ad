/**
 * A client that follows all events over many connections, to whichever replica answers, and resumes with the last number
 * that it got. Nothing may be told twice, unless the stream begins anew (`reset`), or it comes with the number that it had: that
 * is how a client recognises what comes again over a takeover (docs/cluster.md).
 */
import type { ServiceEvent } from '../../shared/contract/events.ts'
import { isTerminal } from '../../shared/contract/task-status.ts'
import { EventStreamClient } from './event-stream.ts'
import type { Random } from './random.ts'

/** Milliseconds between two tries to connect. */
const PAUSE_MS = 50

export class EventFollower {
  readonly #urls: () => readonly string[]
  readonly #random: Random
  /** What was told, with the number of its event. */
  readonly #told = new Map<string, number>()
  readonly #following: Promise<void>
  /** Tasks that were retried: they end more than once. */
  readonly #retried = new Set<string>()
  /** What was told twice, in words. */
  readonly faults: string[] = []
  #stream: EventStreamClient | undefined
  #lastId: string | undefined
  #isOver = false
  /** Events so far. */
  heard = 0

  constructor(urls: () => readonly string[], random: Random) {
    this.#urls = urls
    this.#random = random
    this.#following = this.#follow()
  }

  async #follow(): Promise<void> {
    for (; !this.#isOver; await Bun.sleep(PAUSE_MS)) {
      const urls = this.#urls()
      const url = `${urls[this.#random(urls.length)]}/events`
      const headers = this.#lastId === undefined ? {} : { 'last-event-id': this.#lastId }
      const stream = await EventStreamClient.open(url, headers as Record<string, string>).catch(() => undefined)
      if (stream === undefined) continue
      this.#stream = stream
      if (this.#isOver) break
      for (const event of await stream.ended()) this.#hear(event)
      this.#lastId = stream.lastId ?? this.#lastId
    }
  }

  #hear(event: ServiceEvent): void {
    this.heard++
    if (event.event === 'reset') this.#told.clear()
    if (event.event === 'tasks_retried') for (const id of event.retried) this.#retried.add(`${id} in ${event.graph_id}`)
    const what = this.#onceOnly(event)
    if (what === undefined) return
    const before = this.#told.get(what)
    if (before !== undefined && before !== event.seq)
      this.faults.push(`told twice: ${what}, as ${before} and as ${event.seq}`)
    this.#told.set(what, event.seq)
  }

  async stop(): Promise<void> {
    this.#isOver = true
    await this.#stream?.[Symbol.asyncDispose]()
    await this.#following
  }

  /** The name of what happens once; undefined for what may happen again. */
  #onceOnly(event: ServiceEvent): string | undefined {
    if (event.event === 'graph_accepted' || event.event === 'graph_ended') return `${event.event} of ${event.graph_id}`
    if (event.event !== 'task_changed' || !isTerminal(event.status)) return undefined
    const task = `${event.task_id} in ${event.graph_id}`
    return this.#retried.has(task) ? `end of attempt ${event.attempt} of ${task}` : `end of ${task}`
  }
}
