/** A pause: since when, by whom and why. Pure. */
import { isoTime } from '../../shared/text/iso-time.ts'
import { isObject } from '../../shared/text/json.ts'

export interface Pause {
  /** Milliseconds since 1970. */
  readonly since: number
  /** Name of a token. Absent for the token of the service. */
  readonly by?: string
  readonly why?: string
}

/** Whether a stored value is one. */
export const isPause = (value: unknown): value is Pause =>
  isObject(value) &&
  typeof value.since === 'number' &&
  [value.by, value.why].every((text) => text === undefined || typeof text === 'string')

/** As answers have it. */
export const shownPause = ({ since, by, why }: Pause) => ({
  ...{ since: isoTime(since) },
  ...(by !== undefined && { by }),
  ...(why !== undefined && { why }),
})
