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
import type { TaskPlaces } from './places.ts'
import { Session, type SessionOwner, type SessionTimes } from './session.ts'
import type { Refusal } from './verdict.ts'

/** Connections without a place: they wait for their answer, or have to read it. More are closed at once. */
export const SPARE_SESSIONS = 64

/** Checks for idle connections in the time that one may be idle. */
const IDLE_CHECKS = 20

export interface TaskProxyOptions {
  readonly socketPath: string
  readonly dial: SessionOwner['dial']
  readonly isOpaque: SessionOwner['isOpaque']
  readonly credentials: SessionOwner['credentials']
  readonly endTls: SessionOwner['endTls']
  readonly roots: SessionOwner['roots']
  readonly maxConnections: number
  /** Undefined: no limit. */
  readonly maxBytes: number | undefined
  readonly use: NetworkUse
  readonly times: SessionTimes
  /** Among the connections of all tasks. */
  readonly places: TaskPlaces
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
    const { socketPath, dial, isOpaque, credentials, endTls, roots, times, use, places } = options
    this.#owner = {
      ...{ dial, isOpaque, credentials, endTls, roots, times },
      enter: () => this.#enter(),
      leave: () => {
        this.#connections--
        places.leave()
      },
      mayLinger: () => this.#spares <= SPARE_SESSIONS,
      spend: (sent, received) => this.#spend(sent, received),
      report: (report) => use.report(report),
      opened: (connection) => use.opened(connection),
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

  /** Cuts all connections, reports them with the reason, and removes the socket. */
  close(reason?: Refusal): void {
    clearInterval(this.#idleChecks)
    this.#listener.stop(true)
    rmSync(this.#options.socketPath, { force: true })
    for (const session of [...this.#sessions]) session.cut(reason)
  }

  #accept(client: Endpoint): void {
    const { use, onFault } = this.#options
    const obstacle = this.#enter()
    if (obstacle !== undefined && this.#spares >= SPARE_SESSIONS) {
      use.report({ verdict: 'refused', refusal: obstacle })
      client.destroy()
      return
    }
    const session = new Session(client, this.#owner, obstacle === undefined)
    this.#sessions.add(session)
    void session
      .run()
      .catch((error) => {
        client.destroy()
        onFault(error)
      })
      .finally(() => this.#sessions.delete(session))
  }

  /** Connections without a place. */
  get #spares(): number {
    return this.#sessions.size - this.#connections
  }

  #enter(): Refusal | undefined {
    const { maxConnections, places } = this.#options
    if (this.#isExhausted) return { kind: 'max_bytes' }
    if (this.#connections >= maxConnections) return { kind: 'max_connections' }
    if (!places.enter()) return { kind: 'busy' }
    this.#connections++
    return undefined
  }

  /** Counts bytes before they are passed on. All connections are cut once there are too many. */
  #spend(sent: number, received: number): boolean {
    if (this.#isExhausted) return false
    if (!this.#isOverBytes(sent + received)) {
      this.#options.use.spend(sent, received)
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
