/**
 * Takes over the graphs of replicas that are gone: builds them from their rows, and hands them to the service.
 *
 * Numbers of changes only rise. A graph may have higher numbers than this replica has come to, and they are those of a
 * replica that lives, perhaps. So this one goes on in a new block of numbers then.
 */
import { messageOf, UsageError } from '../../../shared/contract/errors.ts'
import type { Log } from '../../../shared/logs/log.ts'
import { runCooperatively } from '../../../shared/process/steps.ts'
import type { Graph, Task } from '../../task/graph.ts'
import type { TaskStore } from '../../task/task-store.ts'
import type { NumberedChange } from '../event-rows.ts'
import { encodeStates } from '../journaled-state.ts'
import type { StoredCallbacks } from '../kept-callbacks.ts'
import { blockOf, isHalfUsed, type NumberBlocks, startOf } from '../number-blocks.ts'
import { Adoption } from './adoption.ts'
import type { FoundGraph, KeptGraph } from './adoption-rows.ts'
import { type RecoveredGraph, recoveredGraph } from './recovered-graphs.ts'
import type { SharedRows } from './shared-rows.ts'
import type { TurnWriter } from './turn-writer.ts'
import type { UnkeptWrites } from './unkept-writes.ts'

export type OnTakeover = 'rerun' | 'fail'

/** What happens to graphs of replicas that are gone, while this one serves. */
export interface TakeoverEvents {
  /** `toKillRemotely`: cancelled tasks whose attempts another service may not have ended yet. */
  adopted(graph: Graph, toKillRemotely: readonly Task[]): void
  /** What is kept of the callbacks of adopted graphs. */
  callbacks(graphs: readonly Graph[], stored: StoredCallbacks): void
}

/** What a start found in the database. */
export interface RecoveredRows {
  readonly graphCount: number
  /** Cancelled tasks whose attempts another service may not have ended yet. */
  readonly toKillRemotely: readonly Task[]
}

export interface TakeoverOptions {
  readonly rows: SharedRows
  readonly store: TaskStore
  readonly writes: UnkeptWrites
  readonly turns: Pick<TurnWriter, 'kept' | 'lease'>
  /** What becomes of an attempt that a replica carried out itself before it was gone. */
  readonly onTakeover: OnTakeover
  /** Has the newest state of a task kept. */
  readonly noteTask: (task: Task) => void
  readonly noteNumbered: (change: NumberedChange) => void
  /** Encodes the changes so far: no frame has numbers of two blocks. */
  readonly encode: () => void
  readonly log: Log
}

export class Takeover {
  readonly #options: TakeoverOptions
  readonly #adoption: Adoption
  /** Blocks of numbers that this replica has. */
  readonly #blocks = new Set<number>()
  /** Blocks of numbers that changes of adopted graphs have. */
  readonly #adoptedBlocks = new Set<number>()
  /** Undefined while the replica starts. */
  #events: TakeoverEvents | undefined
  #isRaising = false
  readonly #toKillRemotely: Task[] = []
  /** Adopted graphs whose callbacks are to be adopted, too. */
  readonly #withCallbacks: Graph[] = []

