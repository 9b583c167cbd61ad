/**
 * One picture of a running graph: values in, lines out. Pure.
 *
 * A line for each task: symbol, id, what it does, when it ran on a common time line, attempt, duration. What does not
 * fit is left out in this order: the time line, the end of what it does, the end of the line; and of the tasks those that
 * ended long ago or come late.
 */
import { cut, fit, type Paint, type Style } from './palette.ts'
import { type GraphProgress, hasEnded, type Phase, type TaskProgress } from './progress.ts'

export interface Size {
  readonly columns: number
  readonly rows: number
}

/** Lines of a frame besides those of the tasks: a title and a line of space above, the bar below. */
const OTHER_LINES = 3

/** A shorter title says nothing; then rather the end of the line is cut. */
const MIN_TITLE_COLUMNS = 8

/** A shorter time line says nothing. */
const MIN_TIMELINE_COLUMNS = 12
const MAX_TIMELINE_COLUMNS = 60

/** Milliseconds that the time line shows at least, so that the first bars do not shrink while one looks. */
const MIN_TIMELINE_MS = 4_000

const SPINNER = '⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏'
const SPINNER_STEP_MS = 80

const LOOKS: Readonly<Record<Phase, { symbol: string; style: Style }>> = {
  waiting: { symbol: '·', style: 'dim' },
  running: { symbol: '', style: 'cyan' },
  retrying: { symbol: '↻', style: 'yellow' },
  success: { symbol: '✓', style: 'green' },
  failed: { symbol: '✗', style: 'red' },
  skipped: { symbol: '↷', style: 'yellow' },
  cancelled: { symbol: '■', style: 'yellow' },
}

