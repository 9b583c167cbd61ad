/** A task of a graph that is not among the first ones, which the page has: it is read by itself. */
import { useEffect, useState } from 'preact/hooks'
import type { GraphWatch } from '../model/graph-watch.ts'
import type { GraphTask } from '../model/wire.ts'
import { graphPath } from './early-work.ts'
import { useJson } from './use-json.ts'

/** Milliseconds without a key before a typed id is looked up. */
const TYPING_PAUSE_MS = 200

/** The task with this very id, if the graph has more tasks than the page. It is read again whenever `version` changes. */
export function useDistantTask(watch: GraphWatch | undefined, id = '', version: unknown = 0): GraphTask | undefined {
  const isDistant = watch?.isTruncated === true && id !== '' && !watch.indexOf.has(id)
  const path = isDistant ? `${graphPath(watch.summary.graph_id)}/tasks/${encodeURIComponent(id)}` : undefined
  return useJson<GraphTask>(path, version).value
}

/** Finds the task while a person types its id. */
export function useTypedDistantTask(watch: GraphWatch | undefined, query: string): GraphTask | undefined {
  const [typed, setTyped] = useState('')
  useEffect(() => {
    const timer = setTimeout(() => setTyped(query.trim()), TYPING_PAUSE_MS)
    return () => clearTimeout(timer)
  }, [query])
  const task = useDistantTask(watch, typed)
  return typed === query.trim() ? task : undefined
}
