/** Shows a graph in a terminal while it runs: each frame is drawn over the one before. */
import { renderFrame } from './frame.ts'
import type { Paint } from './palette.ts'
import type { GraphProgress } from './progress.ts'
import { type LiveView, type Screen, sizeOf } from './screen.ts'

const HIDE_CURSOR = '\x1b[?25l'
const SHOW_CURSOR = '\x1b[?25h'
const CLEAR_LINE_END = '\x1b[K'
const CLEAR_BELOW = '\x1b[J'
/** The terminal shows nothing in between. Terminals that do not know these two ignore them. */
const BEGIN_UPDATE = '\x1b[?2026h'
const END_UPDATE = '\x1b[?2026l'

export class TerminalView implements LiveView {
  readonly #screen: Screen
  readonly #title: string
  readonly #paint: Paint
  /** The lines that stand above the cursor. */
  #drawn: readonly string[] = []

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
    this.#draw('', lines)
  }

  above(lines: string): void {
    this.#draw(`${CLEAR_BELOW}${lines}`, this.#drawn)
  }

  /** Writes `above`, then a new frame, over the last one. */
  #draw(above: string, lines: readonly string[]): void {
    const { columns, rows } = sizeOf(this.#screen)
    // A terminal that became narrower has broken the lines of the last frame; it can no longer reach those above its top.
    const rowsOf = (line: string) => Math.max(1, Math.ceil(Bun.stringWidth(line) / columns))
    const drawnRows = this.#drawn.reduce((sum, line) => sum + rowsOf(line), 0)
    const up = Math.min(drawnRows, rows - 1)
    const text = lines.map((line) => `${line}${CLEAR_LINE_END}\n`).join('')
    this.#screen.write(`${BEGIN_UPDATE}${up > 0 ? `\x1b[${up}A` : ''}\r${above}${text}${CLEAR_BELOW}${END_UPDATE}`)
    this.#drawn = lines
  }

  close(): void {
    this.#screen.write(SHOW_CURSOR)
  }
}
