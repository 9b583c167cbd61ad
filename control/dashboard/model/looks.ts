/** Looks of tasks: one for each status, and a few more. */
import { isMeantEnd } from '../../../shared/contract/run-if.ts'
import { remainingText } from './amounts.ts'
import type { GraphTask } from './wire.ts'

/**
 * A look has a colour, a shape and a word of its own. `backoff`: running, between two attempts. `asking`: pending,
 * until somebody approves or rejects it. `tolerated`: failed, with `continue_on_error`. `unneeded`: skipped,
 * because there was nothing to do.
 */
export type Look = GraphTask['status'] | 'backoff' | 'asking' | 'tolerated' | 'unneeded'

export const LOOK_WORDS: Readonly<Record<Look, string>> = {
  pending: 'waiting',
  running: 'running',
  backoff: 'waits to retry',
  asking: 'waits for approval',
  cancelling: 'cancelling',
  success: 'succeeded',
  failed: 'failed',
  cancelled: 'cancelled',
  skipped: 'skipped',
  tolerated: 'failed, which does not matter',
  unneeded: 'not needed',
}

/** Order of the parts of a bar: what has ended first, what waits last. */
export const BAR_ORDER = ['success', 'failed', 'cancelled', 'skipped', 'cancelling', 'running', 'pending'] as const

/** The fields of a task that determine its look. */
export type Looking = Pick<GraphTask, 'status' | 'waiting' | 'continue_on_error' | 'error'>

export function lookOf(task: Looking): Look {
  if (task.status === 'running' && task.waiting?.reason === 'backoff') return 'backoff'
  if (task.status === 'pending' && task.waiting?.reason === 'approval') return 'asking'
  if (!isMeantEnd(task)) return task.status
  return task.status === 'failed' ? 'tolerated' : 'unneeded'
}

export const hasEnded = (status: GraphTask['status']): boolean =>
  status === 'success' || status === 'failed' || status === 'cancelled' || status === 'skipped'

/** The type of a task as a small word: `shell` rather than `os.shell`. */
export const typeWord = ({ type, tool_name }: Pick<GraphTask, 'type' | 'tool_name'>): string =>
  tool_name === undefined || tool_name === '' ? type : type === 'os' ? tool_name : `${type} ${tool_name}`

/** As `typeWord`, and for a task with children how many of them have ended: `shell, 7 of 20`. */
export function workWord(task: Pick<GraphTask, 'type' | 'tool_name' | 'child_count' | 'children'>): string {
  const { child_count, children = {} } = task
  if (child_count === undefined) return typeWord(task)
  let ended = 0
  for (const status of BAR_ORDER) if (hasEnded(status)) ended += children[status] ?? 0
  return `${typeWord(task)}, ${ended} of ${child_count}`
}

/** One sentence on why a task waits. Undefined if it does not wait. */
export function waitingSentence(task: GraphTask, nowMs: number): string | undefined {
  const { waiting } = task
  if (waiting === undefined || hasEnded(task.status)) return undefined
  const { reason, tasks, group, graphs = [], until, detail } = waiting
  if (reason === 'signal') return `waits for a signal${detail === undefined ? '' : `: ${shortLine(detail)}`}`
  if (reason === 'answer') return `waits for an answer${detail === undefined ? '' : `: ${shortLine(detail)}`}`
  if (reason === 'approval') return `waits for approval${detail === undefined ? '' : `: ${shortLine(detail)}`}`
  if (reason === 'dependencies') {
    if (detail !== undefined) return `waits: ${detail}`
    const names = tasks ?? []
    if (names.length === 0) return 'waits for other tasks'
    return `waits for ${names.slice(0, 3).join(', ')}${names.length > 3 ? ` and ${names.length - 3} more` : ''}`
  }
  const why = detail?.replace(/^waiting (?=for)/, '')
  if (reason === 'concurrency') return why === undefined ? 'waits for a free slot' : `waits: ${why}`
  if (reason === 'runtime')
    return `waits ${why === undefined ? 'for the runtime service' : `at its runtime service: ${why}`}`
  if (reason === 'backoff') {
    const leftMs = until === undefined ? Number.NaN : Math.max(0, Date.parse(until) - nowMs)
    const when = Number.isNaN(leftMs) ? 'waits for its next attempt' : `tries again in ${remainingText(leftMs)}`
    return detail === undefined ? when : `${when}: ${detail}`
  }
  if (reason === 'group')
    return `waits for a place in group ${group}${graphs.length === 0 ? '' : `, held by graph ${graphs.join(', ')}`}`
  if (reason === 'delay' && until !== undefined)
    return `${task.type === 'wait' ? 'ends' : 'starts'} in ${remainingText(Math.max(0, Date.parse(until) - nowMs))}`
  return `waits: ${detail ?? reason}`
}

/** Characters of a message in a sentence. */
const MAX_LINE_CHARACTERS = 80

function shortLine(text: string): string {
  const line = text.replace(/\s+/g, ' ').trim()
  return line.length <= MAX_LINE_CHARACTERS ? line : `${line.slice(0, MAX_LINE_CHARACTERS - 1)}…`
}

/** Looks in the order of urgency, for the look of several tasks of which some have not ended or failed. */
const WORST_FIRST = [
  'failed',
  'asking',
  'running',
  'backoff',
  'cancelling',
  'pending',
] as const satisfies readonly Look[]

/** The most urgent look of several tasks. Of tasks that have ended without a failure, the look of most. */
export function worstLook(tasks: readonly Looking[]): Look {
  if (tasks.length === 1) return lookOf(tasks[0]!)
  const counts = new Map<Look, number>()
  for (const task of tasks) counts.set(lookOf(task), (counts.get(lookOf(task)) ?? 0) + 1)
  const looks = new Set(counts.keys())
  const isAlarming = looks.has('failed') || looks.has('asking')
  if (looks.has('pending') && looks.has('success') && !isAlarming) return 'running'
  const urgent = WORST_FIRST.find((look) => looks.has(look))
  return urgent ?? [...counts].reduce((most, one) => (one[1] > most[1] ? one : most), ['pending', 0] as const)[0]
}
