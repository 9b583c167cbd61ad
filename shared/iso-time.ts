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
