/** Parses durations (`500ms`, `30s`, `1h30m`) and prints them, also in Go's form (`1h0m3s`). Pure. */

const UNIT_MS: Record<string, number> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000 }
const SHAPE = /^(?:\d+(?:\.\d+)?(?:ms|s|m|h))+$/
const PART = /(\d+(?:\.\d+)?)(ms|s|m|h)/g

/** Milliseconds of `text`, or null if it is not a duration. `0` needs no unit, other numbers do. */
export function parseDurationMs(text: string): number | null {
  if (text === '0') return 0
  if (!SHAPE.test(text)) return null
  let totalMs = 0
  for (const [, amount, unit] of text.matchAll(PART)) totalMs += Number(amount) * UNIT_MS[unit!]!
  return Number.isSafeInteger(Math.round(totalMs)) ? Math.round(totalMs) : null
}

/** The same, also of days of 24 hours (`30d`), for how long ago or how long from now something is. */
export function parseSpanMs(text: string): number | null {
  const [, days] = /^(\d{1,6})d$/.exec(text) ?? []
  return parseDurationMs(days === undefined ? text : `${Number(days) * 24}h`)
}

/** Whole seconds in Go's form, without leading zero units: `0s`, `42s`, `2m5s`, `1h0m3s`. */
export function formatUptime(elapsedMs: number): string {
  const seconds = Math.max(0, Math.floor(elapsedMs / 1_000))
  const h = Math.floor(seconds / 3_600)
  const m = Math.floor((seconds % 3_600) / 60)
  const s = seconds % 60
  if (h > 0) return `${h}h${m}m${s}s`
  return m > 0 ? `${m}m${s}s` : `${s}s`
}

/** The shortest exact form that `parseDurationMs` reads back: `250ms`, `30s`, `2m`, `1h`. */
export function formatDuration(ms: number): string {
  if (ms === 0) return '0s'
  for (const unit of ['h', 'm', 's'] as const) if (ms % UNIT_MS[unit]! === 0) return `${ms / UNIT_MS[unit]!}${unit}`
  return `${ms}ms`
}
