/**
 * The lines between boxes, as a few SVG paths. One path has all lines and never changes. Highlighted lines are drawn
 * again on top of it.
 */
import { memo } from 'preact/compat'
import { useMemo } from 'preact/hooks'
import type { Drawing } from './geometry.ts'

export interface LinesProps {
  readonly drawing: Drawing
  /** Whether a box runs or failed: the lines to it are strong. */
  readonly isActive: readonly boolean[]
  readonly isCritical: readonly boolean[]
  readonly lit: ReadonlySet<number> | undefined
  /** The box whose implied edges are shown. */
  readonly pointed: number | undefined
}

export const Lines = memo(function Lines({ drawing, isActive, isCritical, lit, pointed }: LinesProps) {
  const { lines } = drawing
  const all = useMemo(() => lines.map(({ path }) => path).join(''), [lines])
  const implied = useMemo(() => (pointed === undefined ? '' : drawing.impliedAt(pointed)), [pointed, drawing])
  const pathOfThose = (isWanted: (from: number, to: number) => boolean): string =>
    lines.reduce((all, { from, to, path }) => (isWanted(from, to) ? all + path : all), '')
  return (
    <svg class="lines" {...drawing.size} aria-hidden="true">
      <path d={all} />
      <path class="strong" d={pathOfThose((_, to) => isActive[to]!)} />
      <path class="critical" d={pathOfThose((from, to) => isCritical[from]! && isCritical[to]!)} />
      {lit !== undefined && <path class="lit" d={pathOfThose((from, to) => lit.has(from) && lit.has(to))} />}
      {implied !== '' && <path class="lit implied" d={implied} />}
    </svg>
  )
})
