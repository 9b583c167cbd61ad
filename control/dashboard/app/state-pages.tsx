/** The tasks of a graph in one state, read page by page. For graphs of which the dashboard has only the first tasks. */

import { useCallback, useEffect, useState } from 'preact/hooks'
import { countText } from '../model/amounts.ts'
import type { GraphWatch } from '../model/graph-watch.ts'
import type { GraphPlace } from '../model/place.ts'
import type { GraphTask } from '../model/wire.ts'
import { request } from './api.ts'
import { type Fault, faultOf } from './fault.ts'
import { useMarkDrawn } from './marks.ts'
import { Note } from './parts.tsx'
import { ROW_HEIGHT, StateFilter, TaskRow } from './task-table.tsx'
import { Windowed } from './windowed.tsx'

/** Records of one page. They carry results, so a page is small. */
const PAGE_SIZE = 100

/** Maximum tasks to read. Nobody scrolls through more. */
const MAX_READ_TASKS = 5_000

export interface StatePagesProps {
  readonly watch: GraphWatch
  readonly place: GraphPlace
  readonly state: GraphTask['status']
  readonly now: number
}

export function StatePages({ watch, place, state, now }: StatePagesProps) {
  const path = `/graphs/${encodeURIComponent(watch.summary.graph_id)}/tasks?status=${state}&limit=${PAGE_SIZE}`
  useMarkDrawn()
  const { tasks, fault, loadMore, refresh } = usePages(path)
  return (
    <div class="task-table">
      <div class="list-tools">
        <StateFilter place={place} state={state} />
        <button type="button" class="small" onClick={refresh}>
          Refresh
        </button>
        <span class="quiet" role="status">
          {countText(tasks.length)} read
          {tasks.length >= MAX_READ_TASKS && ', the most that the page reads'}
        </span>
      </div>
      {fault !== undefined && <Note kind="fault">{fault.message}</Note>}
      <Windowed
        items={tasks}
        rowHeight={ROW_HEIGHT}
        keyOf={(task) => task.id}
        label="Tasks"
        onEnd={loadMore}
        render={(task) => <TaskRow task={task} watch={watch} place={place} now={now} />}
      />
    </div>
  )
}

interface Pages {
  readonly tasks: readonly GraphTask[]
  readonly cursor: string | undefined
}

function usePages(path: string) {
  const [pages, setPages] = useState<Pages>({ tasks: [], cursor: undefined })
  const [fault, setFault] = useState<Fault>()
  const [reads, setReads] = useState(0)
  const refresh = useCallback(() => setReads((count) => count + 1), [])
  const read = useCallback(
    async (before: readonly GraphTask[], cursor: string | undefined, signal?: AbortSignal) => {
      try {
        const more = cursor === undefined ? '' : `&cursor=${encodeURIComponent(cursor)}`
        const response = await request(path + more, signal && { signal })
        const page = (await response.json()) as GraphTask[]
        const next = response.headers.get('x-next-cursor') ?? undefined
        const known = new Set(before.map(({ id }) => id))
        const tasks = [...before, ...page.filter(({ id }) => !known.has(id))]
        setPages({ tasks, cursor: tasks.length >= MAX_READ_TASKS ? undefined : next })
        setFault(undefined)
      } catch (error) {
        if (signal?.aborted !== true) setFault(faultOf(error))
      }
    },
    [path],
  )
  useEffect(() => {
    const gone = new AbortController()
    void read([], undefined, gone.signal)
    return () => gone.abort()
  }, [read, reads])
  const { tasks, cursor } = pages
  const loadMore = useCallback(() => {
    if (cursor === undefined) return
    setPages({ tasks, cursor: undefined }) // one request at a time
    void read(tasks, cursor)
  }, [read, tasks, cursor])
  return { tasks, fault, refresh, loadMore: cursor === undefined ? undefined : loadMore }
}
