/** Colours and width of the output of `-o table`. */
import type { Paint } from '../../shared/text/live-view/palette.ts'

export interface Look {
  readonly paint: Paint
  /** Columns of the terminal; infinite where the output is no terminal. */
  readonly columns: number
  /** Milliseconds since 1970, for relative times. */
  readonly nowMs: number
}
