/**
 * The boxes of the drawing. A graph of 500 tasks has as many, so a box has few elements and no listeners: its sign is drawn
 * by the style sheet, and the drawing listens for all of them.
 */
import { memo } from 'preact/compat'
import { StateBar } from '../app/parts.tsx'
import { countText, durationText, elapsedText, idParts } from '../model/amounts.ts'
import { countsOf } from '../model/counts.ts'
import { endMs } from '../model/critical-path.ts'
import { LOOK_WORDS, lookOf, typeWord, workWord, worstLook } from '../model/looks.ts'
import type { GraphTask } from '../model/wire.ts'
import { BOX_WIDTH, type Size } from './geometry.ts'
import { groupLookOf, groupProgress } from './group-progress.ts'

/** Characters at the end of an id that a box always shows: ids of one graph differ there. */
const TAIL_CHARACTERS = 5

export interface BoxPlace {
  readonly box: number
  /** In CSS pixels. */
  readonly x: number
  readonly y: number
  readonly isLit: boolean
  readonly isTabStop: boolean
}

/** Where the button that folds begins, in pixels before the right end of the box. */
const FOLD_FROM_RIGHT = 30

const placeProps = ({ box, x, y, isTabStop }: BoxPlace) => ({
  type: 'button' as const,
  'data-box': box,
  tabIndex: isTabStop ? 0 : -1,
  style: { transform: `translate(${x}px, ${y}px)` },
})

export interface TaskBoxProps extends BoxPlace {
  readonly task: GraphTask
  /** What it is called: its id, or in the frame of its group the end of that. */
  readonly name: string
  readonly isCritical: boolean
  readonly isSelected: boolean
  /** 0 for tasks whose time stands still. */
  readonly now: number
}

export const TaskBox = memo(function TaskBox({ task, name, isCritical, isSelected, now, ...place }: TaskBoxProps) {
  const look = lookOf(task)
  const [head, tail] = idParts(name, TAIL_CHARACTERS)
  const attempt = task.attempt ?? 1
  return (
    <button
      {...placeProps(place)}
      class={`box look-${look}${place.isLit ? ' lit' : ''}${isCritical ? ' critical' : ''}`}
      aria-pressed={isSelected}
      title={task.id}
    >
      <span class="for-readers">{isCritical ? `${LOOK_WORDS[look]}, on the critical path` : LOOK_WORDS[look]}</span>
      {tail === '' ? (
        <span class="id">{head}</span>
      ) : (
        <span class="id">
          <span class="head">{head}</span>
          <span class="tail">{tail}</span>
        </span>
      )}
      <span class="type">{task.reused_from === undefined ? workWord(task) : `${typeWord(task)}, reused`}</span>
      <span class="time">
        {attempt > 1 && `↻${attempt} `}
        {timeOf(task, now)}
      </span>
    </button>
  )
})

export interface GroupBoxProps extends BoxPlace {
  readonly label: string
  readonly tasks: readonly GraphTask[]
}

export function GroupBox({ label, tasks, ...place }: GroupBoxProps) {
  const look = worstLook(tasks)
  return (
    <button
      {...placeProps(place)}
      class={`box group look-${look}${place.isLit ? ' lit' : ''}`}
      title={`${tasks.length} tasks: click to open`}
    >
      <span class="for-readers">{LOOK_WORDS[look]}</span>
      <span class="id">
        <span class="head">{label}</span>
      </span>
      <span class="type">{countText(tasks.length)} tasks</span>
      <StateBar counts={countsOf(tasks)} total={tasks.length} />
    </button>
  )
}

export interface FoldableBoxProps extends Omit<TaskBoxProps, 'name'> {
  readonly isOpen: boolean
  /** What is in the group, as far as the page has it. */
  readonly inside: readonly GraphTask[]
  /** Of the frame, if it is open. */
  readonly size: Size
}

/** A group: a box like others while it is folded, else a frame with a head. A button beside its own folds or opens it. */
export const FoldableBox = memo(function FoldableBox(props: FoldableBoxProps) {
  const { task, isOpen, inside, size, isCritical, isSelected, now, ...place } = props
  const { x, y, isTabStop } = place
  const look = groupLookOf(task, inside)
  const { counted, sentence, short } = groupProgress(task, inside)
  const width = isOpen ? size.width : BOX_WIDTH
  const { style, ...button } = placeProps(place)
  const classes = `look-${look}${place.isLit ? ' lit' : ''}${isCritical ? ' critical' : ''}`
  return (
    <>
      {isOpen && (
        <div
          class={`group-area ${classes}`}
          style={{ ...style, width: `${size.width}px`, height: `${size.height}px` }}
        />
      )}
      <button
        {...button}
        style={{ ...style, width: `${width}px` }}
        class={`box foldable ${isOpen ? 'open' : 'folded'} ${classes}`}
        aria-pressed={isSelected}
        title={`${task.id}: ${sentence}`}
      >
        <span class="for-readers">
          {LOOK_WORDS[look]}
          {isCritical && ', on the critical path'}
        </span>
        <span class="id">
          <span class="head">{task.id}</span>
        </span>
        <span class="for-readers">{sentence}</span>
        <span class="type" aria-hidden="true">
          {isOpen ? sentence : short}
        </span>
        {isOpen && <span class="time">{timeOf(task, now)}</span>}
        <StateBar counts={counted} total={task.child_count ?? inside.length} />
      </button>
      <button
        type="button"
        class="fold"
        data-fold={place.box}
        tabIndex={isTabStop ? 0 : -1}
        aria-expanded={isOpen}
        aria-label={`${isOpen ? 'Fold' : 'Open'} ${task.id}`}
        title={isOpen ? 'Fold (f)' : 'Open (f)'}
        style={{ transform: `translate(${x + width - FOLD_FROM_RIGHT}px, ${y + 4}px)` }}
      />
    </>
  )
})

function timeOf(task: GraphTask, now: number): string {
  if (task.started_at === undefined) return ''
  if (task.finished_at === undefined) return elapsedText(endMs(task, now) - Date.parse(task.started_at))
  return durationText(task.duration_ms ?? Date.parse(task.finished_at) - Date.parse(task.started_at))
}
