/** Shows a graph where there is no terminal while it runs: a line for each change. */
import { visibleLine } from '../visible-text.ts'
import { formatSeconds } from './frame.ts'
import { type GraphProgress, isToleratedFailure, type TaskProgress } from './progress.ts'
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
    const news = tasks.filter((task) => stateOf(task) !== (this.#last.get(task.id) ?? 'waiting'))
    const when = ({ endMs, startMs, phase, attempt }: TaskProgress) =>
      (phase === 'running' && attempt === 1 ? startMs : endMs) ?? nowMs
    for (const task of news.sort((a, b) => when(a) - when(b))) {
      this.#last.set(task.id, stateOf(task))
      this.#write(when(task), `${task.id}: ${stateOf(task)}`)
    }
    if (notice !== '' && notice !== this.#lastNotice) this.#write(nowMs, notice)
    this.#lastNotice = notice
  }

  #write(ms: number, text: string): void {
    this.#screen.write(`${formatSeconds(ms).padStart(7)}  ${visibleLine(text)}\n`)
  }

  close(): void {}
}

function stateOf(task: TaskProgress): string {
  const { phase, attempt, reason, isReused, detail } = task
  if (phase === 'asking') return detail || phase
  const words = isToleratedFailure(task) ? `${phase}, tolerated` : phase
  const tries = isReused ? ' (reused)' : attempt > 1 ? ` (attempt ${attempt})` : ''
  return `${words}${tries}${reason === '' ? '' : `: ${reason}`}`
}
