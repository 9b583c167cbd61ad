/**
 * Shows a graph where there is no terminal while it runs: a line for each change. Of many children, only those get lines that
 * fail, wait for somebody or are retried, and their parent gets one for each tenth of them.
 */
import { visibleLine } from '../visible-text.ts'
import { formatSeconds } from './frame.ts'
import { type GraphProgress, isToleratedFailure, type Phase, type TaskProgress } from './progress.ts'
import type { LiveView, Screen } from './screen.ts'

export class PlainView implements LiveView {
  readonly #screen: Screen
  readonly #last = new Map<string, string>()
  #lastNotice = ''

  constructor(screen: Screen, title: string) {
    this.#screen = screen
    screen.write(`${visibleLine(title)}\n`)
  }

  show({ tasks, nowMs, notice = '' }: GraphProgress): void {
    const crowded = new Set(tasks.flatMap(({ id, children }) => (children && children.total > MAX_CHILDREN ? id : [])))
    const isQuiet = ({ parent, phase }: TaskProgress) => parent !== undefined && crowded.has(parent) && QUIET.has(phase)
    const news = tasks.filter((task) => !isQuiet(task) && stateOf(task) !== (this.#last.get(task.id) ?? 'waiting'))
    const when = (task: TaskProgress) => {
      const { id, endMs, startMs, phase, attempt } = task
      const isStart = phase === 'running' && attempt === 1 && tenthsOf(task) === '' && !this.#last.has(id)
      return (isStart ? startMs : endMs) ?? nowMs
    }
    for (const task of news.sort((a, b) => when(a) - when(b))) {
      this.#write(when(task), `${task.id}: ${stateOf(task)}`)
      this.#last.set(task.id, stateOf(task))
    }
    if (notice !== '' && notice !== this.#lastNotice) this.#write(nowMs, notice)
    this.#lastNotice = notice
  }

  #write(ms: number, text: string): void {
    this.#screen.write(`${formatSeconds(ms).padStart(7)}  ${visibleLine(text)}\n`)
  }

  above(lines: string): void {
    this.#screen.write(lines)
  }

  close(): void {}
}

/** Children of one task that get a line for each change. */
const MAX_CHILDREN = 20

/** The phases that a child among many gets no line for. */
const QUIET: ReadonlySet<Phase> = new Set(['waiting', 'running', 'success', 'cancelled'])

/** How many children have ended, in tenths; empty for few children. */
function tenthsOf({ phase, children }: TaskProgress): string {
  if (phase !== 'running' || children === undefined || children.total <= MAX_CHILDREN) return ''
  const tenth = Math.ceil(children.total / 10)
  const ended = Math.floor(children.ended / tenth) * tenth
  return ended === 0 ? '' : `: ${ended} of ${children.total}`
}

function stateOf(task: TaskProgress): string {
  const { phase, attempt, reason, isReused, detail, startMs } = task
  if (phase === 'asking') return detail || phase
  // What waits although it has started says why; one that has not started yet has no line.
  if (phase === 'waiting') return startMs !== undefined && detail ? `waiting: ${detail}` : phase
  const words = isToleratedFailure(task) ? `${phase}, tolerated` : phase
  const tries = isReused ? ' (reused)' : attempt > 1 ? ` (attempt ${attempt})` : ''
  return `${words}${tries}${reason === '' ? tenthsOf(task) : `: ${reason}`}`
}
