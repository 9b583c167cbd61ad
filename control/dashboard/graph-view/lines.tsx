/**
 * The lines between boxes, as a few SVG paths. One path has all lines and never changes. Highlighted lines are drawn
 * again on top of it.
 */
import { memo } from 'preact/compat'
import { useMemo } from 'preact/hooks'
import type { Boxes } from './boxes.ts'
import { type Drawing, pathOf, sizeOf } from './geometry.ts'

export interface LinesProps {
  readonly layout: Drawing
  readonly edges: Boxes['edges']
  /** Whether a box runs or failed: the lines to it are strong. */
  readonly isActive: readonly boolean[]
  readonly isCritical: readonly boolean[]
  readonly lit: ReadonlySet<number> | undefined
  /** The box whose implied edges are shown. */
  readonly pointed: number | undefined
}

export const Lines = memo(function Lines({ layout, edges, isActive, isCritical, lit, pointed }: LinesProps) {
  const paths = useMemo(() => layout.lines.map((line) => pathOf(layout, line, layout.layerOf[line.from]!)), [layout])
  const all = useMemo(() => paths.join(''), [paths])
  const implied = useMemo(() => impliedAt(pointed, edges, layout), [pointed, edges, layout])
  const pathOfThose = (isWanted: (from: number, to: number) => boolean): string =>
    layout.lines.reduce((path, { from, to }, index) => (isWanted(from, to) ? path + paths[index] : path), '')
  return (
    <svg class="lines" {...sizeOf(layout)} aria-hidden="true">
      <path d={all} />
      <path class="strong" d={pathOfThose((_, to) => isActive[to]!)} />
      <path class="critical" d={pathOfThose((from, to) => isCritical[from]! && isCritical[to]!)} />
      {lit !== undefined && <path class="lit" d={pathOfThose((from, to) => lit.has(from) && lit.has(to))} />}
      {implied !== '' && <path class="lit implied" d={implied} />}
    </svg>
  )
})

/** The edges of a box that the drawing leaves out because longer paths imply them. */
function impliedAt(box: number | undefined, edges: Boxes['edges'], layout: Drawing): string {
  if (box === undefined) return ''
  const drawn = new Set(layout.lines.map(({ from, to }) => `${from} ${to}`))
  return edges
    .filter(([from, to]) => (from === box || to === box) && !drawn.has(`${from} ${to}`))
    .map(([from, to]) => {
      const steps = layout.layerOf[to]! - layout.layerOf[from]!
      const [a, b] = [layout.rowOf[from]!, layout.rowOf[to]!]
      const rows = Array.from({ length: steps + 1 }, (_, step) => a + ((b - a) * step) / steps)
      return pathOf(layout, { from, to, rows }, layout.layerOf[from]!)
    })
    .join('')
}
