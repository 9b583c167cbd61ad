/** The cells of a heat map: their positions and their SVG paths. Pure. */
import type { Look } from '../model/looks.ts'

export interface Grid {
  readonly columns: number
  readonly rows: number
  /** Side of a cell with the space around it, in CSS pixels. */
  readonly size: number
}

/** The size of a cell for up to so many cells. Large graphs get small cells, so that a window shows most of them. */
const SIZES = [
  { upTo: 1_000, size: 18 },
  { upTo: 4_000, size: 13 },
  { upTo: Number.POSITIVE_INFINITY, size: 9 },
] as const

/** Space between two cells. */
const SPACE = 2

export function gridOf(count: number, width: number): Grid {
  const { size } = SIZES.find(({ upTo }) => count <= upTo)!
  const columns = Math.max(1, Math.floor(width / size))
  return { columns, rows: Math.ceil(count / columns), size }
}

/** The cell at a point; undefined if the point is outside all cells. */
export function cellAt({ columns, size }: Grid, count: number, x: number, y: number): number | undefined {
  const column = Math.floor(x / size)
  const cell = Math.floor(y / size) * columns + column
  return x < 0 || y < 0 || column >= columns || cell >= count ? undefined : cell
}

export const cellLeft = ({ columns, size }: Grid, cell: number): number => (cell % columns) * size
export const cellTop = ({ columns, size }: Grid, cell: number): number => Math.floor(cell / columns) * size

/** The cell that a key leads to from `cell`; undefined for other keys, and at the edges. */
export function cellAfterKey(key: string, cell: number, { columns }: Grid, count: number): number | undefined {
  const steps: Readonly<Record<string, number>> = {
    ...{ ArrowRight: 1, ArrowLeft: -1, ArrowDown: columns, ArrowUp: -columns },
    ...{ Home: -cell, End: count - 1 - cell },
  }
  const next = cell + (steps[key] ?? Number.NaN)
  return next >= 0 && next < count ? next : undefined
}

/** Two SVG paths: one draws all cells with this look, one draws their signs. The sign repeats the state as a shape. */
export function pathsOf(grid: Grid, looks: readonly Look[], look: Look): { cells: string; signs: string } {
  const side = grid.size - SPACE
  let [cells, signs] = ['', '']
  for (const [cell, one] of looks.entries()) {
    if (one !== look) continue
    const start = `M${cellLeft(grid, cell)} ${cellTop(grid, cell)}`
    cells += `${start}h${side}v${side}h${-side}z`
    const sign = SIGNS[look]
    if (sign !== undefined) signs += start + sign(side)
  }
  return { cells, signs }
}

/** Drawn into a cell from its left upper corner. A success is a plain field. */
const SIGNS: Readonly<Partial<Record<Look, (side: number) => string>>> = {
  failed: (side) => `l${side} ${side}m${-side} 0l${side} ${-side}`,
  cancelled: (side) => `m0 ${side / 2}h${side}`,
  skipped: (side) => `m0 ${side}l${side} ${-side}`,
  running: (side) => dot(side, side / 2),
  cancelling: (side) => dot(side, side / 2),
  tolerated: (side) => `l${side} ${side}`,
  unneeded: (side) => `m${side / 4} ${side / 2}h${side / 2}`,
  asking: (side) => `m${side / 2} 0v${side}m${-side / 2} ${-side / 2}h${side}`,
  backoff: (side) => `m${side / 2} 0v${side}`,
}

/** A square in the middle. */
const dot = (side: number, of: number): string => `m${(side - of) / 2} ${(side - of) / 2}h${of}v${of}h${-of}z`
