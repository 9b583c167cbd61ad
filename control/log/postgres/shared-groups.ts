/**
 * Which graphs run of those that share a limit, over all replicas.
 *
 * The places are rows in the database (`place-rows.ts`). A replica makes the decisions that are due when it has written a
 * graph of a group, or the end of one. If that gives a place to a graph of another replica, or cancels one, it rings. Rings
 * may get lost, and a replica may be killed before it decides, so each looks at the groups of its graphs at intervals, too.
 */
import { messageOf, ServiceError, stackOf } from '../../../shared/contract/errors.ts'
import type { GraphConcurrency } from '../../../shared/contract/graph-groups.ts'
import type { Log } from '../../../shared/logs/log.ts'
import type { GraphOptions } from '../../rules/graph-options.ts'
import type { Graph } from '../../task/graph.ts'
import { fullText, type Groups, takenText } from '../../task/graph-groups.ts'
import type { Database } from './database.ts'
import { Looks } from './looks.ts'
import { type Places, readDecisions, settlePlaces } from './place-rows.ts'
import { changedIn, isRefused, type Place } from './place-rule.ts'
import type { TurnWriter } from './turn-writer.ts'
import { placeIn } from './turn-writes.ts'
import { refuseAway } from './unavailable.ts'

export interface SharedGroupsOptions {
  readonly database: Pick<Database, 'settings' | 'soon'>
  readonly turns: Pick<TurnWriter, 'kept'>
  readonly leaseMs: number
  readonly log: Log
}

export class SharedGroups implements Groups {
  readonly #options: SharedGroupsOptions
  onPlace: Groups['onPlace'] = () => {}
  onCancel: Groups['onCancel'] = () => {}
  /** The graphs of this replica that share a limit and have not ended, by number. */
  readonly #graphs = new Map<number, Graph>()
  /** The groups of these graphs, by name. */
  readonly #groups = new Map<string, Group>()
  /** Those that wait and would have started already. */
  readonly #kept = new Set<Graph>()
  /** Why graphs are cancelled for their groups. */
  readonly #reasons = new Map<Graph, Reason>()
  readonly looks: Looks
  /** Groups whose decisions are to be made next, and who waits for that. */
  #due = new Set<string>()
  #next: PromiseWithResolvers<void> | undefined
  #isSettling = false

  constructor(options: SharedGroupsOptions) {
    const { leaseMs, log } = options
    this.#options = options
    this.looks = new Looks({
      leaseMs,
      look: () => this.#look(),
      onAway: (error) => log.debug('cannot look for places of groups of graphs', { cause: messageOf(error) }),
      onFault: (error) => log.error('places of groups of graphs are not given', { cause: stackOf(error) }),
    })
  }

  /** `keep` asks for the places of adopted graphs. */
  recover(): void {}

  async whyRefused({ concurrency }: GraphOptions, tenant: string | undefined): Promise<string | undefined> {
    if (concurrency?.on_full !== 'refuse') return undefined
    const { group: name, onFull, limit } = placeIn(concurrency, tenant)
    const graph = { graph: 0, graphId: '', limit, onFull, isHeld: false, isNew: true, cancelledBy: undefined }
    const { next } = await this.#options.database.soon((sql) => readDecisions(sql, [name], [graph])).catch(refuseAway)
    const places = next.get(name)!
    return places.at(-1)!.isHeld ? undefined : fullIn(concurrency, places)
  }

  /** `decide` tells whether it has a place. */
  claim(graph: Graph): void {
    if (graph.options.concurrency !== undefined) this.#enter(graph)
  }

