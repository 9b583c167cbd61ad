/** Reads and follows one graph. */
import { useEffect } from 'preact/hooks'
import { afterEvents, type GraphWatch, watchOf, withCounts, withReasons } from '../model/graph-watch.ts'
import { asksWhy } from '../model/waiting.ts'
import type { GraphDetails, GraphSummary } from '../model/wire.ts'
import { getJson, positionOf } from './api.ts'
import { graphPath } from './early-work.ts'
import { type Followed, useFollowed } from './use-followed.ts'

/** Milliseconds without an event before the page asks why tasks wait. */
const QUIET_MS = 1_000

/** A large graph has more tasks than the page. Milliseconds between two reads of its counts. */
const COUNTS_EVERY_MS = 2_000

/** Milliseconds before the page asks why a task failed. */
const CAUSE_MS = 100

export interface GraphState extends Pick<Followed<GraphWatch>, 'fault' | 'live'> {
  readonly watch: GraphWatch | undefined
}

export function useGraph(graphId: string | undefined, sessionKey: number): GraphState {
  const path = graphId === undefined ? undefined : graphPath(graphId)
  const events = path === undefined ? undefined : `${path}/events`
  const source = { path, events, read: readGraph, after: afterEvents, renewed: withKeptShape }
  const { state: watch, fault, live, change } = useFollowed<GraphWatch>(source, sessionKey)

  // Events lack the last lines, the commands to try next, and reasons of waiting tasks. These are read once no event arrives.
  const needsCause = watch !== undefined && watch.rootCause === undefined && (watch.summary.counts.failed ?? 0) > 0
  const needsMore = watch !== undefined && (needsCause || asksWhy(watch))
  useEffect(() => {
    if (!needsMore || path === undefined) return
    const gone = new AbortController()
    const ask = async () => {
      const detail = await getJson<GraphDetails>(path, gone.signal).catch(() => undefined)
      if (detail !== undefined && !gone.signal.aborted) change((before) => withReasons(before, detail))
    }
    const timer = setTimeout(ask, needsCause ? CAUSE_MS : QUIET_MS)
    return () => {
      clearTimeout(timer)
      gone.abort()
    }
  }, [needsMore, needsCause, watch?.seq, path, change])

  const { created_at, state } = watch?.summary ?? {}
  const needsCounts = watch?.isTruncated === true && state === 'running'
  useEffect(() => {
    if (!needsCounts || created_at === undefined) return
    const gone = new AbortController()
    const until = new Date(Date.parse(created_at) + 1).toISOString()
    const query = new URLSearchParams({ since: created_at, until, limit: '1000' })
    const ask = async () => {
      if (document.visibilityState === 'hidden') return
      const graphs = await getJson<GraphSummary[]>(`/graphs?${query}`, gone.signal).catch(() => [])
      const fresh = graphs.find(({ graph_id }) => graph_id === graphId)
      if (fresh !== undefined && !gone.signal.aborted) change((before) => withCounts(before, fresh))
    }
    const timer = setInterval(ask, COUNTS_EVERY_MS)
    return () => {
      clearInterval(timer)
      gone.abort()
    }
  }, [needsCounts, created_at, graphId, change])

  return { watch, fault, live }
}

const readGraph = async (response: Response): Promise<GraphWatch> =>
  watchOf((await response.json()) as GraphDetails, Number(positionOf(response)))

/** The fresh graph with the edges that the drawing has been laid out for, if they are the same. */
function withKeptShape(fresh: GraphWatch, before: GraphWatch | undefined): GraphWatch {
  if (before === undefined || before.edges.length !== fresh.edges.length) return fresh
  const isSame =
    before.tasks.length === fresh.tasks.length &&
    before.tasks.every(({ id }, index) => fresh.tasks[index]!.id === id) &&
    before.edges.every(([from, to], index) => fresh.edges[index]![0] === from && fresh.edges[index]![1] === to)
  return isSame ? { ...fresh, edges: before.edges, indexOf: before.indexOf } : fresh
}
