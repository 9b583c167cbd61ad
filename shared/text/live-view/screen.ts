/** The terminal, or the stream of lines, that a view writes to. */
import type { Size } from './frame.ts'
import type { GraphProgress } from './progress.ts'

/** Shows a graph while it runs. */
export interface LiveView {
  show(graph: GraphProgress): void
  /** Writes whole lines, which stay, before what is shown next. */
  above(lines: string): void
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
