/**
 * Looks after the graphs of replicas that are gone.
 *
 * A replica that did not renew its lease is declared dead. Whoever was cut off from the database must not do that before a
 * whole lease of own turns: the others had no chance to renew theirs either. A replica that stops gives its graphs back and
 * rings. Rings may get lost, so this looks at intervals, too.
 *
 * Graphs that have not ended come first. They are adopted in portions, and built in slices of the event loop. Each portion
 * is on record as adopted before it is built. If the answer to that is lost, what this replica owns is compared with what
 * it has built.
 */
import { messageOf, stackOf } from '../../../shared/contract/errors.ts'
import type { Log } from '../../../shared/logs/log.ts'
import { nextTurn, SLICE_MS } from '../../../shared/process/steps.ts'
import {
  type AdoptedRow,
  type AdoptionRows,
  type FoundGraph,
  type KeptGraph,
  PORTION,
  SET_ASIDE,
} from './adoption-rows.ts'
import { Looks } from './looks.ts'
import type { ReplicaRows } from './replica-rows.ts'

/** Graphs that are read together, and bytes of their bodies. More would hold up other queries, and the event loop. */
const GRAPHS_PER_READ = 100
const BYTES_PER_READ = 64 * 1024

/** The owner of graphs that were adopted without an answer. */
const UNKNOWN_OWNER = 0

export interface AdoptionOptions {
  readonly replicas: Pick<ReplicaRows, 'buryLate' | 'leaseMs'>
  readonly rows: AdoptionRows
  /** Milliseconds for which turns have followed one another without a gap. */
  readonly steadyMs: () => number
  /** Builds a graph that `owner` had. False if it cannot be read, and was set aside. */
  readonly build: (kept: KeptGraph, owner: number) => Promise<boolean>
  /** Called after `build`, with some graphs or with one. */
  readonly onBuilt: () => Promise<void>
  /** Has everything kept that was changed so far. */
  readonly settle: () => Promise<void>
  /** Whether the numbers of a graph are those of this replica. */
  readonly isOwnNumber: (ordinal: number) => boolean
  readonly log: Log
}

export class Adoption {
  readonly #options: AdoptionOptions
  /** Numbers of adopted graphs, until they are removed. */
  readonly #built = new Set<number>()
  /** Graphs that were removed, and whose rows may still be there. */
  #removed: number[] = []
  readonly #looks: Looks
  /** A portion was perhaps adopted, and is not built. */
  #isUncertain = false
  /** By owner: how many adoptions of its graphs are under way. */
  readonly #underWay = new Map<number, number>()
  adoptedTotal = 0
  fencedTotal = 0

