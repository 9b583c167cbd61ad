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
import { edgesOfDrawing } from './child-edges.ts'
import { draw } from './geometry.ts'
import { kinOf } from './kin.ts'
import { Lines } from './lines.tsx'
import { MiniMap } from './mini-map.tsx'
import { neighbour } from './neighbour.ts'
import { FoldableBox, GroupBox, TaskBox } from './task-box.tsx'
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
  /** The groups that a user has opened or folded, by their ids. */
  readonly groups: Readonly<Record<string, boolean>>
  readonly onGroups: (groups: Readonly<Record<string, boolean>>) => void
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

function Drawn({ watch, critical, now, selectedId, onSelect, groups, onGroups, isDown, onTurn }: DrawnProps) {
  const { tasks, edges, indexOf } = watch
  const [siblings, setSiblings] = useState<ReadonlySet<string>>(new Set())
  const [pointed, setPointed] = useState<number>()
  const logical = useMemo(() => edgesOfDrawing(tasks, edges), [edges, indexOf])
  const shape = useMemo(() => boxesOf(tasks, logical, { siblings, groups }), [logical, siblings, groups])
  const { boxes, edges: boxEdges, boxOf } = shape
  const drawing = useMemo(() => draw(shape, isDown), [shape])
  const selectedBox = selectedId === undefined ? undefined : boxOf[indexOf.get(selectedId) ?? -1]
  useLayoutEffect(markDrawn, [drawing])
  // A group that is folded has taken away the box that was pointed at.
  const focusBox = pointed !== undefined && pointed < boxes.length ? pointed : selectedBox
  const lit = useMemo(() => (focusBox === undefined ? undefined : kinOf(focusBox, boxEdges)), [focusBox, boxEdges])
  const tasksOf = useMemo(() => boxes.map(({ members }) => members.map((at) => tasks[at]!)), [boxes, tasks])
  const looks = useMemo(
    () => tasksOf.map((some, box) => (boxes[box]!.isOpen === true ? undefined : worstLook(some))),
    [tasksOf],
  )
  const startBox = Math.max(0, looks.indexOf(looks.includes('failed') ? 'failed' : 'running'))
  const childrenOf = useMemo(() => Map.groupBy(tasks, ({ parent }) => parent), [tasks])
  const { frame, canvas, scale, firstPart, zoom, fit, onPointerDown } = useView(drawing, selectedBox, startBox)
  const laterBoxes = useGrowing(scale !== undefined, boxes.length, LATER_BOXES)
  const isActive = useMemo(() => tasksOf.map((some) => some.some(isActiveTask)), [tasksOf])
  const isCritical = useMemo(() => tasksOf.map((some) => some.some(({ id }) => critical.has(id))), [tasksOf, critical])

  const fold = (box: number) => {
    const { members, isOpen } = boxes[box]!
    if (isOpen !== undefined) onGroups({ ...groups, [tasks[members[0]!]!.id]: !isOpen })
  }
  const openGroups = boxes.flatMap(({ members, isOpen }) => (isOpen === true ? tasks[members[0]!]!.id : []))
  const onClick = (event: MouseEvent) => {
    const folded = boxAt(event, 'fold')
    if (folded !== undefined) return fold(folded)
    const box = boxAt(event)
    if (box === undefined) return
    const { key, members, isOpen } = boxes[box]!
    if (members.length === 1 || isOpen !== undefined) onSelect(tasks[members[0]!]!.id)
    else setSiblings((before) => new Set([...before, key]))
  }
  const onPoint = (event: Event) => {
    const box = boxAt(event)
    if (box !== undefined) setPointed(box)
  }
  const onKeyDown = (event: KeyboardEvent) => {
    const from = boxAt(event) ?? boxAt(event, 'fold')
    if (event.key === 'f' && from !== undefined && !event.ctrlKey && !event.metaKey) fold(from)
    const to =
      from === undefined
        ? undefined
        : neighbour((isDown && TURNED_KEYS[event.key]) || event.key, from, drawing, boxEdges)
    if (to === undefined) return
    event.preventDefault()
    canvas.current?.querySelector<HTMLElement>(`[data-box="${to}"]`)?.focus()
  }
  const { width, height } = drawing.size
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
        {siblings.size + openGroups.length > 0 && (
          <button
            type="button"
            class="small"
            onClick={() => {
              setSiblings(new Set())
              onGroups({ ...groups, ...Object.fromEntries(openGroups.map((id) => [id, false])) })
            }}
          >
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
              <Lines drawing={drawing} isActive={isActive} isCritical={isCritical} lit={lit} pointed={focusBox} />
              {boxes.map(({ key, label, members, isOpen, frame }, box) => {
                if (box >= laterBoxes && firstPart !== undefined && !isInPart(drawing, box, firstPart)) return null
                const place = {
                  box,
                  ...drawing.corners[box]!,
                  isLit: lit?.has(box) === true,
                  isTabStop: box === (focusBox ?? 0),
                }
                const task = tasksOf[box]![0]!
                if (members.length > 1 && isOpen === undefined)
                  return <GroupBox key={key} {...place} label={label} tasks={tasksOf[box]!} />
                const isRunning = task.status === 'running' || task.status === 'cancelling'
                const state = {
                  task,
                  isCritical: isCritical[box]!,
                  isSelected: selectedId === task.id,
                  now: isRunning ? now : 0,
                }
                if (isOpen === undefined)
                  return (
                    <TaskBox key={key} {...place} {...state} name={frame === undefined ? label : localName(task)} />
                  )
                return (
                  <FoldableBox
                    key={key}
                    {...place}
                    {...state}
                    isOpen={isOpen}
                    size={drawing.sizes[box]!}
                    inside={childrenOf.get(task.id) ?? NO_TASKS}
                  />
                )
              })}
            </div>
          </div>
        )}
      </div>
      {scale !== undefined && <MiniMap drawing={drawing} frame={frame} scale={scale} lookOfBox={looks} />}
    </div>
  )
}

const isActiveTask = ({ status }: GraphTask): boolean => status === 'running' || status === 'failed'

const NO_TASKS: readonly GraphTask[] = []

/** A child as its group calls it: `[3]/build`, or `build` without `for_each`. */
const localName = ({ id, parent = '' }: GraphTask): string => id.slice(parent.length).replace(/^\//, '')

/** The box that an event belongs to, or whose button to fold it. */
function boxAt(event: Event, what: 'box' | 'fold' = 'box'): number | undefined {
  const box = (event.target as HTMLElement).closest<HTMLElement>(`[data-${what}]`)?.dataset[what]
  return box === undefined ? undefined : Number(box)
}
