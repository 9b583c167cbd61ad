/** Shows a graph while it runs: redrawn in place on a terminal, a line for each change anywhere else. */
import { formatSeconds, renderFrame, type Size } from './frame.ts'
import type { Paint } from './palette.ts'
import type { GraphProgress, TaskProgress } from './progress.ts'

export interface LiveView {
  show(graph: GraphProgress): void
  /** Gives the terminal back. What is shown stays. */
  close(): void
}

/** What the views need of a stream to a terminal. */
export interface Screen {
  write(text: string): unknown
  readonly columns?: number
  readonly rows?: number
}

/** Where a terminal does not know its own size. */
const DEFAULT_SIZE: Size = { columns: 80, rows: 24 }

export const sizeOf = ({ columns, rows }: Screen): Size => ({
  columns: columns || DEFAULT_SIZE.columns,
  rows: rows || DEFAULT_SIZE.rows,
})

const HIDE_CURSOR = '\x1b[?25l'
const SHOW_CURSOR = '\x1b[?25h'
const CLEAR_LINE_END = '\x1b[K'
const CLEAR_BELOW = '\x1b[J'
/** The terminal shows nothing in between; those that do not know this ignore it. */
const BEGIN_UPDATE = '\x1b[?2026h'
const END_UPDATE = '\x1b[?2026l'

export class TerminalView implements LiveView {
  readonly #screen: Screen
  readonly #title: string
  readonly #paint: Paint
  /** Widths of the lines that stand above the cursor. */
  #drawn: readonly number[] = []

  constructor(screen: Screen, title: string, paint: Paint) {
    this.#screen = screen
    this.#title = title
    this.#paint = paint
    screen.write(HIDE_CURSOR)
  }

  show(graph: GraphProgress): void {
    const size = sizeOf(this.#screen)
    // The cursor stands on a line of its own below the frame, and a line that is full must not wrap.
    const room = { columns: size.columns - 1, rows: size.rows - 1 }
    const lines = renderFrame(this.#title, graph, room, this.#paint)
    // A terminal that became narrower has broken the lines of the last frame; it can no longer reach those above its top.
    const drawnRows = this.#drawn.reduce((sum, width) => sum + Math.max(1, Math.ceil(width / size.columns)), 0)
    const up = Math.min(drawnRows, size.rows - 1)
    const text = lines.map((line) => `${line}${CLEAR_LINE_END}\n`).join('')
    this.#screen.write(`${BEGIN_UPDATE}${up > 0 ? `\x1b[${up}A` : ''}\r${text}${CLEAR_BELOW}${END_UPDATE}`)
    this.#drawn = lines.map((line) => Bun.stringWidth(line))
  }

  close(): void {
    this.#screen.write(SHOW_CURSOR)
  }
}

export class PlainView implements LiveView {
  readonly #screen: Screen
  readonly #last = new Map<string, string>()

  constructor(screen: Screen, title: string) {
    this.#screen = screen
    screen.write(`${title}\n`)
  }

  show({ tasks, nowMs }: GraphProgress): void {
    const news = tasks.filter((task) => stateOf(task) !== (this.#last.get(task.id) ?? 'waiting'))
    const when = ({ endMs, startMs, phase, attempt }: TaskProgress) =>
      (phase === 'running' && attempt === 1 ? startMs : endMs) ?? nowMs
    for (const task of news.sort((a, b) => when(a) - when(b))) {
      this.#last.set(task.id, stateOf(task))
      this.#screen.write(`${formatSeconds(when(task)).padStart(7)}  ${task.id}: ${stateOf(task)}\n`)
    }
  }

  close(): void {}
}

function stateOf({ phase, attempt, reason }: TaskProgress): string {
  const tries = attempt > 1 ? ` (attempt ${attempt})` : ''
  return `${phase}${tries}${reason === '' ? '' : `: ${reason}`}`
}
