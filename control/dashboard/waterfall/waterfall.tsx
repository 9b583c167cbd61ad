/** The waterfall of a graph: when each task waited (light) and ran (full), and the critical path. */
import { useMemo } from 'preact/hooks'
import { useMarkDrawn } from '../app/marks.ts'
import { Id } from '../app/parts.tsx'
import { StateIcon } from '../app/state-icon.tsx'
import { Windowed } from '../app/windowed.tsx'
import { durationText } from '../model/amounts.ts'
import { type CriticalPath, endMs } from '../model/critical-path.ts'
import type { GraphWatch } from '../model/graph-watch.ts'
import { lookOf } from '../model/looks.ts'
import { type WaterfallRow, waterfallOf } from './rows.ts'

const ROW_HEIGHT = 30

export function Waterfall({
  watch,
  critical,
  now,
  selectedId,
  onSelect,
}: {
  watch: GraphWatch
  critical: CriticalPath
  now: number
  selectedId: string | undefined
  onSelect: (taskId: string) => void
}) {
  useMarkDrawn()
  const { rows, totalMs, ticks } = useMemo(
    () => waterfallOf(watch.summary, watch.tasks, watch.edges, now),
    [watch.summary, watch.tasks, watch.edges, now],
  )
  return (
    <div class="waterfall">
      <p class="waterfall-summary">
        {durationText(totalMs)} in all. The critical path (<span class="critical-mark">marked</span>) has{' '}
        {critical.ids.size} {critical.ids.size === 1 ? 'task' : 'tasks'}, which ran{' '}
        {Math.round(critical.runningShare * 100)} % of the time. Light: waits although its dependencies are done. Full:
        runs.
      </p>
      <div class="waterfall-scale" aria-hidden="true">
        {ticks.map(({ at, ms }) => (
          <span key={ms} style={{ left: `${at}%` }}>
            {durationText(ms)}
          </span>
        ))}
      </div>
      <Windowed
        items={rows}
        rowHeight={ROW_HEIGHT}
        keyOf={(row) => row.task.id}
        label="Tasks in order of start"
        shownIndex={rows.findIndex(({ task }) => task.id === selectedId)}
        render={(row) => (
          <Row
            row={row}
            now={now}
            isCritical={critical.ids.has(row.task.id)}
            isSelected={row.task.id === selectedId}
            onSelect={onSelect}
          />
        )}
      />
    </div>
  )
}

function Row({
  row: { task, waiting, running },
  now,
  isCritical,
  isSelected,
  onSelect,
}: {
  row: WaterfallRow
  now: number
  isCritical: boolean
  isSelected: boolean
  onSelect: (taskId: string) => void
}) {
  const look = lookOf(task)
  const ran =
    task.started_at === undefined
      ? ''
      : durationText(task.duration_ms ?? endMs(task, now) - Date.parse(task.started_at))
  return (
    <button
      type="button"
      class={`waterfall-row${isCritical ? ' critical' : ''}`}
      aria-pressed={isSelected}
      onClick={() => onSelect(task.id)}
    >
      <span class="waterfall-name">
        <StateIcon look={look} />
        <Id text={task.id} />
        {(task.attempt ?? 1) > 1 && <span class="badge">↻ {task.attempt}</span>}
      </span>
      <span class="waterfall-bars">
        {waiting !== undefined && (
          <span class="bar waits" style={{ left: `${waiting.from}%`, width: `${waiting.width}%` }} />
        )}
        {running !== undefined && (
          <span class={`bar fill-${look}`} style={{ left: `${running.from}%`, width: `${running.width}%` }} />
        )}
      </span>
      {isCritical && <span class="for-readers">on the critical path</span>}
      <span class="waterfall-time">{ran}</span>
    </button>
  )
}
