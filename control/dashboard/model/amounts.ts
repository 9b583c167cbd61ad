/**
 * Durations, times, numbers and ids in the form that people read. Without the formats of the browser: their first use
 * costs a page some 20 ms before its first frame.
 */

/** `85 ms`, `4.2 s`, `7 s`, `3 m 07 s`, `2 h 05 m`, `3 d 4 h`. */
export function durationText(ms: number): string {
  if (!Number.isFinite(ms)) return ''
  const positive = Math.max(0, ms)
  if (positive < 1_000) return `${Math.round(positive)} ms`
  const seconds = positive / 1_000
  if (seconds < 10) return `${Number(seconds.toFixed(1))} s`
  if (seconds < 60) return `${Math.floor(seconds)} s`
  const minutes = Math.floor(seconds / 60)
  if (minutes < 60) return `${minutes} m ${two(Math.floor(seconds % 60))} s`
  const hours = Math.floor(minutes / 60)
  return hours < 24 ? `${hours} h ${two(minutes % 60)} m` : `${Math.floor(hours / 24)} d ${hours % 24} h`
}

/** Time that passes, in the same form without parts that would flicker: `0 s`, `42 s`, `3 m 07 s`. */
export const elapsedText = (ms: number): string => (ms < 1_000 ? '0 s' : durationText(Math.floor(ms / 1_000) * 1_000))

/** Milliseconds of an uptime of the service: `42s`, `1h0m3s`. */
export const uptimeMs = (text: string): number =>
  [...text.matchAll(/(\d+)([hms])/g)].reduce((sum, [, count, unit]) => sum + Number(count) * UNIT_MS[unit as 'h'], 0)

const UNIT_MS = { h: 3_600_000, m: 60_000, s: 1_000 } as const

/** Time that is left, in whole seconds. */
export const remainingText = (ms: number): string => elapsedText(Math.ceil(ms / 1_000) * 1_000)

/** `just now`, `42 s ago`, `3 m ago`, `5 h ago`, `2 d ago`. */
export function agoText(time: string, nowMs: number): string {
  const seconds = Math.floor((nowMs - Date.parse(time)) / 1_000)
  if (!Number.isFinite(seconds)) return ''
  if (seconds < 5) return 'just now'
  if (seconds < 60) return `${seconds} s ago`
  if (seconds < 3_600) return `${Math.floor(seconds / 60)} m ago`
  return seconds < 86_400 ? `${Math.floor(seconds / 3_600)} h ago` : `${Math.floor(seconds / 86_400)} d ago`
}

/** The time on the clock of the reader: `2026-03-01 14:05:09`. Empty if the text is no time. */
export function timeText(time: string | number): string {
  const date = new Date(time)
  if (Number.isNaN(date.getTime())) return ''
  const day = `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`
  return `${day} ${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`
}

/** `12,000`. */
export const countText = (count: number): string => String(count).replace(/\B(?=(\d{3})+$)/g, ',')

/** `900 B`, `64 KiB`, `1.5 GiB`. */
export function bytesText(bytes: number): string {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB']
  let amount = bytes
  let unit = 0
  while (amount >= 1_024 && unit < units.length - 1) {
    amount /= 1_024
    unit++
  }
  return `${amount < 10 && unit > 0 ? Number(amount.toFixed(1)) : Math.round(amount)} ${units[unit]}`
}

/** Characters at the end of an id that stay visible when its middle is left out. */
const TAIL_CHARACTERS = 8

/** The two parts of an id: the first may be cut on the screen, the second stays. Short ids have one part. */
export function idParts(id: string, tailCharacters = TAIL_CHARACTERS): [head: string, tail: string] {
  const characters = [...id]
  const cut = characters.length <= tailCharacters * 2 ? characters.length : characters.length - tailCharacters
  return [characters.slice(0, cut).join(''), characters.slice(cut).join('')]
}

const two = (value: number): string => String(value).padStart(2, '0')