  constructor(options: AdoptionOptions) {
    const { replicas, log } = options
    this.#options = options
    this.#looks = new Looks({
      leaseMs: replicas.leaseMs,
      look: () => this.look(),
      onAway: (error) => log.debug('cannot look for graphs to adopt', { cause: messageOf(error) }),
      onFault: (error) => log.error('graphs of other replicas are not adopted', { cause: stackOf(error) }),
    })
  }

  /** Looks at intervals from now on. */
  start(): void {
    this.#looks.start()
  }

  stop(): void {
    this.#looks.stop()
  }

  /** Looks now, or again after the look under way. */
  ring(): void {
    this.#looks.ring()
  }

  /** A graph was removed, and a later turn removes its rows. */
  removed(ordinal: number): void {
    if (this.#built.has(ordinal)) this.#removed.push(ordinal)
  }

  /** Declares late replicas dead, and adopts all graphs of those that are gone. */
  async look(): Promise<void> {
    const { replicas, rows, steadyMs, log } = this.#options
    if (steadyMs() > replicas.leaseMs) {
      for (const replica of await replicas.buryLate()) {
        this.fencedTotal++
        log.warn('a replica was declared dead', { replica })
      }
    }
    if (this.#isUncertain) await this.#buildMissed()
    await this.#forgetRemoved()
    const owners = await rows.ownersGone()
    for (const isLive of [true, false]) {
      for (const owner of owners) await this.#during(owner, () => this.#adoptAll(owner, isLive))
    }
  }

  /** Tries once more to build what was set aside: this version may know more. */
  async retrySetAside(): Promise<void> {
    await this.#during(SET_ASIDE, () => this.#adoptAll(SET_ASIDE, false))
  }

  async #adoptAll(owner: number, isLive: boolean): Promise<void> {
    const { rows, log } = this.#options
    let count = 0
    for (let after = 0; !this.#looks.isStopped; ) {
      const adopted = await this.#surely(() => rows.adopt({ owner, after, isLive }))
      count += await this.#buildAll(adopted, owner)
      if (adopted.length < PORTION) break
      after = adopted.at(-1)!.ordinal
    }
    if (count > 0) log.info('graphs adopted', { replica: owner, graphs: count })
  }

  /** Adopts one graph whose owner is gone. False if another replica was faster. */
  async adoptOne(found: FoundGraph): Promise<boolean> {
    return await this.#during(found.owner, async () => {
      const adopted = await this.#surely(() => this.#options.rows.adoptOne(found))
      await this.#buildAll(adopted, found.owner)
      return adopted.length > 0
    })
  }

  /** Owners of graphs of which some are adopted, perhaps, and not built. */
  get underWay(): number[] {
    return [...this.#underWay.keys()].filter((owner) => owner !== SET_ASIDE)
  }

  async #during<T>(owner: number, adopt: () => Promise<T>): Promise<T> {
    this.#underWay.set(owner, (this.#underWay.get(owner) ?? 0) + 1)
    try {
      return await adopt()
    } finally {
      const left = this.#underWay.get(owner)! - 1
      if (left === 0) this.#underWay.delete(owner)
      else this.#underWay.set(owner, left)
    }
  }

  /** The next look repeats a step that failed. */
  async #surely<T>(adoptOrBuild: () => Promise<T>): Promise<T> {
    try {
      return await adoptOrBuild()
    } catch (error) {
      this.#isUncertain = true
      throw error
    }
  }

  /** While graphs are being built, one that is removed may have been read before. */
  async #forgetRemoved(): Promise<void> {
    if (this.#removed.length === 0 || this.#underWay.size > 0) return
    const removed = this.#removed
    this.#removed = []
    try {
      await this.#options.settle() // `#buildMissed` must not find their rows
    } catch (error) {
      this.#removed = [...removed, ...this.#removed]
      throw error
    }
    for (const ordinal of removed) this.#built.delete(ordinal)
  }

  /** Builds what was adopted by statements whose answers were lost. */
  async #buildMissed(): Promise<void> {
    const { rows, settle, isOwnNumber, onBuilt } = this.#options
    await settle() // the rows of removed graphs are gone after that
    const owned = await rows.owned()
    this.#isUncertain = false
    const missed = owned.filter(({ ordinal }) => !isOwnNumber(ordinal) && !this.#built.has(ordinal))
    await this.#surely(async () => {
      await this.#build(missed, UNKNOWN_OWNER)
      await onBuilt()
    })
  }

  /** How many of them were built. */
  async #buildAll(adopted: readonly AdoptedRow[], owner: number): Promise<number> {
    if (adopted.length === 0) return 0
    return await this.#surely(async () => {
      const count = await this.#build(adopted, owner)
      await this.#options.onBuilt()
      return count
    })
  }

  async #build(adopted: readonly AdoptedRow[], owner: number): Promise<number> {
    if (adopted.length === 0) return 0
    let count = 0
    const { rows, build } = this.#options
    const reads = readsOf(adopted)
    let sliceEnd = performance.now() + SLICE_MS
    for (let i = 0, reading = rows.kept(reads[0]!); i < reads.length; i++) {
      const some = await reading
      if (i + 1 < reads.length) {
        reading = rows.kept(reads[i + 1]!) // while these are built
        reading.catch(() => {}) // perhaps one of these cannot be built
      }
      for (const kept of some) {
        if (this.#built.has(kept.ordinal)) continue
        this.#built.add(kept.ordinal)
        let isBuilt = false
        try {
          isBuilt = await build(kept, owner)
        } finally {
          if (!isBuilt) this.#built.delete(kept.ordinal)
        }
        if (isBuilt) {
          count++
          this.adoptedTotal++
        }
        if (performance.now() < sliceEnd) continue
        await nextTurn() // for callers, and for the turns that renew the lease
        sliceEnd = performance.now() + SLICE_MS
      }
    }
    return count
  }
}

/** The numbers of the graphs that are read together. */
function readsOf(adopted: readonly AdoptedRow[]): number[][] {
  const reads: number[][] = []
  let bytes = Number.POSITIVE_INFINITY
  for (const { ordinal, size } of adopted) {
    bytes += size
    if (bytes > BYTES_PER_READ || reads.at(-1)!.length === GRAPHS_PER_READ) {
      reads.push([])
      bytes = size
    }
    reads.at(-1)!.push(ordinal)
  }
  return reads
}
