/**
 * The proxy of one task: its socket, its connections, its limits, and what is told of them.
 *
 * The socket is a file that only this task gets to see, through the forwarder in its sandbox. So a connection needs no name
 * and no password to be known as that of the task.
 */
import { chmodSync, rmSync } from 'node:fs'
import type { UnixSocketListener } from 'bun'
import { Endpoint } from './endpoint.ts'
import type { NetworkUse } from './network-use.ts'
import { Session, type SessionOwner, type SessionTimes } from './session.ts'
import type { Refusal } from './verdict.ts'

/** Connections beyond `max_connections` that may wait for their answer. More are closed at once. */
export const SPARE_SESSIONS = 64

/** Checks for idle connections in the time that one may be idle. */
const IDLE_CHECKS = 20

export interface TaskProxyOptions {
  readonly socketPath: string
  readonly dial: SessionOwner['dial']
  readonly isOpaque: SessionOwner['isOpaque']
  readonly maxConnections: number
  /** Undefined: no limit. */
  readonly maxBytes: number | undefined
  readonly use: NetworkUse
  readonly times: SessionTimes
  /** Takes a place among the connections of all tasks. False: there is none. */
  readonly enter: () => boolean
  readonly leave: () => void
  readonly onFault: (error: unknown) => void
}

export class TaskProxy {
  readonly #options: TaskProxyOptions
  readonly #listener: UnixSocketListener<Endpoint | undefined>
  readonly #owner: SessionOwner
  readonly #sessions = new Set<Session>()
  readonly #idleChecks: Timer
  #connections = 0
  #isExhausted = false

  /** Listens at `socketPath`, in place of what an earlier service left there. Throws if it cannot. */
  constructor(options: TaskProxyOptions) {
    this.#options = options
    const { socketPath, dial, isOpaque, times, use, leave } = options
    this.#owner = {
      ...{ dial, isOpaque, times },
      enter: () => this.#enter(),
      leave: () => {
        this.#connections--
        leave()
      },
      spend: (bytes) => this.#spend(bytes),
      report: (report) => use.report(report),
    }
    rmSync(socketPath, { force: true })
    this.#listener = Bun.listen<Endpoint | undefined>({
      ...{ unix: socketPath, allowHalfOpen: true, data: undefined },
      socket: Endpoint.handlers((client) => this.#accept(client)),
    })
    chmodSync(socketPath, 0o600)
    this.#idleChecks = setInterval(() => this.#cutIdle(), options.times.idleMs / IDLE_CHECKS)
    this.#isExhausted = this.#isOverBytes(0)
  }

  /** Cuts all connections, reports them, and removes the socket. */
  close(): void {
    clearInterval(this.#idleChecks)
    this.#listener.stop(true)
    rmSync(this.#options.socketPath, { force: true })
    for (const session of [...this.#sessions]) session.cut()
  }

  #accept(client: Endpoint): void {
    const { maxConnections, use, onFault } = this.#options
    if (this.#sessions.size >= maxConnections + SPARE_SESSIONS) {
      use.report({ verdict: 'refused', refusal: { kind: 'max_connections' } })
      client.destroy()
      return
    }
    const session = new Session(client, this.#owner)
    this.#sessions.add(session)
    void session
      .run()
      .catch((error) => {
        client.destroy()
        onFault(error)
      })
      .finally(() => this.#sessions.delete(session))
  }

  #enter(): Refusal | undefined {
    const { maxConnections, enter } = this.#options
    if (this.#isExhausted) return { kind: 'max_bytes' }
    if (this.#connections >= maxConnections) return { kind: 'max_connections' }
    if (!enter()) return { kind: 'busy' }
    this.#connections++
    return undefined
  }

  /** Counts bytes before they are passed on. All connections are cut once there are too many. */
  #spend(bytes: number): boolean {
    if (this.#isExhausted) return false
    if (!this.#isOverBytes(bytes)) {
      this.#options.use.spend(bytes)
      return true
    }
    this.#isExhausted = true
    for (const session of [...this.#sessions]) session.cut({ kind: 'max_bytes' })
    return false
  }

  #isOverBytes(more: number): boolean {
    const { maxBytes, use } = this.#options
    return maxBytes !== undefined && use.bytes + more > maxBytes
  }

  #cutIdle(): void {
    const nowMs = performance.now()
    for (const session of [...this.#sessions]) session.cutIfIdle(nowMs)
  }
}
