/**
 * Which graphs run of those that share a limit (`concurrency`).
 *
 * A graph takes a place of its group, or the last position among those that wait for one, before it is written to disk.
 * It gives that up when it has ended, or is not accepted. Then those that wait longest start, each while fewer graphs
 * hold places than its own limit allows. Nobody overtakes: so the graphs that hold places are the oldest ones.
 *
 * Nothing of this is on disk. A start finds the graphs of which a task has started, which keep their places, and lets
 * the others decide in the order of acceptance. No limit is exceeded: the end of a graph is written before the start of
 * the next one. Replicas that share a database share the places, too (`log/postgres/shared-groups.ts`).
 */
import { ServiceError } from '../../shared/contract/errors.ts'
import type { GraphConcurrency } from '../../shared/contract/graph-groups.ts'
import { quoted } from '../../shared/request/unknown-names.ts'
import type { GraphOptions } from '../rules/graph-options.ts'
import type { Graph, Task } from './graph.ts'

/** The places of all groups, for the graphs that this service runs. */
export interface Groups {
  /** Called with each kept graph that has got a place. */
  onPlace: (graph: Graph) => void
  /** Called with each graph that is to be cancelled for another one, and its id. It may be one that is not accepted yet. */
  onCancel: (graph: Graph, by: string) => void
  /** Gives the graphs of an earlier run their places. They come in the order of their acceptance, before any other. */
  recover(graphs: Iterable<Graph>): void
  /** Why a graph of `tenant` that must not wait is refused now; undefined if it is not. Rejects with 503. */
  whyRefused(options: GraphOptions, tenant?: string): string | undefined | Promise<string | undefined>
  /** Takes a place for `graph`, or lets it wait for one. May throw 409 if it must not wait. */
  claim(graph: Graph): void
  keep(graph: Graph): boolean
  /** Has the graphs cancelled that have to end for `graph`, which is accepted now, and `graph` if it is one. */
  accepted(graph: Graph): void
  /** What completes the error of a task of `graph` that is cancelled; undefined unless the group is the reason. */
  whyCancelled(graph: Graph): string | undefined
  /** `graph` has ended, or is not accepted. */
  release(graph: Graph): void
}

interface Group {
  /** The graphs that hold a place, in the order in which they took it. */
  readonly holders: Set<Graph>
  /** The longest first. */
  readonly waiting: Set<Graph>
}

export class GraphGroups implements Groups {
  /** By `keyOf`. */
  readonly #groups = new Map<string, Group>()
  onPlace: Groups['onPlace'] = () => {}
  onCancel: Groups['onCancel'] = () => {}
  /** Graphs that wait and would have started already. */
  readonly #kept = new Set<Graph>()
  /** Graphs that are cancelled for others, and those. They have not ended. */
  readonly #cancelled = new Map<Graph, Graph>()

  recover(graphs: Iterable<Graph>): void {
    const live = [...graphs].filter(({ live, options }) => live > 0 && options.concurrency !== undefined)
    const others: Graph[] = []
    for (const graph of live.sort((a, b) => a.createdAt - b.createdAt)) {
      const since = lastRetryOf(graph)
      if (graph.tasks.some((task) => hasStarted(task, since))) this.#groupOf(graph).holders.add(graph)
      else others.push(graph)
    }
    for (const graph of others) this.#enter(graph)
  }

  whyRefused({ concurrency }: GraphOptions, tenant?: string): string | undefined {
    if (concurrency?.on_full !== 'refuse') return undefined
    const group = this.#groups.get(keyOf(concurrency, tenant))
    if (group === undefined || hasRoom(group, concurrency)) return undefined
    const [holder] = group.holders
    return fullText(concurrency, holder!.id)
  }

  claim(graph: Graph): void {
    if (graph.options.concurrency === undefined) return
    const fault = this.whyRefused(graph.options, graph.tenant)
    if (fault !== undefined) throw new ServiceError(409, fault)
    this.#enter(graph)
  }

