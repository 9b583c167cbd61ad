/** Changes that are not in the journal yet: newest states of tasks, numbered changes, and notes. */
import { STEPS_PER_YIELD, type Steps } from '../../shared/process/steps.ts'
import type { Task } from '../task/graph.ts'
import { type EventRow, eventRows, type NumberedChange } from './event-rows.ts'
import { encodeStates, groupsOf } from './journaled-state.ts'
import type { NoteRow } from './notes.ts'

/** Maximum number of waiting changes, and of tasks in a frame. A larger frame would block the event loop. */
const MAX_UNWRITTEN = 2_048

export class UnwrittenChanges {
  #tasks: Task[] = []
  #changes: NumberedChange[] = []
  /** The next frame has all changes. */
  #isOneFrame = false
  /** The payload of a patch whose frame has the other changes, too. */
  #patch: readonly string[] | undefined
  /** Its parts so far, with their events, and how many of `#tasks` they have. */
  #parts: string[] = []
  #partRows: EventRow[] = []
  #encodedTasks = 0
  /** The newest row of each note, by kind and key. */
  readonly #notes = new Map<string, NoteRow>()
  /** Events of written frames that no call of `writeWith` has returned yet, because a later frame was refused. */
  #rows: EventRow[] = []

  /** Whether the changes should be written now instead of waiting for more. */
  get isFull(): boolean {
    return this.#count >= MAX_UNWRITTEN
  }

  get hasNotes(): boolean {
    return this.#notes.size > 0
  }

  get #count(): number {
    return this.#tasks.length + this.#changes.length + this.#notes.size + this.#parts.length
  }

  /** Whether `writeWith` has nothing to write and nothing to return. */
  get isEmpty(): boolean {
    return this.#count + this.#rows.length === 0
  }

  add(task: Task): void {
    if (task.isUnwritten) return
    task.isUnwritten = true
    this.#tasks.push(task)
  }

  /**
   * Their states are written in one frame with all others that wait: a kill leaves all of them or none. They are encoded in
   * steps. A write in between encodes the rest at once.
   */
  *addTogether(tasks: readonly Task[]): Steps<void> {
    for (const task of tasks) this.add(task)
    this.#isOneFrame = true
    while (this.#isOneFrame && this.#encodedTasks < this.#tasks.length) {
      yield
      if (this.#isOneFrame) this.#encode(this.#encodedTasks + STEPS_PER_YIELD)
    }
  }

  /** Encodes the tasks before index `end` for the one frame. */
  #encode(end: number, changes: readonly NumberedChange[] = [], notes: Iterable<NoteRow> = []): void {
    const tasks = this.#tasks.slice(this.#encodedTasks, end)
    const groups = groupsOf(tasks)
    const rows = encodeStates(groups, changes, notes).slice(1, -1)
    if (rows !== '') this.#parts.push(this.#parts.length === 0 ? '[' : ',', rows)
    for (const row of eventRows(groups, changes)) this.#partRows.push(row)
    for (const task of tasks) task.isUnwritten = false
    this.#encodedTasks += tasks.length
  }

  /** All changes that wait are written with the patch, in one frame. At most one patch waits. */
  addPatch(payload: readonly string[]): void {
    this.#patch = payload
    this.#isOneFrame = true
  }

  addNumbered(change: NumberedChange): void {
    this.#changes.push(change)
  }

  addNote(note: NoteRow): void {
    this.#notes.set(`${note[1]} ${note[2]}`, note)
  }

  /**
   * Calls `write` with the payload of each frame, in parts, and the patch that comes before. If `write` throws, the changes of
   * that frame and of later ones stay. Returns the events of all frames written since the last call that returned. Their numbers
   * are higher than those of earlier calls.
   */
  writeWith(write: (states: readonly string[], patch?: readonly string[]) => void): EventRow[] {
    if (this.#isOneFrame) this.#writeOneFrame(write)
    while (this.#count > 0) {
      const isAll = this.#tasks.length <= MAX_UNWRITTEN
      const tasks = isAll ? this.#tasks : this.#tasks.slice(0, MAX_UNWRITTEN)
      const changes = isAll ? this.#changes : []
      const groups = groupsOf(tasks)
      write([encodeStates(groups, changes, this.#notes.values())])
      this.#notes.clear()
      this.#addRows(eventRows(groups, changes))
      this.#tasks = isAll ? [] : this.#tasks.slice(MAX_UNWRITTEN)
      if (isAll) this.#changes = []
      for (const task of tasks) task.isUnwritten = false
    }
    const written = this.#rows
    this.#rows = []
    return written
  }

  #writeOneFrame(write: (states: readonly string[], patch?: readonly string[]) => void): void {
    this.#encode(this.#tasks.length, this.#changes, this.#notes.values())
    this.#tasks = []
    this.#encodedTasks = 0
    this.#changes = []
    this.#notes.clear()
    write(this.#parts.length === 0 ? ['[]'] : [...this.#parts, ']'], this.#patch)
    this.#patch = undefined
    this.#addRows(this.#partRows)
    this.#parts = []
    this.#partRows = []
    this.#isOneFrame = false
  }

  #addRows(rows: EventRow[]): void {
    this.#rows = this.#rows.length === 0 ? rows : [...this.#rows, ...rows]
  }
}