export function renderFrame(title: string, graph: GraphProgress, size: Size, paint: Paint): string[] {
  const layout = layOut(graph, size.columns)
  const { shown, hidden } = choose(graph.tasks, size.rows - OTHER_LINES)
  const lines = [
    paint('bold', title),
    '',
    ...shown.map((task) => taskLine(task, graph.nowMs, layout, paint)),
    ...(hidden.length > 0 ? [paint('dim', `   … and ${describe(hidden)}`)] : []),
    barLine(graph, size.columns, paint),
  ]
  return lines.slice(-Math.max(1, size.rows)).map((line) => cut(line, size.columns))
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

function layOut({ tasks, nowMs }: GraphProgress, columns: number): Layout {
  const longest = (texts: string[]) => Math.max(0, ...texts.map((text) => Bun.stringWidth(text)))
  const idColumns = longest(tasks.map(({ id }) => id))
  const room = columns - idColumns - RIGHT_COLUMNS - GAPS
  const titleColumns = Math.min(longest(tasks.map(({ title }) => title)), Math.max(room, MIN_TITLE_COLUMNS))
  const rest = room - titleColumns - 1
  const timelineColumns = rest < MIN_TIMELINE_COLUMNS ? 0 : Math.min(rest, MAX_TIMELINE_COLUMNS)
  return { idColumns, titleColumns, timelineColumns, timelineMs: Math.max(nowMs, MIN_TIMELINE_MS) }
}

function taskLine(task: TaskProgress, nowMs: number, layout: Layout, paint: Paint): string {
  const { symbol, style } = LOOKS[task.phase]
  const isActive = task.phase === 'running' || task.phase === 'retrying'
  const hasRun = isActive || task.phase === 'success' || task.phase === 'failed'
  const idStyle = isActive ? 'bold' : hasRun ? 'plain' : 'dim'
  const spin = SPINNER[Math.floor(nowMs / SPINNER_STEP_MS) % SPINNER.length]!
  const timeline = layout.timelineColumns === 0 ? '' : `${timelineOf(task, nowMs, layout, style, paint)} `
  return [
    ` ${paint(task.isSurprise ? 'red' : style, symbol || spin)} `,
    `${paint(idStyle, fit(task.id, layout.idColumns))}  `,
    `${paint(isActive ? 'plain' : 'dim', fit(sayingOf(task), layout.titleColumns))}  `,
    timeline,
    paint('yellow', fit(task.attempt > 1 ? `×${task.attempt}` : '', 4)),
    paint('dim', durationOf(task, nowMs).padStart(RIGHT_COLUMNS - 4)),
  ].join('')
}

/** What it does; why not, for those that did not. */
const sayingOf = ({ phase, title, reason }: TaskProgress): string =>
  phase === 'failed' || phase === 'skipped' ? reason : title

function timelineOf(task: TaskProgress, nowMs: number, layout: Layout, style: Style, paint: Paint): string {
  const { timelineColumns, timelineMs } = layout
  if (task.startMs === undefined) return ' '.repeat(timelineColumns)
  const column = (ms: number) => Math.round((ms / timelineMs) * timelineColumns)
  const start = Math.min(column(task.startMs), timelineColumns - 1)
  const end = Math.min(Math.max(column(task.endMs ?? nowMs), start + 1), timelineColumns)
  return ' '.repeat(start) + paint(style, '━'.repeat(end - start)) + ' '.repeat(timelineColumns - end)
}

function durationOf({ startMs, endMs }: TaskProgress, nowMs: number): string {
  return startMs === undefined ? '' : formatDuration((endMs ?? nowMs) - startMs)
}

export const formatSeconds = (ms: number): string => `${(Math.max(0, ms) / 1000).toFixed(2)}s`

/** `4ms`, `934ms`, `1.56s`: short tasks differ in milliseconds. */
export const formatDuration = (ms: number): string =>
  ms < 1000 ? `${Math.max(0, Math.round(ms))}ms` : formatSeconds(ms)

/** Those that there is room for, in their order: first what is at work, then what ended last, then what comes next. */
function choose(
  tasks: readonly TaskProgress[],
  room: number,
): { shown: readonly TaskProgress[]; hidden: readonly TaskProgress[] } {
  if (tasks.length <= room) return { shown: tasks, hidden: [] }
  const urgency = (task: TaskProgress) => {
    if (task.isSurprise) return Number.POSITIVE_INFINITY
    if (hasEnded(task.phase)) return task.endMs ?? 0
    return task.phase === 'waiting' ? -1 : Number.MAX_VALUE
  }
  const chosen = new Set(tasks.toSorted((a, b) => urgency(b) - urgency(a)).slice(0, Math.max(0, room - 1)))
  return { shown: tasks.filter((task) => chosen.has(task)), hidden: tasks.filter((task) => !chosen.has(task)) }
}

function describe(hidden: readonly TaskProgress[]): string {
  const ended = hidden.filter(({ phase }) => hasEnded(phase)).length
  const waiting = hidden.filter(({ phase }) => phase === 'waiting').length
  const counts = [count(ended, 'ended'), count(waiting, 'waiting'), count(hidden.length - ended - waiting, 'running')]
  return counts.filter((text) => text !== '').join(', ')
}

const count = (number: number, what: string): string => (number === 0 ? '' : `${number} ${what}`)

const MAX_BAR_COLUMNS = 24

/** What stands beside the bar at most, while nothing is wrong. */
const COUNTS_COLUMNS = '   20/20  12.34s  10 running · 1 failed on purpose · 2 skipped'.length

function barLine({ tasks, nowMs }: GraphProgress, columns: number, paint: Paint): string {
  const inPhase = (...phases: Phase[]) => tasks.filter(({ phase }) => phases.includes(phase)).length
  const ended = tasks.filter(({ phase }) => hasEnded(phase)).length
  const barColumns = Math.min(MAX_BAR_COLUMNS, Math.max(0, columns - COUNTS_COLUMNS))
  const filled = Math.round((ended / Math.max(1, tasks.length)) * barColumns)
  const counts: [Style, string][] = [
    ['cyan', count(inPhase('running', 'retrying'), 'running')],
    ['red', count(inPhase('failed'), tasks.some(({ isSurprise }) => isSurprise) ? 'failed' : 'failed on purpose')],
    ['yellow', count(inPhase('skipped', 'cancelled'), 'skipped')],
  ]
  const words = counts.filter(([, text]) => text !== '').map(([style, text]) => paint(style, text))
  const bar = paint('green', '█'.repeat(filled)) + paint('dim', '░'.repeat(barColumns - filled))
  return `${bar === '' ? '' : ` ${bar} `} ${ended}/${tasks.length}  ${formatSeconds(nowMs)}  ${words.join(paint('dim', ' · '))}`
}
