/** Hooks of the page: the place, the time, the list of graphs, one graph, one record. */
import { useCallback, useEffect, useRef, useState } from 'preact/hooks'
import { type GraphList, listAfterEvents, listOf, withOlder } from '../model/graph-list.ts'
import { afterEvents, type GraphWatch, watchOf, withReasons } from '../model/graph-watch.ts'
import { hashOf, type Place, placeOf } from '../model/place.ts'
import { asksWhy } from '../model/waiting.ts'
import type { GraphDetail, GraphSummary } from '../model/wire.ts'
import { ApiError, getJson, request, seqOf } from './api.ts'
import { followEvents, type LiveState } from './live.ts'
import { mark } from './marks.ts'

/** Graphs of one page of the list. */
const PAGE_SIZE = 100

/** Milliseconds without an event before the page asks why tasks wait. */
const QUIET_MS = 1_000

export function usePlace(): [Place, (place: Place, how?: 'push' | 'replace') => void] {
  const [place, setPlace] = useState(() => placeOf(location.hash))
  useEffect(() => {
    const onChange = () => setPlace(placeOf(location.hash))
    addEventListener('hashchange', onChange)
    return () => removeEventListener('hashchange', onChange)
  }, [])
  const go = useCallback((next: Place, how: 'push' | 'replace' = 'push') => {
    const hash = hashOf(next)
    if (hash === location.hash) return
    if (how === 'push') location.hash = hash
    else {
      history.replaceState(null, '', hash)
      setPlace(placeOf(hash))
    }
  }, [])
  return [place, go]
}

/** The time, once a second while `isTicking`. */
export function useNow(isTicking: boolean): number {
  const [now, setNow] = useState(Date.now)
  useEffect(() => {
    setNow(Date.now())
    if (!isTicking) return
    const timer = setInterval(() => {
      if (document.visibilityState === 'visible') setNow(Date.now())
    }, 1_000)
    return () => clearInterval(timer)
  }, [isTicking])
  return now
}

export interface Fault {
  readonly status: number
  readonly message: string
}

const faultOf = (error: unknown): Fault =>
  error instanceof ApiError
    ? { status: error.status, message: error.message }
    : { status: 0, message: error instanceof Error ? error.message : String(error) }

export interface ListState {
  readonly list: GraphList | undefined
  readonly fault: Fault | undefined
  readonly live: LiveState
  /** When the list was read last. */
  readonly readAt: number
  readonly refresh: () => void
  readonly loadOlder: () => void
}

/**
 * The list of graphs. It follows every change only while `isFollowing`: a page that shows one graph follows that one, and
 * reads the list anew when one comes back to the page.
 */
export function useGraphList(isFollowing: boolean, sessionKey: number): ListState {
  const [list, setList] = useState<GraphList>()
  const [fault, setFault] = useState<Fault>()
  const [live, setLive] = useState<LiveState>('connecting')
  const [reads, setReads] = useState(0)
  const [readAt, setReadAt] = useState(0)
  const seq = useRef(0)
  seq.current = list?.seq ?? 0
  const refresh = useCallback(() => setReads((count) => count + 1), [])

  useEffect(() => {
    const gone = new AbortController()
    let stop = () => {}
    const read = async (pauseMs: number): Promise<void> => {
      try {
        const response = await request(`/graphs?limit=${PAGE_SIZE}`, { signal: gone.signal })
        const graphs = (await response.json()) as GraphSummary[]
        const fresh = listOf(graphs, response.headers.get('x-next-cursor') ?? undefined, seqOf(response))
        seq.current = fresh.seq
        if (isFollowing) mark('taskmill:data')
        setList(fresh)
        setFault(undefined)
        setReadAt(Date.now())
        if (!isFollowing || gone.signal.aborted) return
        stop = followEvents({
          path: '/events',
          after: () => seq.current,
          onEvents: (events) =>
            setList((before) => {
              if (before === undefined) return before
              const after = listAfterEvents(before, events)
              seq.current = after.seq
              if (after.isBehind) refresh()
              return after
            }),
          onState: setLive,
        })
      } catch (error) {
        if (gone.signal.aborted) return
        const failed = faultOf(error)
        setFault(failed)
        if (failed.status === 401) return
        await new Promise((resolve) => setTimeout(resolve, pauseMs))
        if (!gone.signal.aborted) await read(Math.min(pauseMs * 2, 5_000))
      }
    }
    void read(500)
    return () => {
      gone.abort()
      stop()
    }
  }, [isFollowing, reads, sessionKey, refresh])

  useEffect(() => {
    if (isFollowing) return
    const onVisible = () => document.visibilityState === 'visible' && refresh()
    document.addEventListener('visibilitychange', onVisible)
    return () => document.removeEventListener('visibilitychange', onVisible)
  }, [isFollowing, refresh])

  const loadOlder = useCallback(async () => {
    const cursor = list?.nextCursor
    if (cursor === undefined) return
    setList((before) => before && { ...before, nextCursor: undefined }) // one request at a time
    const response = await request(`/graphs?limit=${PAGE_SIZE}&cursor=${encodeURIComponent(cursor)}`)
    const graphs = (await response.json()) as GraphSummary[]
    setList((before) => before && withOlder(before, graphs, response.headers.get('x-next-cursor') ?? undefined))
  }, [list?.nextCursor])

  return { list, fault, live, readAt, refresh, loadOlder }
}

