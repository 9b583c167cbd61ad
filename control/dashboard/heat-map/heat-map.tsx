/**
 * A map of large graphs: one cell per task, in the order of the tasks, with the colour and the sign of its state. A
 * legend has the number of tasks in each state, with links to them.
 */

import { useEffect, useMemo, useRef, useState } from 'preact/hooks'
import { useMarkDrawn } from '../app/marks.ts'
import { StateIcon } from '../app/state-icon.tsx'
import { countText } from '../model/amounts.ts'
import type { GraphWatch } from '../model/graph-watch.ts'
import { BAR_ORDER, LOOK_WORDS, type Look, lookOf, typeWord } from '../model/looks.ts'
import { type GraphPlace, hashOf } from '../model/place.ts'
import { cellAfterKey, cellAt, cellLeft, cellTop, type Grid, gridOf, pathsOf } from './cells.ts'

export interface HeatMapProps {
  readonly watch: GraphWatch
  readonly place: GraphPlace
  readonly onSelect: (taskId: string) => void
}

export function HeatMap({ watch, place, onSelect }: HeatMapProps) {
  useMarkDrawn()
  const { tasks, indexOf, summary } = watch
  const [frame, width] = useWidth()
  const [cursor, setCursor] = useState(0)
  const grid = gridOf(tasks.length, width)
  const selected = place.taskId === undefined ? undefined : indexOf.get(place.taskId)
  const task = tasks[cursor]
  const cellOf = (event: MouseEvent) => {
    const { left, top } = (event.currentTarget as Element).getBoundingClientRect()
    return cellAt(grid, tasks.length, event.clientX - left, event.clientY - top)
  }
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === 'Enter' && task !== undefined) onSelect(task.id)
    const next = cellAfterKey(event.key, cursor, grid, tasks.length)
    if (next === undefined) return
    event.preventDefault()
    setCursor(next)
  }
  return (
    <div class="heat-map">
      <div class="heat-counts">
        {BAR_ORDER.filter((status) => (summary.counts[status] ?? 0) > 0).map((status) => (
          <a key={status} class="button small" href={hashOf({ ...place, view: 'table', state: status })}>
            <StateIcon look={status} word="" />
            {countText(summary.counts[status]!)} {LOOK_WORDS[status]}
          </a>
        ))}
      </div>
      <p class="heat-cursor quiet" aria-hidden="true">
        {task !== undefined && `${task.id} · ${typeWord(task)} · ${LOOK_WORDS[lookOf(task)]}`}
      </p>
      <div ref={frame} class="heat-frame">
        <div
          class="heat-cells"
          role="listbox"
          tabIndex={0}
          aria-label="Tasks in their order"
          aria-activedescendant="heat-cell"
          style={{ height: `${grid.rows * grid.size}px` }}
          onKeyDown={onKeyDown}
          onPointerMove={(event) => setCursor(cellOf(event) ?? cursor)}
          onClick={(event) => {
            const cell = cellOf(event)
            if (cell !== undefined) onSelect(tasks[cell]!.id)
          }}
        >
          <Cells watch={watch} grid={grid} />
          {task !== undefined && (
            <span
              id="heat-cell"
              class="heat-cell"
              role="option"
              tabIndex={-1}
              aria-selected={cursor === selected}
              aria-setsize={tasks.length}
              aria-posinset={cursor + 1}
              aria-label={`${task.id}, ${LOOK_WORDS[lookOf(task)]}`}
              style={cellStyle(grid, cursor)}
            />
          )}
          {selected !== undefined && <span class="heat-cell selected" style={cellStyle(grid, selected)} />}
        </div>
      </div>
    </div>
  )
}

const cellStyle = (grid: Grid, cell: number) => ({
  transform: `translate(${cellLeft(grid, cell)}px, ${cellTop(grid, cell)}px)`,
  width: `${grid.size}px`,
  height: `${grid.size}px`,
})

/** Two paths for each look, however many cells there are. */
function Cells({ watch: { tasks }, grid: { columns, rows, size } }: { watch: GraphWatch; grid: Grid }) {
  const paths = useMemo(() => {
    const looks = tasks.map(lookOf)
    const grid = { columns, rows, size }
    return [...new Set<Look>(looks)].map((look) => ({ look, ...pathsOf(grid, looks, look) }))
  }, [tasks, columns, rows, size])
  return (
    <svg width={columns * size} height={rows * size} aria-hidden="true">
      {paths.map(({ look, cells, signs }) => (
        <g key={look} class={`heat-${look}`}>
          <path class={`fill-${look}`} d={cells} />
          <path class="heat-sign" d={signs} />
        </g>
      ))}
    </svg>
  )
}

/** An element, and the width that it has. */
function useWidth() {
  const element = useRef<HTMLDivElement>(null)
  const [width, setWidth] = useState(800)
  useEffect(() => {
    if (element.current === null) return
    const observer = new ResizeObserver(([entry]) => setWidth(entry!.contentRect.width))
    observer.observe(element.current)
    return () => observer.disconnect()
  }, [])
  return [element, width] as const
}
