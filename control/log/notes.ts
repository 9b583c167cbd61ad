/**
 * Notes: what the log holds besides graphs, by kind and key. Pure.
 *
 * A frame of the journal has the rows of notes that have changed, beside the states of tasks that changed with them
 * (`journaled-state.ts`). Each row replaces the earlier note with its key, so a start may apply rows that a pack knows already.
 * Each pack has all notes, and only the notes of the newest pack count. 100,000 keys take a pack 90 ms of CPU, in slices.
 */
import type { Pause } from '../rules/pause.ts'

/**
 * - `callback`: a `Delivery` that waits. Once it is over, the id of its graph, or an empty text
 * - `numbers`: the upper bound of the numbers of changes (`event-numbers.ts`)
 * - `key`: a `KeptKey`. In the journal, it is in the frame of its graph
 * - `graph-pause`: the `Pause` of a graph, by its number. In the journal, it is a numbered change
 * - `orphan`: an `Orphan`
 * - `pause`: a `Pause` of a type, or of the service
 * - `schedule`: a `ScheduleDefinition`
 * - `schedule-progress`: a `ScheduleProgress`. In the journal, it may be in the frame of the graph that it tells of
 */
export type NoteKind =
  | 'callback'
  | 'graph-pause'
  | 'key'
  | 'numbers'
  | 'orphan'
  | 'pause'
  | 'schedule'
  | 'schedule-progress'

/** The key of the only note of the kind `numbers`. */
export const NUMBERS_NOTE = 'reserved'

/** The first element is null: in other rows it is a number. A note with the value null is gone. */
export type NoteRow = readonly [nothing: null, kind: NoteKind, key: string, value: unknown]

export const isNoteRow = (row: readonly unknown[]): row is NoteRow => row[0] === null

/** Undefined: the graph is not paused. */
export const graphPauseNote = (ordinal: number, pause: Pause | undefined): NoteRow => [
  ...([null, 'graph-pause', String(ordinal)] as const),
  pause ?? null,
]

/** Characters of a payload in a pack. */
const PART_CHARACTERS = 64 * 1024

export class Notes {
  readonly #kinds = new Map<NoteKind, Map<string, unknown>>()
  /** Whether a pack had notes: files of earlier formats (`side-files.ts`) no longer count. */
  isPacked = false

  /** By key, those that changed last at the end. */
  of(kind: NoteKind): Map<string, unknown> {
    const notes = this.#kinds.get(kind) ?? new Map<string, unknown>()
    this.#kinds.set(kind, notes)
    return notes
  }

  apply([, kind, key, value]: NoteRow): void {
    const notes = this.of(kind)
    notes.delete(key)
    if (value !== null) notes.set(key, value)
  }

  /** The payloads of a pack. Forgets callbacks that are over, of graphs that are gone. */
  *payloads(isStored: (graphId: string) => boolean): Generator<string> {
    let rows: string[] = []
    let characters = 0
    for (const [kind, notes] of this.#kinds) {
      for (const [key, value] of notes) {
        if (kind === 'callback' && typeof value === 'string' && !isStored(value)) {
          notes.delete(key)
          continue
        }
        const row = JSON.stringify([null, kind, key, value] satisfies NoteRow)
        rows.push(row)
        characters += row.length
        if (characters < PART_CHARACTERS) continue
        yield `[${rows}]`
        rows = []
        characters = 0
      }
    }
    yield `[${rows}]`
  }
}
