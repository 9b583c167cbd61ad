/** When tasks that may run are started: their priority, and a time before which they are not. */
import { Type } from './schema-builder.ts'

export const MIN_PRIORITY = -100
export const MAX_PRIORITY = 100

/** Milliseconds of the longest delay: a year. */
export const MAX_DELAY_MS = 365 * 24 * 3_600_000

export const Priority = Type.Integer({ minimum: MIN_PRIORITY, maximum: MAX_PRIORITY })

export const priorityExpected = `integer from ${MIN_PRIORITY} to ${MAX_PRIORITY}`

/** RFC 3339. Whether the month has the day is checked apart. */
export const TIME =
  '^[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])[Tt]([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]([.][0-9]{1,9})?([Zz]|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$'

/** A delay in milliseconds, or a time. */
export const NotBefore = Type.Union([
  Type.Integer({ minimum: 0, maximum: MAX_DELAY_MS }),
  Type.String({ pattern: TIME }),
])
export type NotBefore = number | string

export const notBeforeExpected = `integer of milliseconds from 0 to ${MAX_DELAY_MS}, or time such as "2030-01-31T09:30:00Z"`
