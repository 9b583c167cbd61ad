/**
 * One picture of a running graph: values in, lines out. Pure.
 *
 * A line for each task: symbol, id, what it does, when it ran on a common time line, attempt, duration. What does not
 * fit is left out in this order: the time line, the end of what it does, the end of the line; and of the tasks those that
 * ended long ago or come late. The work grows with the number of tasks, but only what is shown is measured and drawn.
 * Texts come from users and their tasks, so no character of theirs reaches the terminal as a command.
 */
import { visibleLine } from '../visible-text.ts'
import { cut, fit, type Paint, type Style } from './palette.ts'
import { type GraphProgress, hasEnded, isToleratedFailure, type Phase, type TaskProgress } from './progress.ts'

export interface Size {
  readonly columns: number
  readonly rows: number
}

/** Lines of a frame besides those of the tasks: a title and a line of space above, the bar below. */
const OTHER_LINES = 3

/** A longer id is cut. */
const MAX_ID_COLUMNS = 40

/** A shorter title says nothing; then rather the end of the line is cut. */
const MIN_TITLE_COLUMNS = 8

/** Reasons may be longer than titles. They get up to this many columns, so that the time line does not jump for each. */
const MAX_REASON_COLUMNS = 40

/** A shorter time line says nothing. */
const MIN_TIMELINE_COLUMNS = 12
const MAX_TIMELINE_COLUMNS = 60

/** Milliseconds that the time line shows at least, so that the first bars do not shrink while one looks. */
const MIN_TIMELINE_MS = 4_000

const SPINNER = '⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏'
const SPINNER_STEP_MS = 80

const LOOKS: Readonly<Record<Phase, { symbol: string; style: Style }>> = {
  waiting: { symbol: '·', style: 'dim' },
  asking: { symbol: '?', style: 'yellow' },
  running: { symbol: '', style: 'cyan' },
  retrying: { symbol: '↻', style: 'yellow' },
  success: { symbol: '✓', style: 'green' },
  failed: { symbol: '✗', style: 'red' },
  skipped: { symbol: '↷', style: 'yellow' },
  cancelled: { symbol: '■', style: 'yellow' },
}

/** The symbol of a failure that counts as a success. */
const TOLERATED_SYMBOL = '!'

/** An end that the rules of the graph provide for is no alarm. */
const styleOf = ({ phase, isTolerated = false }: TaskProgress): Style =>
  isTolerated ? (phase === 'failed' ? 'yellow' : 'dim') : LOOKS[phase].style

export function renderFrame(title: string, graph: GraphProgress, size: Size, paint: Paint): string[] {
  const { notice = '' } = graph
  const { shown, hidden } = choose(graph.tasks, size.rows - OTHER_LINES - (notice === '' ? 0 : 1))
  const rows = shown.map(
    (task): Row => ({
      task,
      id: visibleLine(task.id),
      title: visibleLine(task.title),
      saying: visibleLine(sayingOf(task)),
    }),
  )
  const layout = layOut(rows, graph.nowMs, size.columns)
  const lines = [
    paint('bold', visibleLine(title)),
    '',
    ...rows.map((row) => taskLine(row, graph.nowMs, layout, paint)),
    ...(hidden === '' ? [] : [paint('dim', `   … and ${hidden}`)]),
    barLine(graph, size.columns, paint),
    ...(notice === '' ? [] : [paint('yellow', ` ${visibleLine(notice)}`)]),
  ]
  return lines.slice(-Math.max(1, size.rows)).map((line) => cut(line, size.columns))
}

/** A task with its texts as they are drawn. */
interface Row {
  readonly task: TaskProgress
  readonly id: string
  readonly title: string
  /** The title, or what is more important to say. */
  readonly saying: string
}

interface Layout {
  readonly idColumns: number
  readonly titleColumns: number
  /** 0: no time line. */
  readonly timelineColumns: number
  /** Milliseconds from its left to its right end. */
  readonly timelineMs: number
}

const RIGHT_COLUMNS = '×2  12.34s'.length

/** Columns of the symbol and of all spaces between. */
const GAPS = 7

