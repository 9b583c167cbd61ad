/**
 * The proxies of all tasks whose network has rules.
 *
 * Each task has a socket in `directory`, by a name that stays the same: a service that is started again serves it at the same
 * path. Only the user of the service may enter the directory, and its forwarders have that user. Sandboxes do not see it.
 */
import { mkdirSync, readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import type { NetworkRules } from '../../shared/contract/runtime-request.ts'
import type { Rule } from '../../shared/egress/rule.ts'
import { messageOf } from '../../shared/errors.ts'
import { rulesOf } from '../../shared/runtime-request/network-rules.ts'
import type { Dialer } from './dial.ts'
import { type NetworkEvent, NetworkUse } from './network-use.ts'
import type { OwnAddresses } from './own-addresses.ts'
import type { Report } from './report.ts'
import { RulesInForce } from './rules-in-force.ts'
import { SESSION_TIMES, type SessionTimes } from './session.ts'
import { TaskProxy, type TaskProxyOptions } from './task-proxy.ts'

/** The rules of the operator. Without `allow` they restrict nothing beyond `deny`. */
export interface EgressBounds {
  readonly allow: readonly Rule[] | undefined
  readonly deny: readonly Rule[]
}

export interface EgressOptions {
  /** Absolute. */
  readonly directory: string
  readonly bounds: EgressBounds
  /** Connections of all tasks at a time. */
  readonly maxConnections: number
  readonly own: OwnAddresses
  readonly dialer: Dialer
  /** Default: those of a service. */
  readonly times?: SessionTimes
  readonly onFault: (taskId: string, error: unknown) => void
}

/** A task whose network has rules. */
export interface EgressTask {
  readonly task_id: string
  /** Never that of two tasks at a time. */
  readonly ordinal: number
  readonly rules: NetworkRules
  /** What an earlier service told of it. */
  readonly earlier: readonly NetworkEvent[]
  readonly onEvent: (event: NetworkEvent) => void
}

/** Counts since the start of the service. */
export interface EgressTotals {
  readonly allowed: number
  readonly failed: number
  readonly refused: number
  readonly bytesSent: number
  readonly bytesReceived: number
  readonly open: number
}

interface Served {
  readonly proxy: TaskProxy
  readonly use: NetworkUse
  readonly socketPath: string
}

export class Egress {
  readonly #options: EgressOptions
  readonly #served = new Map<string, Served>()
  readonly #totals = { allowed: 0, failed: 0, refused: 0, bytesSent: 0, bytesReceived: 0, open: 0 }

  constructor(options: EgressOptions) {
    this.#options = options
  }

  get totals(): EgressTotals {
    return { ...this.#totals }
  }

  /** Serves a task from now on. Returns the path of its socket. Throws if the socket cannot be made. */
  open({ task_id, ordinal, rules, earlier, onEvent }: EgressTask): string {
    const served = this.#served.get(task_id)
    if (served !== undefined) return served.socketPath
    const { directory, bounds, maxConnections, own, dialer, times = SESSION_TIMES, onFault } = this.#options
    const socketPath = join(directory, ordinal.toString(36))
    const inForce = new RulesInForce([bounds, rulesOf(rules)], own)
    const use = new NetworkUse(earlier, (report) => this.#count(report), onEvent)
    const proxy = this.#listen({
      ...{ socketPath, use, times },
      dial: dialer.forTask(inForce),
      isOpaque: (target) => inForce.isOpaque(target),
      maxConnections: rules.max_connections!,
      maxBytes: rules.max_bytes,
      enter: () => this.#totals.open < maxConnections && ++this.#totals.open > 0,
      leave: () => this.#totals.open--,
      onFault: (error) => onFault(task_id, error),
    })
    this.#served.set(task_id, { proxy, use, socketPath })
    return socketPath
  }

  #listen(options: TaskProxyOptions): TaskProxy {
    const { directory } = this.#options
    try {
      mkdirSync(directory, { recursive: true, mode: 0o700 })
      return new TaskProxy(options)
    } catch (error) {
      const remedy = 'the data directory has to be on a file system that can hold Unix sockets'
      throw new Error(`cannot open the socket of its network in ${directory}: ${messageOf(error)} (${remedy})`)
    }
  }

  /** What a task has used so far. Undefined for a task without rules. */
  useOf(taskId: string): NetworkUse | undefined {
    return this.#served.get(taskId)?.use
  }

  /** Cuts the connections of a task and removes its socket. Returns what it used; undefined for a task without rules. */
  close(taskId: string): NetworkUse | undefined {
    const served = this.#served.get(taskId)
    this.#served.delete(taskId)
    served?.proxy.close()
    return served?.use
  }

  /** Serves no task any more. */
  stop(): void {
    for (const taskId of [...this.#served.keys()]) this.close(taskId)
  }

  /** Removes sockets of an earlier service that no task has. */
  removeStrays(): void {
    const { directory } = this.#options
    const used = new Set([...this.#served.values()].map(({ socketPath }) => socketPath))
    for (const name of namesIn(directory)) {
      const path = join(directory, name)
      if (!used.has(path)) rmSync(path, { force: true, recursive: true })
    }
  }

  #count(report: Report): void {
    if (report.verdict === 'refused') this.#totals.refused++
    else {
      if (report.failure === undefined) this.#totals.allowed++
      else this.#totals.failed++
      this.#totals.bytesSent += report.bytesSent
      this.#totals.bytesReceived += report.bytesReceived
    }
  }
}

function namesIn(directory: string): string[] {
  try {
    return readdirSync(directory)
  } catch {
    return [] // no task has had rules yet
  }
}
