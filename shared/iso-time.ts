/** Times on the wire, on disk and in logs. */

let lastMs = -1
let lastIso = ''

/** RFC 3339 in UTC. Neighbours share their milliseconds, so the last answer is kept. */
export function isoTime(ms: number): string {
  if (ms !== lastMs) {
    lastIso = new Date(ms).toISOString()
    lastMs = ms
  }
  return lastIso
}