  #enter(graph: Graph): void {
    const group = this.#groupOf(graph)
    group.waiting.add(graph)
    graph.waitsFor = group.holders
    this.#fill(group)
  }

  keep(graph: Graph): boolean {
    if (graph.waitsFor === undefined) return false
    this.#kept.add(graph)
    return true
  }

  accepted(graph: Graph): void {
    // A large graph may be on disk only after a later one, for which it is cancelled.
    const by = this.#cancelled.get(graph)
    for (const other of this.#toCancelFor(graph)) this.onCancel(other, graph.id)
    if (by !== undefined) this.onCancel(graph, by.id)
  }

  /** The oldest graphs that have to end before `graph`, which waits and asks for their cancel, gets a place. */
  #toCancelFor(graph: Graph): Graph[] {
    const { concurrency } = graph.options
    if (graph.waitsFor === undefined || concurrency?.on_full !== 'cancel_oldest') return []
    const { holders, waiting } = this.#groupOf(graph)
    const older: Graph[] = [...holders]
    for (const other of waiting) {
      if (other === graph) break
      older.push(other)
    }
    const staying = older.filter((other) => !this.#cancelled.has(other))
    const found = staying.slice(0, Math.max(0, staying.length - limitOf(concurrency) + 1))
    for (const other of found) this.#cancelled.set(other, graph)
    return found
  }

  whyCancelled(graph: Graph): string | undefined {
    const other = this.#cancelled.get(graph)
    return other && takenText(other.options.concurrency!, other.id)
  }

  release(graph: Graph): void {
    const { concurrency } = graph.options
    const key = concurrency && keyOf(concurrency, graph.tenant)
    const group = key && this.#groups.get(key)
    if (!group) return
    group.holders.delete(graph)
    group.waiting.delete(graph)
    graph.waitsFor = undefined
    this.#kept.delete(graph)
    this.#cancelled.delete(graph)
    this.#fill(group)
    if (group.holders.size === 0) this.#groups.delete(key!)
  }

  /** Gives places to those that wait longest. */
  #fill(group: Group): void {
    for (const graph of group.waiting) {
      if (group.holders.size >= limitOf(graph.options.concurrency!)) return
      group.waiting.delete(graph)
      group.holders.add(graph)
      graph.waitsFor = undefined
      if (this.#kept.delete(graph)) this.onPlace(graph)
    }
  }

  #groupOf({ options, tenant }: Graph): Group {
    const key = keyOf(options.concurrency!, tenant)
    const group = this.#groups.get(key) ?? { holders: new Set(), waiting: new Set() }
    this.#groups.set(key, group)
    return group
  }
}

/** Each tenant has names of its own for groups. */
const keyOf = ({ group }: GraphConcurrency, tenant: string | undefined): string => JSON.stringify([group, tenant])

/** The error of a graph that must not wait. `holder` is the id of a graph that has a place. */
export const fullText = (concurrency: GraphConcurrency, holder: string): string =>
  `concurrency: group ${quoted(concurrency.group)} is full (limit ${limitOf(concurrency)}): graph ${holder} has not ended`

/** Why a graph is cancelled for the graph with the id `by`. */
export const takenText = ({ group }: Pick<GraphConcurrency, 'group'>, by: string): string =>
  `graph ${by} takes its place in group ${quoted(group)}`

export const limitOf = ({ limit }: Pick<GraphConcurrency, 'limit'>): number => limit ?? 1

const hasRoom = ({ holders, waiting }: Group, concurrency: GraphConcurrency): boolean =>
  waiting.size === 0 && holders.size < limitOf(concurrency)

/** When tasks of `graph` were retried last: milliseconds since 1970; 0 if never. */
const lastRetryOf = ({ tasks }: Graph): number =>
  tasks.reduce((last, { rare }) => (rare.retried === undefined ? last : Math.max(last, Date.parse(rare.retried.at))), 0)

/** Whether `task` has done something since the time `since`. The outcome of an earlier graph that it has is nothing. */
const hasStarted = ({ startedAt, attemptStartedAt = startedAt, attempt, fanOut, rare }: Task, since: number): boolean =>
  rare.reused_from === undefined &&
  (rare.asked_at !== undefined ||
    (since === 0 && (attempt > 0 || fanOut !== undefined)) ||
    (attemptStartedAt !== undefined && attemptStartedAt >= since))
