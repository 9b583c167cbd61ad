/** Times in answers, files and logs. */

let lastMs = -1
let lastIso = ''

/** Seconds whose text is kept. A power of two. More would be of use only where times of many tasks alternate. */
const SECONDS = 8
const seconds = new Float64Array(SECONDS).fill(-1)
/** `2026-11-23T09:30:12.` for each of them. */
const untilMs = new Array<string>(SECONDS).fill('')

/**
 * RFC 3339 in UTC. Caches the last result, because successive times often fall into the same millisecond, and the texts
 * of a few seconds: the times of a record, and of a list, alternate between them. Takes a third of the time of `Date`.
 */
export function isoTime(ms: number): string {
  if (ms === lastMs) return lastIso
  const second = Math.floor(ms / 1000)
  const place = second % SECONDS
  if (second !== seconds[place]) {
    untilMs[place] = new Date(second * 1000).toISOString().slice(0, -4)
    seconds[place] = second
  }
  const rest = ms - second * 1000
  lastMs = ms
  lastIso = `${untilMs[place]}${rest < 10 ? '00' : rest < 100 ? '0' : ''}${rest}Z`
  return lastIso
}

/** The last millisecond of the year 9999. Later times have no RFC 3339 form. */
export const MAX_TIME_MS = 253_402_300_799_999