function layOut(rows: readonly Row[], nowMs: number, columns: number): Layout {
  const longest = (texts: string[]) => Math.max(0, ...texts.map((text) => Bun.stringWidth(text)))
  const idColumns = Math.min(longest(rows.map(({ id }) => id)), MAX_ID_COLUMNS)
  const room = columns - idColumns - RIGHT_COLUMNS - GAPS
  const reasonColumns = Math.min(longest(rows.map(({ saying }) => saying)), MAX_REASON_COLUMNS)
  const wanted = Math.max(longest(rows.map(({ title }) => title)), reasonColumns)
  const titleColumns = Math.min(wanted, Math.max(room, MIN_TITLE_COLUMNS))
  const rest = room - titleColumns - 1
  const timelineColumns = rest < MIN_TIMELINE_COLUMNS ? 0 : Math.min(rest, MAX_TIMELINE_COLUMNS)
  return { idColumns, titleColumns, timelineColumns, timelineMs: Math.max(nowMs, MIN_TIMELINE_MS) }
}

function taskLine({ task, id, saying }: Row, nowMs: number, layout: Layout, paint: Paint): string {
  const symbol = isToleratedFailure(task) ? TOLERATED_SYMBOL : LOOKS[task.phase].symbol
  const style = styleOf(task)
  const isActive = task.phase === 'running' || task.phase === 'retrying' || task.phase === 'asking'
  const hasRun = isActive || task.phase === 'success' || task.phase === 'failed'
  const idStyle = isActive ? 'bold' : hasRun ? 'plain' : 'dim'
  const spin = SPINNER[Math.floor(nowMs / SPINNER_STEP_MS) % SPINNER.length]!
  const timeline = layout.timelineColumns === 0 ? '' : `${timelineOf(task, nowMs, layout, style, paint)} `
  return [
    ` ${paint(task.isSurprise ? 'red' : style, symbol || spin)} `,
    `${paint(idStyle, fit(id, layout.idColumns))}  `,
    `${paint(isActive ? 'plain' : 'dim', fit(saying, layout.titleColumns))}  `,
    timeline,
    paint('yellow', fit(task.attempt > 1 ? `×${task.attempt}` : '', 4)),
    paint('dim', durationOf(task, nowMs).padStart(RIGHT_COLUMNS - 4)),
  ].join('')
}

/** The attempt beside it says the same. */
const RETRIES_PREFIX = /^task failed after all retries: /

/** What it does; why not, for those that did not; why it waits. */
function sayingOf(task: TaskProgress): string {
  const { phase, title, reason, detail = '' } = task
  if (isToleratedFailure(task)) return `tolerated: ${reason.replace(RETRIES_PREFIX, '')}`
  if (phase === 'running' && task.children !== undefined) return `${task.children.ended} of ${task.children.total}`
  if (phase === 'failed' || phase === 'skipped') return reason.replace(RETRIES_PREFIX, '')
  return hasEnded(phase) || detail === '' ? title : detail
}

function timelineOf(task: TaskProgress, nowMs: number, layout: Layout, style: Style, paint: Paint): string {
  const { timelineColumns, timelineMs } = layout
  if (task.startMs === undefined) return ' '.repeat(timelineColumns)
  const column = (ms: number) => Math.round((ms / timelineMs) * timelineColumns)
  const start = Math.min(column(task.startMs), timelineColumns - 1)
  const end = Math.min(Math.max(column(task.endMs ?? nowMs), start + 1), timelineColumns)
  return ' '.repeat(start) + paint(style, '━'.repeat(end - start)) + ' '.repeat(timelineColumns - end)
}

function durationOf({ startMs, endMs, isReused }: TaskProgress, nowMs: number): string {
  if (isReused) return 'reused'
  return startMs === undefined ? '' : formatDuration((endMs ?? nowMs) - startMs)
}

export const formatSeconds = (ms: number): string => `${(Math.max(0, ms) / 1000).toFixed(2)}s`

/** `4ms`, `934ms`, `1.56s`: short tasks differ in milliseconds. */
export const formatDuration = (ms: number): string =>
  ms < 1000 ? `${Math.max(0, Math.round(ms))}ms` : formatSeconds(ms)

/**
 * The tasks that there is room for, in their order: first what is at work, then what ended last, then what comes next.
 * `hidden` says in words how many others there are.
 */
