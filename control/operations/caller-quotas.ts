/** What callers with names may submit: types of tasks, labels, how often, and how much at a time. */
import { ServiceError } from '../../shared/contract/errors.ts'
import { GROUP_TYPE } from '../../shared/contract/fan-out.ts'
import type { MemberInput } from '../../shared/contract/submission.ts'
import { type Caller, hasRight, isFenced, lacking } from '../../shared/http/callers.ts'
import { normalizeTool } from '../rules/normalize.ts'
import { type CommandServers, type TenantTask, whyHost, whyOtherTenant } from '../rules/tenant-tasks.ts'
import type { Graph, Task } from '../task/graph.ts'
import type { TaskStore } from '../task/task-store.ts'

const MINUTE_MS = 60_000

/** What a caller submits. */
interface Submitted extends Pick<Graph, 'options'> {
  readonly submitted: readonly Pick<Task, 'id' | 'type' | 'toolName' | 'input' | 'options'>[]
}

/** What is left of `graphs_per_minute`. It fills again all the time. */
interface Allowance {
  left: number
  at: number
}

export class CallerQuotas {
  readonly #store: Pick<TaskStore, 'graphs'>
  readonly #servers: CommandServers
  readonly #allowances = new WeakMap<Caller, Allowance>()
  /** Graphs that may have live tasks, by the name of the token. Filled when a token has such a limit. */
  #live: Map<string, Set<Graph>> | undefined

  constructor(store: Pick<TaskStore, 'graphs'>, servers: CommandServers) {
    this.#store = store
    this.#servers = servers
  }

  /**
   * Takes a checked graph of the caller, if there is one. Throws 403 for what its token may never submit, and 429 for what it
   * may submit later. `giveUp` takes it back.
   */
  take(graph: Graph, caller: Caller | undefined, now = performance.now()): void {
    this.#take(graph, graph.tasks.length, caller, now)
  }

  /** As `take`, for `count` tasks of `graph` that the caller has run again. */
  retry(graph: Graph, count: number, caller: Caller | undefined, now = performance.now()): void {
    this.#take(graph, count, caller, now)
  }

  /**
   * As `take`, for `added` tasks, which the caller adds to `graph` in place of as many others as `removed`. A dry run takes
   * nothing, and is not held to a rate.
   */
  patch(graph: Graph, added: readonly Task[], removed: number, caller: Caller | undefined, isDryRun: boolean): void {
    const submitted = { options: graph.options, submitted: added }
    const count = Math.max(0, added.length - removed)
    if (!isDryRun) this.#take(graph, count, caller, performance.now(), submitted)
    else if (caller !== undefined) this.#ensureTaken(submitted, count, caller)
  }

  #take(graph: Graph, count: number, caller: Caller | undefined, now: number, submitted: Submitted = graph): void {
    if (caller !== undefined) {
      this.#ensureTaken(submitted, count, caller)
      this.#ensureRate(caller, now)
    }
    if (graph.submittedBy !== undefined) this.#live?.get(graph.submittedBy)?.add(graph)
  }

  #ensureTaken(submitted: Submitted, count: number, caller: Caller): void {
    ensureAllowed(submitted, caller)
    if (caller.grant.tenant !== undefined) this.ensureOfTenant(eachTask(submitted.submitted), caller)
    this.#ensureRoom(count, caller)
  }

  /** Throws 403 for a task that the caller may not submit because of its tenant. */
  ensureOfTenant(tasks: Iterable<NamedTask>, caller: Caller | undefined): void {
    for (const task of tasks) {
      const fault = this.tenantFault(task, caller)
      if (fault !== undefined) throw new ServiceError(403, fault)
    }
  }

  /** Why the caller may not submit `task`; undefined if it may, as far as its tenant is concerned. */
  tenantFault(task: NamedTask, caller: Caller | undefined): string | undefined {
    const { name, tenant } = caller?.grant ?? {}
    if (tenant === undefined) return undefined
    const other = whyOtherTenant(task, tenant)
    if (other !== undefined) return `task ${task.id}: ${other}`
    const why = isFenced(caller) ? whyHost(task, this.#servers) : undefined
    return why && `task ${task.id}: the token ${name} lacks the right host: ${why}`
  }

  /** The graph was not accepted. */
  giveUp(graph: Graph): void {
    if (graph.submittedBy !== undefined) this.#live?.get(graph.submittedBy)?.delete(graph)
  }

  #ensureRate(caller: Caller, now: number): void {
    const { name, graphs_per_minute: most } = caller.grant
    if (most === undefined) return
    const before = this.#allowances.get(caller) ?? { left: most, at: now }
    const left = Math.min(most, before.left + ((now - before.at) * most) / MINUTE_MS)
    if (left < 1) {
      this.#allowances.set(caller, { left, at: now })
      const seconds = Math.ceil(((1 - left) * MINUTE_MS) / most / 1_000)
      throw new ServiceError(429, `the token ${name} may submit ${most} graphs a minute: try again in ${seconds} s`, {
        headers: { 'retry-after': String(seconds) },
      })
    }
    this.#allowances.set(caller, { left: left - 1, at: now })
  }

  #ensureRoom(count: number, { grant: { name, live_tasks: most } }: Caller): void {
    if (most === undefined) return
    const live = this.#liveTasksOf(name)
    if (live + count <= most) return
    const text = `the graph has ${count} tasks, ${live} of the token ${name} have not ended, and it may have ${most}`
    if (count > most) throw new ServiceError(413, `${text} (split the graph)`)
    throw new ServiceError(429, `${text}: try again when some have ended`)
  }

  #liveTasksOf(name: string): number {
    this.#live ??= new Map()
    let graphs = this.#live.get(name)
    if (graphs === undefined) {
      graphs = new Set([...this.#store.graphs].filter(({ submittedBy, live }) => submittedBy === name && live > 0))
      this.#live.set(name, graphs)
    }
    let tasks = 0
    for (const graph of graphs) {
      if (graph.live === 0) graphs.delete(graph)
      else tasks += graph.live
    }
    return tasks
  }
}

/** Throws 403. */
function ensureAllowed(graph: Submitted, caller: Caller): void {
  const { name, types, labels = {} } = caller.grant
  const { concurrency, labels: given = {} } = graph.options
  if (concurrency?.on_full === 'cancel_oldest' && !hasRight(caller, 'cancel')) throw lacking(caller, 'cancel')
  for (const [label, value] of Object.entries(labels)) {
    if (given[label] === value) continue
    throw new ServiceError(
      403,
      `a graph of the token ${name} needs the label ${label} with the value ${JSON.stringify(value)}`,
    )
  }
  if (types === undefined) return
  for (const { type } of eachTask(graph.submitted)) {
    if (types.includes(type)) continue
    throw new ServiceError(403, `the token ${name} may not submit tasks of type ${type} (only ${types.join(', ')})`)
  }
}

interface NamedTask extends TenantTask {
  readonly id: string
}

/** Its tasks, and those that groups will have. */
function* eachTask(tasks: Submitted['submitted']): Generator<NamedTask> {
  for (const task of tasks) {
    yield task
    yield* membersIn(task.id, task.options.tasks)
  }
}

function* membersIn(group: string, members: readonly MemberInput[] | undefined): Generator<NamedTask> {
  for (const { id: name, type, tool_name, params, input, ...more } of members ?? []) {
    const id = `${group}/${name}`
    yield { id, ...normalizeTool(type ?? GROUP_TYPE, tool_name ?? undefined), input: input ?? params ?? undefined }
    yield* membersIn(id, (more as { readonly tasks?: readonly MemberInput[] }).tasks)
  }
}
