/**
 * What a log line says. Each message is declared once, with its level, its fields and when it comes. `Log` takes no other
 * message, and no other field; `docs/operations.md` lists those that ask for something.
 */

export interface LogEvent {
  readonly level: 'debug' | 'info' | 'warn' | 'error'
  /** When the line comes, and what to do about it. */
  readonly when: string
  /** Name to meaning. */
  readonly fields: Readonly<Record<string, string>>
}

export type LogEvents = Readonly<Record<string, LogEvent>>

/** Fields that a line of any message may have, where they apply. */
export const CONTEXT_FIELDS = {
  trace_id: 'Trace id of the request behind it.',
  graph_id: 'The graph.',
  task_id: 'The task.',
  attempt: 'The attempt of the task, from 1.',
} as const

/** The common meaning. */
export const CAUSE = { cause: 'What went wrong; for a defect, with its stack.' } as const