function choose(
  tasks: readonly TaskProgress[],
  room: number,
): { readonly shown: readonly TaskProgress[]; readonly hidden: string } {
  if (tasks.length <= room) return { shown: tasks, hidden: '' }
  const chosen = mostUrgent(tasks, Math.max(0, room - 1))
  const shown = chosen.toSorted((a, b) => a - b).map((index) => tasks[index]!)
  const hidden = countPhases(tasks)
  for (const { phase } of shown) hidden[phase]--
  const active = hidden.running + hidden.retrying
  const waiting = hidden.waiting + hidden.asking
  const ended = tasks.length - shown.length - active - waiting
  const words = [count(ended, 'ended'), count(waiting, 'waiting'), count(active, 'running')]
  return { shown, hidden: words.filter((text) => text !== '').join(', ') }
}

/** The indexes of the `most` tasks to show; of equally urgent ones the first. */
function mostUrgent(tasks: readonly TaskProgress[], most: number): number[] {
  const chosen: number[] = []
  const urgencies: number[] = []
  for (const [index, task] of tasks.entries()) {
    const urgency = urgencyOf(task)
    if (chosen.length === most && (most === 0 || urgency <= urgencies.at(-1)!)) continue
    let at = chosen.length
    while (at > 0 && urgencies[at - 1]! < urgency) at--
    chosen.splice(at, 0, index)
    urgencies.splice(at, 0, urgency)
    if (chosen.length > most) {
      chosen.pop()
      urgencies.pop()
    }
  }
  return chosen
}

function urgencyOf({ phase, isSurprise, endMs = 0 }: TaskProgress): number {
  if (isSurprise) return Number.POSITIVE_INFINITY
  if (hasEnded(phase)) return endMs
  return phase === 'waiting' ? -1 : Number.MAX_VALUE
}

function countPhases(tasks: readonly TaskProgress[]): Record<Phase, number> {
  const counts = { waiting: 0, asking: 0, running: 0, retrying: 0, success: 0, failed: 0, skipped: 0, cancelled: 0 }
  for (const { phase } of tasks) counts[phase]++
  return counts
}

const count = (number: number, what: string): string => (number === 0 ? '' : `${number} ${what}`)

const MAX_BAR_COLUMNS = 24

/** What stands beside the bar at most, while nothing is wrong. */
const COUNTS_COLUMNS = '   20/20  12.34s  10 running · 1 failed on purpose · 2 skipped'.length

function barLine({ tasks, nowMs }: GraphProgress, columns: number, paint: Paint): string {
  const by = countPhases(tasks)
  const active = by.running + by.retrying
  const ended = tasks.length - active - by.waiting - by.asking
  const barColumns = Math.min(MAX_BAR_COLUMNS, Math.max(0, columns - COUNTS_COLUMNS))
  const filled = Math.round((ended / Math.max(1, tasks.length)) * barColumns)
  const counts: [Style, string][] = [
    ['cyan', count(active, 'running')],
    ['yellow', count(by.asking, 'to approve')],
    ...failureCounts(tasks),
    ['yellow', count(by.skipped, 'skipped')],
    ['yellow', count(by.cancelled, 'cancelled')],
  ]
  const words = counts.filter(([, text]) => text !== '').map(([style, text]) => paint(style, text))
  const bar = paint('green', '█'.repeat(filled)) + paint('dim', '░'.repeat(barColumns - filled))
  return `${bar === '' ? '' : ` ${bar} `} ${ended}/${tasks.length}  ${formatSeconds(nowMs)}  ${words.join(paint('dim', ' · '))}`
}

/** Failures that fail the graph, those that a person expects, and those that the graph tolerates. */
function failureCounts(tasks: readonly TaskProgress[]): [Style, string][] {
  const failed = tasks.filter(({ phase }) => phase === 'failed')
  const tolerated = failed.filter(isToleratedFailure)
  const words = tasks.some(({ isSurprise }) => isSurprise) ? 'failed' : 'failed on purpose'
  return [
    ['red', count(failed.length - tolerated.length, words)],
    ['yellow', count(tolerated.length, 'failed, tolerated')],
  ]
}
