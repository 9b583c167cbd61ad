/**
 * The schedules that replicas share.
 *
 * The replicas that serve divide the schedules among themselves, by what each turn tells of the others. While they differ about
 * that, two may submit for the same due time, or none: the rows let one of them pass (`schedule-rows.ts`), and a due time that
 * waited for the next turn is late. The clock of the database counts, as of the last turn.
 *
 * Of the directories of files, that of the replica counts which has been there the longest. While replicas differ about that, too, two
 * may read theirs: what one of them changed last is put right by the next look of the other.
 */
import { submitterOf } from '../../rules/schedule.ts'
import { type KeptSchedule, type KeptSchedules, Moved } from '../kept-schedules.ts'
import type { Database } from './database.ts'
import { readSchedules, writeSchedule } from './schedule-rows.ts'
import type { TurnWriter } from './turn-writer.ts'
import type { TurnNews } from './turn-writes.ts'
import { refuseAway } from './unavailable.ts'

export interface SharedSchedulesOptions {
  readonly database: Pick<Database, 'settings' | 'soon'>
  readonly replica: { readonly id: number; readonly hasSchedulesDir: boolean }
  readonly turns: Pick<TurnWriter, 'kept' | 'assertAccepting'>
}

export class SharedSchedules implements KeptSchedules {
  readonly #options: SharedSchedulesOptions
  #submitters = ''
  #ids: readonly number[] = []
  #filesOf: number | undefined
  /** The clock of the database as of an instant of this process, whose own clock may be set. */
  #clock = { at: Date.now(), since: performance.now() }
  /** Changes that were read last. */
  #changes = 0
  #isServing = false
  /** A turn has told of the others since this replica serves. */
  #isTold = false
  onChange: () => void = () => {}

  constructor(options: SharedSchedulesOptions) {
    this.#options = options
  }

  now(): number {
    return Math.floor(this.#clock.at + performance.now() - this.#clock.since)
  }

  isHere(name: string): boolean {
    return submitterOf(name, this.#ids) === this.#options.replica.id
  }

  get filesOf(): number | undefined {
    return this.#filesOf
  }

  get readsFiles(): boolean {
    return this.#filesOf === this.#options.replica.id
  }

  /** From now on, this replica is one of those that submit. */
  serve(): void {
    this.#isServing = true
    this.#divide()
  }

  told({ at, submitters }: TurnNews): void {
    this.#clock = { at, since: performance.now() }
    const isNews = submitters !== this.#submitters || this.#isTold !== this.#isServing
    this.#submitters = submitters
    this.#isTold = this.#isServing
    if (isNews) this.#divide()
  }

  #divide(): void {
    const { id, hasSchedulesDir } = this.#options.replica
    const others = this.#submitters === '' ? [] : this.#submitters.split(',')
    const withFiles = others.filter((other) => other.endsWith('*')).map(numberOf)
    if (this.#isTold) this.#filesOf = firstOf(hasSchedulesDir ? [...withFiles, id] : withFiles)
    if (!this.#isServing) return
    this.#ids = [...others.map(numberOf), id].sort((a, b) => a - b)
    this.onChange()
  }

  /** So many changes were made so far. */
  changed(changes: number): void {
    if (changes === this.#changes) return
    this.#changes = changes
    this.onChange()
  }

  /** What this replica has done itself comes first: a graph that is refused after all, and the ends of graphs. */
  async read(known: ReadonlyMap<string, number>, name?: string): Promise<Map<string, KeptSchedule | undefined>> {
    await this.#options.turns.kept()
    return await this.#options.database.soon((sql) => readSchedules(sql, known, name)).catch(refuseAway)
  }

  async keep(
    name: string,
    known: KeptSchedule | undefined,
    next: Omit<KeptSchedule, 'version'> | undefined,
  ): Promise<number> {
    if (known === undefined && next === undefined) return 0
    const { database, turns } = this.#options
    turns.assertAccepting()
    const version = await database
      .soon((sql) => writeSchedule(sql, database.settings, name, known?.version, next))
      .catch(refuseAway)
    if (version === undefined) throw new Moved(`another replica has changed the schedule ${name}`)
    return version
  }

  after(version: number): number {
    return version + 1
  }
}

/** Of an entry of `submitters`. */
const numberOf = (entry: string): number => Number.parseInt(entry, 10)

const firstOf = (ids: readonly number[]): number | undefined => ids.toSorted((a, b) => a - b)[0]