  #enter(graph: Graph): void {
    this.#graphs.set(graph.ordinal, graph)
    const { group: name } = placeIn(graph.options.concurrency!, graph.tenant)
    const group = this.#groups.get(name) ?? { holders: new Set(), graphs: 0 }
    this.#groups.set(name, group)
    group.graphs++
    graph.waitsFor = group.holders
  }

  /** Decides about a claimed graph that is written. Rejects with 409 if it must not wait, and with 503 if nobody can tell. */
  async decide(graph: Graph): Promise<void> {
    const { concurrency } = graph.options
    if (concurrency === undefined) return
    const { group } = placeIn(concurrency, graph.tenant)
    const mayWait = concurrency.on_full !== 'refuse'
    const deciding = this.#settle([group])
    if (mayWait) {
      await deciding.catch(() => {}) // a look makes up for it
      return
    }
    await deciding.catch(refuseAway)
    if (graph.waitsFor !== undefined) throw new ServiceError(409, fullText(concurrency, firstOf(graph.waitsFor)))
  }

  keep(graph: Graph): boolean {
    if (graph.options.concurrency === undefined) return false
    if (!this.#graphs.has(graph.ordinal)) {
      this.#enter(graph)
      this.looks.ring()
    }
    if (graph.waitsFor === undefined) return false
    this.#kept.add(graph)
    return true
  }

  /** What is to be cancelled for it is cancelled when that is decided. */
  accepted(graph: Graph): void {
    const reason = this.#reasons.get(graph)
    if (reason !== undefined) this.onCancel(graph, reason.by)
  }

  whyCancelled(graph: Graph): string | undefined {
    return this.#reasons.get(graph)?.why
  }

  release(graph: Graph): void {
    if (!this.#graphs.delete(graph.ordinal)) return
    graph.waitsFor = undefined
    this.#kept.delete(graph)
    this.#reasons.delete(graph)
    const { group: name } = placeIn(graph.options.concurrency!, graph.tenant)
    if (--this.#groups.get(name)!.graphs === 0) this.#groups.delete(name)
    void this.#freed(name)
  }

  /** Gives the place away as soon as it is certain that the graph has ended, or is removed. */
  async #freed(group: string): Promise<void> {
    try {
      await Promise.resolve() // whoever else watches the graph notes its end
      await this.#options.turns.kept()
      await this.#settle([group])
    } catch {
      // A look of the replica with the next graph makes up for it.
    }
  }

  async #look(): Promise<void> {
    const groups = [...this.#groups.keys()]
    if (groups.length === 0) return
    const { places, next } = await this.#options.database.soon((sql) => readDecisions(sql, groups))
    this.#take(places)
    const due = groups.filter((name) => changedIn(places.get(name)!, next.get(name)!).length > 0)
    if (due.length > 0) await this.#settle(due)
  }

  /** Makes the decisions that are due in these groups, with those that others ask for meanwhile in one transaction. */
  #settle(groups: readonly string[]): Promise<void> {
    for (const group of groups) this.#due.add(group)
    this.#next ??= Promise.withResolvers<void>()
    const { promise } = this.#next
    void this.#settleWhileDue()
    return promise
  }

  async #settleWhileDue(): Promise<void> {
    if (this.#isSettling) return
    this.#isSettling = true
    const { settings } = this.#options.database
    const isHere = (graph: number) => this.#graphs.has(graph)
    while (this.#next !== undefined) {
      const waiting = this.#next
      const groups = [...this.#due]
      this.#next = undefined
      this.#due = new Set()
      try {
        this.#take(await this.#options.database.soon((sql) => settlePlaces(sql, groups, { settings, isHere })))
        waiting.resolve()
      } catch (error) {
        waiting.reject(error)
      }
    }
    this.#isSettling = false
  }

  /** What is decided about graphs of this replica. An answer may come late: places are only given. */
  #take(all: Places): void {
    for (const [name, places] of all) {
      const group = this.#groups.get(name)
      if (group === undefined) continue
      group.holders.clear()
      for (const { isHeld, graphId: id } of places) if (isHeld) group.holders.add({ id })
      for (const place of places) {
        const graph = this.#graphs.get(place.graph)
        if (graph === undefined) continue
        const reason = this.#reasonIn(graph, place, group.holders)
        if (reason !== undefined && !this.#reasons.has(graph)) {
          this.#reasons.set(graph, reason)
          this.onCancel(graph, reason.by)
        }
        if (graph.waitsFor === undefined || !place.isHeld) continue
        graph.waitsFor = undefined
        if (this.#kept.delete(graph)) this.onPlace(graph)
      }
    }
  }

  /** A replica that is killed before it has refused a graph leaves it to another one. */
  #reasonIn(graph: Graph, place: Place, holders: NonNullable<Graph['waitsFor']>): Reason | undefined {
    const { concurrency } = graph.options
    const { cancelledBy: by } = place
    if (by !== undefined) return { by, why: takenText(concurrency!, by) }
    if (!isRefused(place) || !this.#kept.has(graph)) return undefined
    return { by: firstOf(holders), why: fullText(concurrency!, firstOf(holders)) }
  }
}

interface Group {
  /** The graphs with a place, as of the last answer. */
  readonly holders: Set<{ readonly id: string }>
  /** The graphs of this replica. */
  graphs: number
}

interface Reason {
  /** The id of a graph. */
  readonly by: string
  readonly why: string
}

/** Somebody holds a place while a graph waits. */
const firstOf = ([first]: Iterable<{ readonly id: string }>): string => first?.id ?? 'of another replica'

const fullIn = (concurrency: GraphConcurrency, places: readonly Place[]): string =>
  fullText(concurrency, places.find(({ isHeld }) => isHeld)!.graphId)
