/** Times in answers, files and logs. */

let lastMs = -1
let lastIso = ''

/** RFC 3339 in UTC. Caches the last result, because successive times often fall into the same millisecond. */
export function isoTime(ms: number): string {
  if (ms !== lastMs) {
    lastIso = new Date(ms).toISOString()
    lastMs = ms
  }
  return lastIso
}

/** The last millisecond of the year 9999. Later times have no RFC 3339 form. */
export const MAX_TIME_MS = 253_402_300_799_999
