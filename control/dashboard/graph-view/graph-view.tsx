/**
 * The drawing of a graph. It is laid out once for each shape of the graph; a state that changes moves nothing.
 *
 * Boxes are buttons above the lines, so that focus, names and clicks are those of the browser. One of them is in the tab
 * order; arrow keys go along the edges.
 */
import { memo } from 'preact/compat'
import { useCallback, useEffect, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks'
import { markDrawn } from '../app/marks.ts'
import { StateBar } from '../app/parts.tsx'
import { StateIcon } from '../app/state-icon.tsx'
import { clockText, durationText, idParts } from '../model/amounts.ts'
import { countsOf } from '../model/counts.ts'
import { endMs } from '../model/critical-path.ts'
import type { GraphWatch } from '../model/graph-watch.ts'
import { type Look, lookOf, typeWord } from '../model/looks.ts'
import type { GraphTask } from '../model/wire.ts'
import { type Boxes, boxesOf } from './boxes.ts'
import { BOX_HEIGHT, BOX_WIDTH, heightOf, leftOf, pathOf, topOf, widthOf } from './geometry.ts'
import { kinOf } from './kin.ts'
import { type Layout, layOut } from './layout.ts'

const LEAST_SCALE = 0.2
const MOST_SCALE = 1.5
const SCALE_STEP = 1.25

/** Below it, a box shows its state and id only. */
const DETAIL_SCALE = 0.6

/** A graph is not shown smaller than this before one asks for it. */
const LEAST_FIRST_SCALE = 0.65

/** Characters at the end of an id that a box always shows: ids of one graph differ there. */
const TAIL_CHARACTERS = 5

export interface GraphViewProps {
  readonly watch: GraphWatch
  readonly critical: ReadonlySet<string>
  readonly now: number
  readonly selectedId: string | undefined
  readonly onSelect: (taskId: string | undefined) => void
}

export function GraphView({ watch, critical, now, selectedId, onSelect }: GraphViewProps) {
  const { tasks, edges, indexOf } = watch
  const [opened, setOpened] = useState<ReadonlySet<string>>(new Set())
  const [pointed, setPointed] = useState<number>()
  const { boxes, edges: boxEdges, boxOf } = useMemo(() => boxesOf(tasks, edges, opened), [edges, indexOf, opened])
  const layout = useMemo(() => layOut(boxes.length, boxEdges), [boxes, boxEdges])
  const paths = useMemo(() => layout.lines.map((line) => pathOf(line, layout.layerOf[line.from]!)), [layout])
  const selectedBox = selectedId === undefined ? undefined : boxOf[indexOf.get(selectedId) ?? -1]
  const view = useView(layout, selectedBox)
  useLayoutEffect(markDrawn, [layout])
  const lit = useMemo(() => {
    const box = pointed ?? selectedBox
    return box === undefined ? undefined : kinOf(box, boxEdges)
  }, [pointed, selectedBox, boxEdges])
  const implied = useMemo(
    () => impliedAt(pointed ?? selectedBox, boxEdges, layout),
    [pointed, selectedBox, boxEdges, layout],
  )

  const choose = useCallback(
    (box: number) => {
      const { key, members } = boxes[box]!
      if (members.length === 1) onSelect(tasks[members[0]!]!.id)
      else setOpened((before) => new Set([...before, key]))
    },
    [boxes, onSelect],
  )
  const onKeyDown = (event: KeyboardEvent) => {
    const from = Number((event.target as HTMLElement).dataset.box ?? Number.NaN)
    if (Number.isNaN(from)) return
    const to = neighbour(event.key, from, layout, boxEdges)
    if (to === undefined) return
    event.preventDefault()
    view.canvas.current?.querySelector<HTMLElement>(`[data-box="${to}"]`)?.focus()
  }
  const tabStop = pointed ?? selectedBox ?? 0
  const isStrong = (from: number, to: number) => {
    const looks = boxes[to]!.members.map((task) => tasks[task]!.status)
    return looks.includes('running') || looks.includes('failed') || (isCritical(from) && isCritical(to))
  }
  const isCritical = (box: number) => boxes[box]!.members.some((task) => critical.has(tasks[task]!.id))
  return (
    <div class="graph-view">
      <div class="graph-tools">
        <button type="button" class="small" onClick={() => view.zoom(1 / SCALE_STEP)} aria-label="Zoom out">
          −
        </button>
        <span class="zoom">{Math.round(view.scale * 100)} %</span>
        <button type="button" class="small" onClick={() => view.zoom(SCALE_STEP)} aria-label="Zoom in">
          +
        </button>
        <button type="button" class="small" onClick={view.fit}>
          Fit
        </button>
        {opened.size > 0 && (
          <button type="button" class="small" onClick={() => setOpened(new Set())}>
            Close groups
          </button>
        )}
      </div>
      {/* biome-ignore lint/a11y/noStaticElementInteractions: it passes arrow keys on between the buttons inside, and lets one drag the drawing */}
      <div
        ref={view.frame}
        class={`graph-frame${view.scale < DETAIL_SCALE ? ' far' : ''}`}
        onKeyDown={onKeyDown}
        onPointerDown={view.onPointerDown}
        onPointerLeave={() => setPointed(undefined)}
      >
        <div style={{ width: `${widthOf(layout) * view.scale}px`, height: `${heightOf(layout) * view.scale}px` }}>
          <div
            ref={view.canvas}
            class={`graph-canvas${lit === undefined ? '' : ' has-lit'}`}
            style={{
              width: `${widthOf(layout)}px`,
              height: `${heightOf(layout)}px`,
              transform: `scale(${view.scale})`,
            }}
          >
            <svg class="lines" width={widthOf(layout)} height={heightOf(layout)} aria-hidden="true">
              {layout.lines.map(({ from, to }, index) => (
                <path
                  key={`${from} ${to}`}
                  d={paths[index]}
                  class={lineClass(isStrong(from, to), isCritical(from) && isCritical(to), lit, from, to)}
                />
              ))}
              {implied.map((path) => (
                <path key={path} d={path} class="implied lit" />
              ))}
            </svg>
            {boxes.map((box, index) => {
              const place = {
                box: index,
                x: leftOf(layout.layerOf[index]!),
                y: topOf(layout.rowOf[index]!),
                isLit: lit?.has(index) === true,
                isSelected: index === selectedBox,
                isTabStop: index === tabStop,
                onChoose: choose,
                onPoint: setPointed,
              }
              if (box.members.length > 1) {
                return (
                  <GroupBox
                    key={box.key}
                    {...place}
                    label={box.label}
                    tasks={box.members.map((task) => tasks[task]!)}
                  />
                )
              }
              const task = tasks[box.members[0]!]!
              const isRunning = task.status === 'running' || task.status === 'cancelling'
              return (
                <TaskBox
                  key={box.key}
                  {...place}
                  task={task}
                  isCritical={isCritical(index)}
                  now={isRunning ? now : 0}
                />
              )
            })}
          </div>
        </div>
      </div>
      <MiniMap
        layout={layout}
        view={view}
        lookOfBox={(box) => worstLook(boxes[box]!.members.map((task) => tasks[task]!))}
      />
    </div>
  )
}

const lineClass = (
  isStrong: boolean,
  isCritical: boolean,
  lit: ReadonlySet<number> | undefined,
  from: number,
  to: number,
) => `${isStrong ? 'strong' : ''} ${isCritical ? 'critical' : ''} ${lit?.has(from) && lit.has(to) ? 'lit' : ''}`

interface BoxPlace {
  readonly box: number
  readonly x: number
  readonly y: number
  readonly isLit: boolean
  readonly isSelected: boolean
  readonly isTabStop: boolean
  readonly onChoose: (box: number) => void
  readonly onPoint: (box: number | undefined) => void
}

const placeProps = ({ box, x, y, isTabStop, onChoose, onPoint }: BoxPlace) => ({
  'data-box': box,
  tabIndex: isTabStop ? 0 : -1,
  style: { transform: `translate(${x}px, ${y}px)`, width: `${BOX_WIDTH}px`, height: `${BOX_HEIGHT}px` },
  onClick: () => onChoose(box),
  onPointerEnter: () => onPoint(box),
  onFocus: () => onPoint(box),
})

interface TaskBoxProps extends BoxPlace {
  readonly task: GraphTask
  readonly isCritical: boolean
  readonly now: number
}

const TaskBox = memo(function TaskBox({ task, isCritical, now, ...place }: TaskBoxProps) {
  const look = lookOf(task)
  const time = timeOf(task, now)
  const [head, tail] = idParts(task.id, TAIL_CHARACTERS)
  return (
    <button
      type="button"
      {...placeProps(place)}
      class={`box look-${look}${place.isLit ? ' lit' : ''}${isCritical ? ' critical' : ''}`}
      aria-pressed={place.isSelected}
      title={task.id}
    >
      <StateIcon look={look} />
      <span class="box-text">
        <span class="id">
          <span class="head">{head}</span>
          <span class="tail">{tail}</span>
        </span>
        <span class="box-detail">
          <span class="type">{typeWord(task)}</span>
          {(task.attempt ?? 1) > 1 && <span title={`attempt ${task.attempt}`}>↻{task.attempt}</span>}
          <span class="time">{time}</span>
        </span>
      </span>
    </button>
  )
})

interface GroupBoxProps extends BoxPlace {
  readonly label: string
  readonly tasks: readonly GraphTask[]
}

function GroupBox({ label, tasks, ...place }: GroupBoxProps) {
  const look = worstLook(tasks)
  return (
    <button
      type="button"
      {...placeProps(place)}
      class={`box group look-${look}${place.isLit ? ' lit' : ''}`}
      title={`${tasks.length} tasks: click to open`}
    >
      <StateIcon look={look} />
      <span class="box-text">
        <span class="id">
          <span class="head">{label}</span>
        </span>
        <span class="box-detail">
          <span class="type">{tasks.length} tasks</span>
          <StateBar counts={countsOf(tasks)} total={tasks.length} />
        </span>
      </span>
    </button>
  )
}

/** What one has to know first of several tasks. */
function worstLook(tasks: readonly GraphTask[]): Look {
  const order: readonly Look[] = [
    'failed',
    'running',
    'backoff',
    'cancelling',
    'pending',
    'cancelled',
    'skipped',
    'success',
  ]
  const looks = new Set(tasks.map(lookOf))
  if (looks.has('pending') && looks.has('success') && !looks.has('failed')) return 'running'
  return order.find((look) => looks.has(look)) ?? 'pending'
}

function timeOf(task: GraphTask, now: number): string {
  if (task.started_at === undefined) return ''
  if (task.finished_at === undefined) return clockText(endMs(task, now) - Date.parse(task.started_at))
  return durationText(task.duration_ms ?? Date.parse(task.finished_at) - Date.parse(task.started_at))
}

/** Paths of the edges of a box that the drawing leaves out because longer paths imply them. */
function impliedAt(box: number | undefined, edges: Boxes['edges'], layout: Layout): string[] {
  if (box === undefined) return []
  const drawn = new Set(layout.lines.map(({ from, to }) => `${from} ${to}`))
  return edges
    .filter(([from, to]) => (from === box || to === box) && !drawn.has(`${from} ${to}`))
    .map(([from, to]) => {
      const steps = layout.layerOf[to]! - layout.layerOf[from]!
      const [a, b] = [layout.rowOf[from]!, layout.rowOf[to]!]
      const rows = Array.from({ length: steps + 1 }, (_, step) => a + ((b - a) * step) / steps)
      return pathOf({ from, to, rows }, layout.layerOf[from]!)
    })
}

/** The box that an arrow key leads to. */
function neighbour(key: string, from: number, { layerOf, rowOf }: Layout, edges: Boxes['edges']): number | undefined {
  const near = (boxes: readonly number[]) =>
    boxes.toSorted((a, b) => Math.abs(rowOf[a]! - rowOf[from]!) - Math.abs(rowOf[b]! - rowOf[from]!))[0]
  if (key === 'ArrowRight') return near(edges.filter(([a]) => a === from).map(([, b]) => b))
  if (key === 'ArrowLeft') return near(edges.filter(([, b]) => b === from).map(([a]) => a))
  const step = key === 'ArrowDown' ? 1 : key === 'ArrowUp' ? -1 : 0
  if (step === 0) return undefined
  const same = [...rowOf.keys()].filter(
    (box) => layerOf[box] === layerOf[from] && (rowOf[box]! - rowOf[from]!) * step > 0,
  )
  return near(same)
}

/** Scale and place of what one sees of the drawing. */
function useView(layout: Layout, selectedBox: number | undefined) {
  const frame = useRef<HTMLDivElement>(null)
  const canvas = useRef<HTMLDivElement>(null)
  const [scale, setScale] = useState(1)
  const [seen, setSeen] = useState({ left: 0, top: 0, width: 1, height: 1 })
  const fitScale = useCallback(
    (least: number) => {
      const { clientWidth = 1, clientHeight = 1 } = frame.current ?? {}
      const whole = Math.min(clientWidth / widthOf(layout), clientHeight / heightOf(layout))
      return Math.min(1, Math.max(least, whole))
    },
    [layout],
  )
  useEffect(() => setScale(fitScale(LEAST_FIRST_SCALE)), [fitScale])
  const zoom = useCallback((by: number) => {
    const element = frame.current
    setScale((before) => {
      const after = Math.min(MOST_SCALE, Math.max(LEAST_SCALE, before * by))
      if (element !== null) {
        const { scrollLeft, scrollTop, clientWidth, clientHeight } = element
        requestAnimationFrame(() => {
          element.scrollLeft = ((scrollLeft + clientWidth / 2) * after) / before - clientWidth / 2
          element.scrollTop = ((scrollTop + clientHeight / 2) * after) / before - clientHeight / 2
        })
      }
      return after
    })
  }, [])
  useEffect(() => {
    const element = frame.current
    if (element === null) return
    const measure = () =>
      setSeen({
        ...{ left: element.scrollLeft / scale, top: element.scrollTop / scale },
        ...{ width: element.clientWidth / scale, height: element.clientHeight / scale },
      })
    const onWheel = (event: WheelEvent) => {
      if (!event.ctrlKey && !event.metaKey) return
      event.preventDefault()
      zoom(event.deltaY < 0 ? 1.1 : 1 / 1.1)
    }
    const observer = new ResizeObserver(measure)
    observer.observe(element)
    element.addEventListener('scroll', measure, { passive: true })
    element.addEventListener('wheel', onWheel, { passive: false })
    measure()
    return () => {
      observer.disconnect()
      element.removeEventListener('scroll', measure)
      element.removeEventListener('wheel', onWheel)
    }
  }, [scale, zoom])
  useEffect(() => {
    if (selectedBox === undefined) return
    canvas.current
      ?.querySelector(`[data-box="${selectedBox}"]`)
      ?.scrollIntoView({ block: 'nearest', inline: 'nearest' })
  }, [selectedBox])
  const onPointerDown = (event: PointerEvent) => {
    const element = frame.current
    if (element === null || event.pointerType !== 'mouse' || event.button !== 0) return
    if ((event.target as HTMLElement).closest('button') !== null) return
    const from = { x: event.clientX + element.scrollLeft, y: event.clientY + element.scrollTop }
    const onMove = (move: PointerEvent) => {
      element.scrollLeft = from.x - move.clientX
      element.scrollTop = from.y - move.clientY
    }
    element.setPointerCapture(event.pointerId)
    element.addEventListener('pointermove', onMove)
    element.addEventListener('pointerup', () => element.removeEventListener('pointermove', onMove), { once: true })
  }
  return { frame, canvas, scale, seen, zoom, fit: () => setScale(fitScale(LEAST_SCALE)), onPointerDown }
}

const MINI_WIDTH = 160
const MINI_HEIGHT = 100

/** The whole drawing in small, with what one sees of it. Absent while one sees all. */
function MiniMap({
  layout,
  view,
  lookOfBox,
}: {
  layout: Layout
  view: ReturnType<typeof useView>
  lookOfBox: (box: number) => Look
}) {
  const [width, height] = [widthOf(layout), heightOf(layout)]
  const { seen, frame, scale } = view
  if (seen.width >= width - 2 && seen.height >= height - 2) return null
  const by = Math.min(MINI_WIDTH / width, MINI_HEIGHT / height)
  const onPointer = (event: PointerEvent) => {
    if (event.buttons === 0 || frame.current === null) return
    const map = (event.currentTarget as Element).getBoundingClientRect()
    frame.current.scrollLeft = ((event.clientX - map.left) / by) * scale - frame.current.clientWidth / 2
    frame.current.scrollTop = ((event.clientY - map.top) / by) * scale - frame.current.clientHeight / 2
  }
  return (
    <svg
      class="mini-map"
      width={width * by}
      height={height * by}
      aria-hidden="true"
      onPointerDown={onPointer}
      onPointerMove={onPointer}
    >
      {layout.layerOf.map((layer, box) => (
        <rect
          key={box}
          class={`fill-${lookOfBox(box)}`}
          x={leftOf(layer) * by}
          y={topOf(layout.rowOf[box]!) * by}
          width={Math.max(2, BOX_WIDTH * by)}
          height={Math.max(2, BOX_HEIGHT * by)}
        />
      ))}
      <rect
        class="seen"
        x={seen.left * by}
        y={seen.top * by}
        width={Math.min(seen.width, width) * by}
        height={Math.min(seen.height, height) * by}
      />
    </svg>
  )
}