  constructor(options: TakeoverOptions) {
    const { rows, turns, log } = options
    this.#options = options
    this.#blocks.add(rows.replicas.id)
    this.#adoption = new Adoption({
      ...{ replicas: rows.replicas, rows: rows.adoptions, log },
      steadyMs: () => turns.lease.steadyMs,
      build: (kept, owner) => this.#adoptOrSetAside(kept, owner),
      onBuilt: () => this.#adoptCallbacks(),
      settle: async () => turns.kept(),
      isOwnNumber: (ordinal) => this.isOwnNumber(ordinal),
    })
  }

  get adoptedTotal(): number {
    return this.#adoption.adoptedTotal
  }

  get fencedTotal(): number {
    return this.#adoption.fencedTotal
  }

  /** Replicas whose graphs are being adopted. */
  get adopting(): readonly number[] {
    return this.#adoption.underWay
  }

  /** Whether this replica has given the number of a graph. */
  isOwnNumber(ordinal: number): boolean {
    return this.#blocks.has(blockOf(ordinal))
  }

  get blocks(): NumberBlocks {
    return { own: [...this.#blocks], adopted: this.#adoptedBlocks }
  }

  /** Adopts the graphs of all replicas that are gone. To be called once. */
  async recover(): Promise<RecoveredRows & { readonly callbacks: StoredCallbacks }> {
    await this.#adoption.retrySetAside() // before others are set aside: once is enough
    await this.#adoption.look()
    const callbacks = await this.#takeCallbacks()
    return { graphCount: this.#options.store.graphCount, toKillRemotely: this.#toKillRemotely, callbacks }
  }

  async serve(address: string, events: TakeoverEvents): Promise<void> {
    this.#events = events
    await this.#options.rows.replicas.reachableAt(address)
    this.#adoption.start()
  }

  stop(): void {
    this.#adoption.stop()
  }

  /** As in `Adoption`. */
  ring(): void {
    this.#adoption.ring()
  }

  /** As in `Adoption`. */
  removed(ordinal: number): void {
    this.#adoption.removed(ordinal)
  }

  /** As in `Adoption`. */
  adoptOne(found: FoundGraph): Promise<boolean> {
    return this.#adoption.adoptOne(found)
  }

  /** The callbacks of the graphs that were adopted since the last call. */
  async #takeCallbacks(): Promise<StoredCallbacks> {
    const graphs = this.#withCallbacks.splice(0)
    try {
      return await this.#options.rows.takeCallbacks(graphs.map(({ id }) => id))
    } catch (error) {
      this.#withCallbacks.push(...graphs)
      throw error
    }
  }

  /** A start has its own time for that. */
  async #adoptCallbacks(): Promise<void> {
    if (this.#events === undefined) return
    const graphs = [...this.#withCallbacks]
    this.#events.callbacks(graphs, await this.#takeCallbacks())
  }

  /** Rows that cannot be read cost nobody but their graph. False then. */
  async #adoptOrSetAside(kept: KeptGraph, owner: number): Promise<boolean> {
    const { rows, log } = this.#options
    let recovered: RecoveredGraph
    try {
      recovered = await runCooperatively(this.#recovered(kept, owner)) // pure: what it throws comes from the rows
      const { id = kept.graphId, ordinal = kept.ordinal } = recovered.graph ?? {}
      if (id !== kept.graphId || ordinal !== kept.ordinal) throw new Error('its body is that of another graph')
    } catch (error) {
      const cause = messageOf(error)
      await rows.adoptions.setAside(kept.ordinal, cause)
      log.error('a graph is unreadable and was set aside', {
        graph_id: kept.graphId,
        graph_ordinal: kept.ordinal,
        cause,
      })
      return false
    }
    await this.#adopt(kept, owner, recovered)
    return true
  }

  async #adopt(kept: KeptGraph, owner: number, recovered: RecoveredGraph): Promise<void> {
    this.#options.writes.raise(kept.lastFrame)
    if (owner > 0) this.#adoptedBlocks.add(owner)
    for (const block of kept.blocks) this.#adoptedBlocks.add(block)
    const { graph, strayIds, unnumbered, toKillRemotely, cutOff, lastSeq } = recovered
    this.#adoptedBlocks.add(blockOf(lastSeq))
    if (lastSeq > this.#options.store.seq) await this.#raise()
    if (graph === undefined) {
      this.#options.writes.remove(kept.ordinal) // all of its tasks were deleted
      this.removed(kept.ordinal)
      return
    }
    for (const id of strayIds) this.#options.writes.freeId({ graph, id })
    await runCooperatively(this.#options.store.recover(graph))
    if (graph.options.callback !== undefined) this.#withCallbacks.push(graph)
    for (const task of cutOff) {
      task.seq = this.#options.store.nextSeq()
      this.#options.noteTask(task)
    }
    for (const numbered of unnumbered) this.#options.noteNumbered(numbered(this.#options.store.nextSeq(), Date.now()))
    if (kept.hasEnded) this.#options.writes.noteEnded(graph)
    else if (graph.endedAt !== undefined) this.#options.writes.addFrame(graph, encodeStates([]))
    if (this.#events === undefined) this.#toKillRemotely.push(...toKillRemotely)
    else this.#events.adopted(graph, toKillRemotely)
  }

  #recovered(kept: KeptGraph, owner: number) {
    const refuse = (detail: string) => new UsageError(detail)
    const who = owner > 0 ? `replica ${owner}` : 'its replica'
    const failure = { code: 'internal', message: `attempt interrupted: ${who} is gone` } as const
    return recoveredGraph(kept, refuse, this.#options.onTakeover === 'fail' ? failure : undefined)
  }

  /** Goes on in a new block before this one is full. To be called after changes. */
  makeRoomForNumbers(): void {
    const { seq, ordinal } = this.#options.store
    if (this.#isRaising || (!isHalfUsed(seq) && !isHalfUsed(ordinal))) return
    this.#isRaising = true
    void this.#raise()
      .catch(() => {}) // the next change tries again
      .finally(() => {
        this.#isRaising = false
      })
  }

  /** Numbers of changes go on above all that any replica has given. */
  async #raise(): Promise<void> {
    const block = await this.#options.rows.replicas.nextBlock()
    this.#options.encode()
    this.#blocks.add(block)
    this.#options.store.raise(startOf(block))
  }
}