export interface GraphState {
  readonly watch: GraphWatch | undefined
  readonly fault: Fault | undefined
  readonly live: LiveState
}

/** One graph, live. */
export function useGraph(graphId: string | undefined, sessionKey: number): GraphState {
  const [watch, setWatch] = useState<GraphWatch>()
  const [fault, setFault] = useState<Fault>()
  const [live, setLive] = useState<LiveState>('connecting')
  const [reads, setReads] = useState(0)
  const seq = useRef(0)

  useEffect(() => {
    setFault(undefined)
    setWatch((before) => (before?.summary.graph_id === graphId ? before : undefined))
    if (graphId === undefined) return
    const gone = new AbortController()
    let stop = () => {}
    const path = `/graphs/${encodeURIComponent(graphId)}`
    const read = async (pauseMs: number): Promise<void> => {
      try {
        const response = await request(path, { signal: gone.signal })
        const fresh = watchOf((await response.json()) as GraphDetail, seqOf(response))
        seq.current = fresh.seq
        mark('taskmill:data')
        setWatch((before) => withKeptShape(fresh, before))
        setFault(undefined)
        if (gone.signal.aborted) return
        stop = followEvents({
          path: `${path}/events`,
          after: () => seq.current,
          onEvents: (events) =>
            setWatch((before) => {
              if (before === undefined) return before
              const after = afterEvents(before, events)
              seq.current = after.seq
              if (after.isBehind) setReads((count) => count + 1)
              return after
            }),
          onState: setLive,
        })
      } catch (error) {
        if (gone.signal.aborted) return
        const failed = faultOf(error)
        setFault(failed)
        if (failed.status === 401 || failed.status === 404) return
        await new Promise((resolve) => setTimeout(resolve, pauseMs))
        if (!gone.signal.aborted) await read(Math.min(pauseMs * 2, 5_000))
      }
    }
    void read(500)
    return () => {
      gone.abort()
      stop()
    }
  }, [graphId, reads, sessionKey])

  // Last lines, commands to try next, and why a task waits are not in events. They are read once the graph is quiet.
  const needsCause = watch !== undefined && watch.rootCause === undefined && (watch.summary.counts.failed ?? 0) > 0
  const needsMore = watch !== undefined && (needsCause || asksWhy(watch))
  useEffect(() => {
    if (!needsMore || graphId === undefined) return
    const gone = new AbortController()
    const timer = setTimeout(
      async () => {
        const detail = await getJson<GraphDetail>(`/graphs/${encodeURIComponent(graphId)}`, gone.signal).catch(
          () => undefined,
        )
        if (detail !== undefined) setWatch((before) => before && withReasons(before, detail))
      },
      needsCause ? 100 : QUIET_MS,
    )
    return () => {
      clearTimeout(timer)
      gone.abort()
    }
  }, [needsMore, needsCause, watch?.seq, graphId])

  return { watch: watch?.summary.graph_id === graphId ? watch : undefined, fault, live }
}

/** The fresh graph with the edges that the drawing has been laid out for, if they are the same. */
function withKeptShape(fresh: GraphWatch, before: GraphWatch | undefined): GraphWatch {
  if (before === undefined || before.edges.length !== fresh.edges.length) return fresh
  const isSame =
    before.tasks.length === fresh.tasks.length &&
    before.tasks.every(({ id }, index) => fresh.tasks[index]!.id === id) &&
    before.edges.every(([from, to], index) => fresh.edges[index]![0] === from && fresh.edges[index]![1] === to)
  return isSame ? { ...fresh, edges: before.edges, indexOf: before.indexOf } : fresh
}

/** The JSON of `path`, read again whenever `version` changes. */
export function useJson<T>(
  path: string | undefined,
  version: unknown,
): { value: T | undefined; fault: Fault | undefined } {
  const [state, setState] = useState<{ path: string | undefined; value?: T; fault?: Fault }>({ path })
  useEffect(() => {
    if (path === undefined) return
    const gone = new AbortController()
    request(path, { signal: gone.signal })
      .then((response) => response.json() as Promise<T>)
      .then((value) => setState({ path, value }))
      .catch((error) => {
        if (!gone.signal.aborted) setState({ path, fault: faultOf(error) })
      })
    return () => gone.abort()
  }, [path, version])
  const isCurrent = state.path === path
  return { value: isCurrent ? state.value : undefined, fault: isCurrent ? state.fault : undefined }
}
