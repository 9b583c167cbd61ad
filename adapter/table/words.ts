/** States and times in words and colours. Pure. */
import { isMeantEnd } from '../../shared/contract/run-if.ts'
import { formatUptime } from '../../shared/settings/duration.ts'
import { formatDuration } from '../../shared/text/live-view/frame.ts'
import type { Style } from '../../shared/text/live-view/palette.ts'
import type { Cell } from './columns.ts'

const STATE_STYLES: Readonly<Record<string, Style>> = {
  success: 'green',
  running: 'cyan',
  cancelling: 'cyan',
  failed: 'red',
  cancelled: 'yellow',
  skipped: 'yellow',
  pending: 'dim',
}

/** The state of a task or of a graph. */
export const stateCell = (state: string): Cell => ({ text: state, style: STATE_STYLES[state] ?? 'plain' })

/** The state of a task. An end that the rules of its graph provide for is no alarm. */
export const taskStateCell = (task: Parameters<typeof isMeantEnd>[0]): Cell =>
  isMeantEnd(task) ? { text: task.status, style: task.status === 'failed' ? 'yellow' : 'dim' } : stateCell(task.status)

const MINUTE_MS = 60_000

/** `4ms`, `1.56s`, `2m5s`. */
export const timeTaken = (ms: number): string => (ms < MINUTE_MS ? formatDuration(ms) : formatUptime(ms))

const UNITS = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['m', MINUTE_MS],
  ['s', 1_000],
] as const

/** `12s ago`, `3h ago`; empty for a time that is absent or no time. */
export function timeAgo(time: unknown, nowMs: number): string {
  const ms = nowMs - Date.parse(String(time))
  if (Number.isNaN(ms)) return ''
  const [unit, unitMs] = UNITS.find(([, size]) => Math.abs(ms) >= size) ?? ['s', 1_000]
  const amount = `${Math.floor(Math.abs(ms) / unitMs)}${unit}`
  return ms < 0 ? `in ${amount}` : `${amount} ago`
}
