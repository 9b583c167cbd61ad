/** What is kept of schedules: their definitions, and how far each is. */
import type { ScheduleDefinition, ScheduleProgress } from '../rules/schedule.ts'
import type { NoteRow } from './notes.ts'

export interface KeptSchedules {
  /** The schedules of an earlier run, by name. */
  readonly found: {
    readonly definitions: ReadonlyMap<string, ScheduleDefinition>
    readonly progress: ReadonlyMap<string, ScheduleProgress>
  }
  /** Keeps this with the changes so far. Undefined: the schedule is gone. */
  define(name: string, definition: ScheduleDefinition | undefined): void
  advance(name: string, progress: ScheduleProgress | undefined): void
}

export const definitionNote = (name: string, definition: ScheduleDefinition | undefined): NoteRow => [
  ...([null, 'schedule', name] as const),
  definition ?? null,
]

export const progressNote = (name: string, progress: ScheduleProgress | undefined): NoteRow => [
  ...([null, 'schedule-progress', name] as const),
  progress ?? null,
]
