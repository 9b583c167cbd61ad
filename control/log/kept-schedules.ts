/**
 * What is kept of schedules: their definitions, and how far each is.
 *
 * With a database all replicas share them, so a change is made to the version that was read. If another replica was first, it is
 * refused (`Moved`), and made again to what is there by then.
 */
import type { ScheduleDefinition, ScheduleProgress } from '../rules/schedule.ts'
import type { NoteRow } from './notes.ts'

export interface KeptSchedule {
  readonly definition: ScheduleDefinition
  readonly progress: ScheduleProgress
  /** Rises with each change. 0 where nobody else changes it. */
  readonly version: number
}

/** How far a schedule is with a graph that it submits. */
export interface ScheduleChange {
  readonly name: string
  /** The version that is changed. */
  readonly version: number
  readonly progress: ScheduleProgress
  /** Absent if a caller asked for the graph. */
  readonly due?: number
}

/** Another replica has changed the schedule since it was read. Nothing was kept. */
export class Moved extends Error {
  override name = 'Moved'
}

export interface KeptSchedules {
  /** Milliseconds since 1970, in the clock that counts. */
  now(): number
  /** Whether this service submits the graph of the schedule when it is due. */
  isHere(name: string): boolean
  /** The replica whose directory of files counts. Undefined while none is known to have one, and without a database. */
  readonly filesOf: number | undefined
  /** Whether the directory of this service counts, if it has one. */
  readonly readsFiles: boolean
  /** Called when other replicas may have changed schedules, or `isHere` may be another. */
  onChange: () => void
  /**
   * What differs from the versions `known`: all schedules, or the one with that name. A schedule that is gone is undefined.
   * Rejects with 503. Undefined where nobody else changes schedules, but for the first call.
   */
  read(
    known: ReadonlyMap<string, number>,
    name?: string,
  ): Promise<ReadonlyMap<string, KeptSchedule | undefined>> | undefined
  /**
   * Keeps `next` instead of `known`; undefined: it is gone, or was not there. Returns its version; where nobody else changes
   * schedules, it is kept with the changes so far. Rejects with `Moved`, and with 503.
   */
  keep(
    name: string,
    known: KeptSchedule | undefined,
    next: Omit<KeptSchedule, 'version'> | undefined,
  ): number | Promise<number>
  /** The version after a graph was kept with a change of `version`. */
  after(version: number): number
}

export const definitionNote = (name: string, definition: ScheduleDefinition | undefined): NoteRow => [
  ...([null, 'schedule', name] as const),
  definition ?? null,
]

export const progressNote = (name: string, progress: ScheduleProgress | undefined): NoteRow => [
  ...([null, 'schedule-progress', name] as const),
  progress ?? null,
]

/** Of one service alone: `note` keeps a row with the changes so far. */
export class OwnSchedules implements KeptSchedules {
  readonly #note: (row: NoteRow) => void
  /** Those of an earlier run, until they are read. */
  #found: ReadonlyMap<string, KeptSchedule> | undefined
  readonly filesOf = undefined
  readonly readsFiles = true
  onChange = (): void => {}

  constructor(
    note: (row: NoteRow) => void,
    definitions: ReadonlyMap<string, ScheduleDefinition>,
    progress: ReadonlyMap<string, ScheduleProgress>,
  ) {
    this.#note = note
    this.#found = new Map(
      [...definitions].map(([name, definition]) => {
        return [name, { definition, progress: progress.get(name) ?? newProgress(definition.since), version: 0 }]
      }),
    )
  }

  now(): number {
    return Date.now()
  }

  isHere(): boolean {
    return true
  }

  read(): Promise<ReadonlyMap<string, KeptSchedule>> | undefined {
    const found = this.#found
    this.#found = undefined
    return found && Promise.resolve(found)
  }

  keep(name: string, known: KeptSchedule | undefined, next: Omit<KeptSchedule, 'version'> | undefined): number {
    if (known?.definition !== next?.definition) this.#note(definitionNote(name, next?.definition))
    if (known?.progress !== next?.progress) this.#note(progressNote(name, next?.progress))
    return 0
  }

  after(): number {
    return 0
  }
}

/** Of a schedule whose due times before `settled` count as settled. */
export const newProgress = (settled: number): ScheduleProgress => ({
  ...{ settled, waiting: [], missed: 0, skipped: 0, runs: [] },
})
