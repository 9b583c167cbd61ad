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

/** Texts that were read, and what they mean. */
const TEXTS = 8
const texts = new Array<string>(TEXTS).fill('')
const meanings = new Float64Array(TEXTS)

/**
 * Milliseconds since 1970. Undefined if the text is no time. Caches a few results: times of a record, and of the records of a
 * file, repeat. `Date.parse` takes 0.3 µs.
 */
export function msOf(text: string | undefined): number | undefined {
  if (text === undefined) return undefined
  const place = text.charCodeAt(text.length - 2) % TEXTS || 0
  if (texts[place] !== text) {
    meanings[place] = Date.parse(text)
    texts[place] = text
  }
  const ms = meanings[place]!
  return Number.isNaN(ms) ? undefined : ms
}

/** The last millisecond of the year 9999. Later times have no RFC 3339 form. */
export const MAX_TIME_MS = 253_402_300_799_999
