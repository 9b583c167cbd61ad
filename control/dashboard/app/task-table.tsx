/** The tasks of a graph as rows, with a search. The best view of a graph for screen readers. */
import { useMemo, useState } from 'preact/hooks'
import { durationText } from '../model/amounts.ts'
import { endMs } from '../model/critical-path.ts'
import type { GraphWatch } from '../model/graph-watch.ts'
import { LOOK_WORDS, lookOf, typeWord, waitingSentence, workWord } from '../model/looks.ts'
import { type GraphPlace, hashOf } from '../model/place.ts'
import { search } from '../model/search.ts'
import { waitingOf } from '../model/waiting.ts'
import type { GraphTask } from '../model/wire.ts'
import { useMarkDrawn } from './marks.ts'
import { Id } from './parts.tsx'
import { StateIcon } from './state-icon.tsx'
import { useTypedDistantTask } from './use-distant-task.ts'
import { Windowed } from './windowed.tsx'

export const ROW_HEIGHT = 36

export function TaskTable({ watch, place, now }: { watch: GraphWatch; place: GraphPlace; now: number }) {
  useMarkDrawn()
  const [query, setQuery] = useState('')
  const { state } = place
  const distant = useTypedDistantTask(watch, query)
  const tasks = useMemo(() => {
    const inState = state === undefined ? watch.tasks : watch.tasks.filter(({ status }) => status === state)
    const textOf = (task: GraphTask) => `${task.id} ${typeWord(task)} ${LOOK_WORDS[lookOf(task)]}`
    const found = query.trim() === '' ? inState : search(inState, query, textOf, inState.length)
    return distant === undefined ? found : [distant, ...found]
  }, [watch.tasks, query, state, distant])
  return (
    <div class="task-table">
      <div class="list-tools">
        <input
          type="search"
          placeholder="Filter by id, type, state"
          aria-label="Filter tasks"
          value={query}
          onInput={(event) => setQuery(event.currentTarget.value)}
        />
        {state !== undefined && <StateFilter place={place} state={state} />}
        <span class="quiet" role="status">
          {tasks.length} {tasks.length === 1 ? 'task' : 'tasks'}
        </span>
      </div>
      <Windowed
        items={tasks}
        rowHeight={ROW_HEIGHT}
        keyOf={(task) => task.id}
        label="Tasks"
        render={(task) => <TaskRow task={task} watch={watch} place={place} now={now} />}
      />
    </div>
  )
}

/** A note that the table shows only tasks in one state, with a link to all. */
export const StateFilter = ({ place, state }: { place: GraphPlace; state: GraphTask['status'] }) => (
  <a
    class="button small"
    href={hashOf({ ...place, state: undefined })}
    aria-label={`Only ${LOOK_WORDS[state]}: show all`}
  >
    {LOOK_WORDS[state]} ✕
  </a>
)

export function TaskRow({
  task,
  watch,
  place,
  now,
}: {
  task: GraphTask
  watch: GraphWatch
  place: GraphPlace
  now: number
}) {
  const look = lookOf(task)
  const waiting = waitingSentence({ ...task, waiting: waitingOf(task, watch) } as GraphTask, now)
  return (
    <a
      class={task.parent === undefined ? 'task-row' : 'task-row child'}
      href={hashOf({ ...place, taskId: task.id })}
      aria-current={place.taskId === task.id ? 'true' : undefined}
    >
      <StateIcon look={look} />
      <Id text={task.id} />
      <span class="type">{workWord(task)}</span>
      <span class="why">{task.error ?? waiting ?? ''}</span>
      <span class="time">
        {task.started_at === undefined ? '' : durationText(endMs(task, now) - Date.parse(task.started_at))}
      </span>
    </a>
  )
}
