/**
 * The drawing of a graph. It is laid out once for each shape of the graph; changed states move nothing.
 *
 * Boxes are buttons above the lines, so the browser handles focus, names and clicks. One box is in the tab order. Arrow
 * keys move along the edges.
 */
import { useLayoutEffect, useMemo, useState } from 'preact/hooks'
import { markDrawn } from '../app/marks.ts'
import type { GraphWatch } from '../model/graph-watch.ts'
import { worstLook } from '../model/looks.ts'
import type { GraphTask } from '../model/wire.ts'
import { boxesOf } from './boxes.ts'
import { withChildEdges } from './child-edges.ts'
import { cornerOf, sizeOf } from './geometry.ts'
import { kinOf } from './kin.ts'
import { layOut } from './layout.ts'
import { Lines } from './lines.tsx'
import { MiniMap } from './mini-map.tsx'
import { neighbour } from './neighbour.ts'
import { GroupBox, TaskBox } from './task-box.tsx'
import { useGrowing } from './use-growing.ts'
import { useView } from './use-view.ts'
import { isInPart } from './window.ts'

const ZOOM_STEP = 1.25

/** The first frame has the boxes that one sees. Each frame after it has so many more, until all are there. */
const LATER_BOXES = 100

/** Scales. Below the first, a box shows only its state and id. Below the second, it shows only its state. */
const DETAIL_SCALE = 0.6
const ID_SCALE = 0.35

const distanceClass = (scale: number) => (scale < ID_SCALE ? ' farthest' : scale < DETAIL_SCALE ? ' far' : '')

export interface GraphViewProps {
  readonly watch: GraphWatch
  readonly critical: ReadonlySet<string>
  readonly now: number
  readonly selectedId: string | undefined
  readonly onSelect: (taskId: string | undefined) => void
}

/** Keeps whether graphs are drawn from top to bottom, for this browser. */
const DIRECTION_KEY = 'taskmill-direction'

/** The keys of a drawing from left to right for those of one from top to bottom. */
const TURNED_KEYS: Readonly<Record<string, string>> = {
  ...{ ArrowDown: 'ArrowRight', ArrowRight: 'ArrowDown', ArrowUp: 'ArrowLeft', ArrowLeft: 'ArrowUp' },
}

export function GraphView(props: GraphViewProps) {
  const [isDown, setIsDown] = useState(() => localStorage.getItem(DIRECTION_KEY) === 'down')
  const onTurn = () => {
    localStorage.setItem(DIRECTION_KEY, isDown ? 'right' : 'down')
    setIsDown(!isDown)
  }
  return <Drawn key={String(isDown)} {...props} isDown={isDown} onTurn={onTurn} />
}

interface DrawnProps extends GraphViewProps {
  readonly isDown: boolean
  readonly onTurn: () => void
}

