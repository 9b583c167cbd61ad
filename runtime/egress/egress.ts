/**
 * The proxies of all tasks whose network has rules.
 *
 * Each task has a socket in `directory`, by a name that stays the same: a service that is started again serves it at the same
 * path. Only the user of the service may enter the directory, and its forwarders have that user. Sandboxes do not see it.
 */
import { mkdirSync, readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { messageOf } from '../../shared/contract/errors.ts'
import type { NetworkRules } from '../../shared/contract/runtime-request.ts'
import { parseRule, type Rule } from '../../shared/egress/rule.ts'
import { openedRulesOf, rulesOf } from '../../shared/request/network-rules.ts'
import type { CertificateAuthority } from './authority.ts'
import { Credentials, type ReadSecret } from './credentials.ts'
import type { Dialer } from './dial.ts'
import { NetworkUse } from './network-use.ts'
import { Places } from './places.ts'
import type { NetworkEvent, Report } from './report.ts'
import { RulesInForce } from './rules-in-force.ts'
import type { ServiceAddresses } from './service-addresses.ts'
import { SESSION_TIMES, type SessionTimes } from './session.ts'
import { TaskProxy, type TaskProxyOptions } from './task-proxy.ts'
import { TlsEnds } from './tls-ends.ts'
import { UseFile } from './use-file.ts'
import type { Refusal } from './verdict.ts'

/** The rules of the operator. Without `allow` they restrict nothing beyond `deny`. */
export interface EgressBounds {
  readonly allow: readonly Rule[] | undefined
  readonly deny: readonly Rule[]
}

/** The bounds of tasks of tenants, where the operator names no hosts. What their own rules call opaque may be so. */
const PUBLIC_HOSTS: readonly Rule[] = [{ ...parseRule('*'), isOpaque: true }]

export interface EgressOptions {
  /** Absolute. */
  readonly directory: string
  readonly bounds: EgressBounds
  /** Connections of all tasks at a time. */
  readonly maxConnections: number
  /** Tasks that may run at a time. */
  readonly maxTasks: number
  readonly services: ServiceAddresses
  readonly dialer: Dialer
  /** Signs for hosts with rules about single requests. */
  readonly authority: CertificateAuthority
  /** Authorities of servers, in PEM. Default: those that Bun trusts, with NODE_EXTRA_CA_CERTS. */
  readonly roots?: string
  /** Default: those of a service. */
  readonly times?: SessionTimes
  readonly onFault: (taskId: string, error: unknown) => void
  /** What a task uses cannot be written any more. */
  readonly onUseFault: (taskId: string, error: unknown) => void
}

/** A task whose network has rules. */
export interface EgressTask {
  readonly task_id: string
  /** Never that of two tasks at a time. */
  readonly ordinal: number
  readonly rules: NetworkRules
  /** Whether it reaches public addresses only, unless the operator lists others. */
  readonly isTenantOnly?: boolean
  /** Reads what rules add to requests of the task. */
  readonly readSecret: ReadSecret
  /** Names of secrets, by the texts that the task has in their place. */
  readonly placeholders?: ReadonlyMap<string, string>
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
  readonly #places: Places
  readonly #tlsEnds: TlsEnds
  readonly #served = new Map<string, Served>()
  readonly #totals = { allowed: 0, failed: 0, refused: 0, bytesSent: 0, bytesReceived: 0 }

  constructor(options: EgressOptions) {
    this.#options = options
    this.#places = new Places(options.maxConnections, options.maxTasks)
    this.#tlsEnds = new TlsEnds(options.directory, options.authority)
  }

  get totals(): EgressTotals {
    return { ...this.#totals, open: this.#places.taken }
  }

  /** Serves a task from now on. Returns the path of its socket. Throws if the socket cannot be made. */
  open({
    task_id,
    ordinal,
    rules,
    isTenantOnly = false,
    readSecret,
    placeholders,
    earlier,
    onEvent,
  }: EgressTask): string {
    const served = this.#served.get(task_id)
    if (served !== undefined) return served.socketPath
    const { directory, bounds, services, dialer, roots, times = SESSION_TIMES } = this.#options
    const { onFault, onUseFault } = this.#options
    const socketPath = join(directory, ordinal.toString(36))
    const bound = isTenantOnly && bounds.allow === undefined ? { ...bounds, allow: PUBLIC_HOSTS } : bounds
    const inForce = new RulesInForce([bound, rulesOf(rules)], services)
    const onReport = (report: Report) => this.#count(report)
    const file = this.#made(() => new UseFile(usePathOf(socketPath), (error) => onUseFault(task_id, error)))
    const use = new NetworkUse({ file, earlier, onReport, onEvent })
    const proxy = this.#listen({
      ...{ socketPath, use, times },
      dial: dialer.forTask(inForce),
      isOpaque: (target) => inForce.isOpaque(target),
      credentials: new Credentials(openedRulesOf(rules), readSecret, placeholders),
      endTls: (client, host) => this.#tlsEnds.end(client, host),
      roots,
      maxConnections: rules.max_connections!,
      maxBytes: rules.max_bytes,
      places: this.#places.forTask(),
      onFault: (error) => onFault(task_id, error),
    })
    this.#served.set(task_id, { proxy, use, socketPath })
    return socketPath
  }

  #listen(options: TaskProxyOptions): TaskProxy {
    try {
      return this.#made(() => new TaskProxy(options))
    } catch (error) {
      options.use.close()
      throw error
    }
  }

  /** What `make` makes in the directory. */
  #made<T>(make: () => T): T {
    const { directory } = this.#options
    try {
      mkdirSync(directory, { recursive: true, mode: 0o700 })
      return make()
    } catch (error) {
      const remedy = 'the data directory has to be on a file system that can hold Unix sockets'
      throw new Error(`cannot open the socket of its network in ${directory}: ${messageOf(error)} (${remedy})`)
    }
  }

  /** What a task has used so far. Undefined for a task without rules. */
  useOf(taskId: string): NetworkUse | undefined {
    return this.#served.get(taskId)?.use
  }

  /** Connections that a task has open. */
  openOf(taskId: string): number {
    return this.#served.get(taskId)?.use.open ?? 0
  }

  /**
   * Cuts the connections of a task, with the reason, and removes its socket. Returns what it used, which stays known;
   * undefined for a task without rules.
   */
  close(taskId: string, reason?: Refusal): NetworkUse | undefined {
    const served = this.#served.get(taskId)
    if (served === undefined) return undefined
    served.proxy.close(reason)
    served.use.close()
    return served.use
  }

  /** The same for a task whose use nobody asks for any more, or which has been stored. */
  forget(taskId: string): void {
    const served = this.#served.get(taskId)
    if (served === undefined) return
    this.close(taskId)
    this.#served.delete(taskId)
    rmSync(usePathOf(served.socketPath), { force: true })
  }

  /** Serves no task any more. The next service goes on from what they have used. */
  stop(): void {
    for (const taskId of this.#served.keys()) this.close(taskId, { kind: 'restart' })
    this.#tlsEnds.stop()
  }

  /** Removes what an earlier service left of tasks that are no more. */
  removeStrays(): void {
    const { directory } = this.#options
    const ofTasks = [...this.#served.values()].flatMap(({ socketPath }) => [socketPath, usePathOf(socketPath)])
    const used = new Set([...ofTasks, ...this.#tlsEnds.paths])
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

/** What the task of a socket has used. */
const usePathOf = (socketPath: string): string => `${socketPath}.use`

function namesIn(directory: string): string[] {
  try {
    return readdirSync(directory)
  } catch {
    return [] // no task has had rules yet
  }
}