function Drawn({ watch, critical, now, selectedId, onSelect, isDown, onTurn }: DrawnProps) {
  const { tasks, edges, indexOf } = watch
  const [opened, setOpened] = useState<ReadonlySet<string>>(new Set())
  const [pointed, setPointed] = useState<number>()
  const drawn = useMemo(() => withChildEdges(tasks, edges), [edges, indexOf])
  const { boxes, edges: boxEdges, boxOf } = useMemo(() => boxesOf(tasks, drawn, opened), [drawn, opened])
  const layout = useMemo(() => ({ ...layOut(boxes.length, boxEdges), isDown }), [boxes, boxEdges])
  const selectedBox = selectedId === undefined ? undefined : boxOf[indexOf.get(selectedId) ?? -1]
  useLayoutEffect(markDrawn, [layout])
  const focusBox = pointed ?? selectedBox
  const lit = useMemo(() => (focusBox === undefined ? undefined : kinOf(focusBox, boxEdges)), [focusBox, boxEdges])
  const tasksOf = useMemo(() => boxes.map(({ members }) => members.map((at) => tasks[at]!)), [boxes, tasks])
  const looks = useMemo(() => tasksOf.map(worstLook), [tasksOf])
  const startBox = Math.max(0, looks.indexOf(looks.includes('failed') ? 'failed' : 'running'))
  const { frame, canvas, scale, firstPart, zoom, fit, onPointerDown } = useView(layout, selectedBox, startBox)
  const laterBoxes = useGrowing(scale !== undefined, boxes.length, LATER_BOXES)
  const isActive = useMemo(() => tasksOf.map((some) => some.some(isActiveTask)), [tasksOf])
  const isCritical = useMemo(() => tasksOf.map((some) => some.some(({ id }) => critical.has(id))), [tasksOf, critical])

  const onClick = (event: MouseEvent) => {
    const box = boxAt(event)
    if (box === undefined) return
    const { key, members } = boxes[box]!
    if (members.length === 1) onSelect(tasks[members[0]!]!.id)
    else setOpened((before) => new Set([...before, key]))
  }
  const onPoint = (event: Event) => {
    const box = boxAt(event)
    if (box !== undefined) setPointed(box)
  }
  const onKeyDown = (event: KeyboardEvent) => {
    const from = boxAt(event)
    const to =
      from === undefined
        ? undefined
        : neighbour((isDown && TURNED_KEYS[event.key]) || event.key, from, layout, boxEdges)
    if (to === undefined) return
    event.preventDefault()
    canvas.current?.querySelector<HTMLElement>(`[data-box="${to}"]`)?.focus()
  }
  const { width, height } = sizeOf(layout)
  return (
    <div class="graph-view">
      <div class="graph-tools">
        <button type="button" class="small" onClick={() => zoom(1 / ZOOM_STEP)} aria-label="Zoom out">
          −
        </button>
        <span class="zoom">{Math.round((scale ?? 1) * 100)} %</span>
        <button type="button" class="small" onClick={() => zoom(ZOOM_STEP)} aria-label="Zoom in">
          +
        </button>
        <button type="button" class="small" onClick={fit}>
          Fit
        </button>
        <button type="button" class="small" onClick={onTurn}>
          {isDown ? 'Left to right' : 'Top down'}
        </button>
        {opened.size > 0 && (
          <button type="button" class="small" onClick={() => setOpened(new Set())}>
            Close groups
          </button>
        )}
      </div>
      {/* biome-ignore lint/a11y/noStaticElementInteractions: it listens for the buttons inside, and lets one drag the drawing */}
      <div
        ref={frame}
        class={`graph-frame${distanceClass(scale ?? 1)}`}
        onClick={onClick}
        onKeyDown={onKeyDown}
        onFocusIn={onPoint}
        onPointerOver={onPoint}
        onPointerDown={onPointerDown}
        onPointerLeave={() => setPointed(undefined)}
      >
        {scale !== undefined && (
          <div style={{ width: `${width * scale}px`, height: `${height * scale}px` }}>
            <div
              ref={canvas}
              class={`graph-canvas${lit === undefined ? '' : ' has-lit'}`}
              style={{
                width: `${width}px`,
                height: `${height}px`,
                transform: `scale(${scale})`,
              }}
            >
              <Lines
                layout={layout}
                edges={boxEdges}
                isActive={isActive}
                isCritical={isCritical}
                lit={lit}
                pointed={focusBox}
              />
              {boxes.map(({ key, label, members }, box) => {
                if (box >= laterBoxes && firstPart !== undefined && !isInPart(layout, box, firstPart)) return null
                const place = {
                  box,
                  ...cornerOf(layout, box),
                  isLit: lit?.has(box) === true,
                  isTabStop: box === (focusBox ?? 0),
                }
                if (members.length > 1) return <GroupBox key={key} {...place} label={label} tasks={tasksOf[box]!} />
                const task = tasksOf[box]![0]!
                const isRunning = task.status === 'running' || task.status === 'cancelling'
                return (
                  <TaskBox
                    key={key}
                    {...place}
                    task={task}
                    isCritical={isCritical[box]!}
                    isSelected={box === selectedBox}
                    now={isRunning ? now : 0}
                  />
                )
              })}
            </div>
          </div>
        )}
      </div>
      {scale !== undefined && <MiniMap layout={layout} frame={frame} scale={scale} lookOfBox={looks} />}
    </div>
  )
}

const isActiveTask = ({ status }: GraphTask): boolean => status === 'running' || status === 'failed'

/** The box that an event belongs to. */
function boxAt(event: Event): number | undefined {
  const box = (event.target as HTMLElement).closest<HTMLElement>('[data-box]')?.dataset.box
  return box === undefined ? undefined : Number(box)
}
