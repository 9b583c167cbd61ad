/**
 * A state that is read once and then updated by a stream of events: the list of graphs, or one graph.
 *
 * A failed read is repeated with growing pauses. The state is also read again when events are missing, and when
 * `refresh` is called.
 */
import { useCallback, useLayoutEffect, useRef, useState } from 'preact/hooks'
import type { StreamEvent } from '../model/wire.ts'
import { request } from './api.ts'
import { type Fault, faultOf } from './fault.ts'
import { type Following, followEvents, type Live } from './live.ts'
import { mark } from './marks.ts'

const FIRST_PAUSE_MS = 500
const LONGEST_PAUSE_MS = 5_000

/** A state that knows the last event in it, and whether events are missing. */
export interface Sequenced {
  readonly seq: number
  /** Absent: the number. */
  readonly position?: string
  readonly isBehind: boolean
}

/** The functions must be the same in each rendering. */
export interface Source<S extends Sequenced> {
  /** Path of the state. Undefined: there is nothing to read. */
  readonly path: string | undefined
  /** Path of the stream of events. Undefined: the state is not followed. */
  readonly events: string | undefined
  readonly read: (response: Response) => Promise<S>
  readonly after: (state: S, events: readonly StreamEvent[]) => S
  /** Merges a state that was read again with the earlier one. Default: replaces it. */
  readonly renewed?: (fresh: S, before: S | undefined) => S
}

export interface Followed<S extends Sequenced> {
  readonly state: S | undefined
  readonly fault: Fault | undefined
  readonly live: Live
  /** Time of the last read, in milliseconds since 1970. */
  readonly readAt: number
  readonly refresh: () => void
  readonly change: (change: (before: S) => S) => void
}

const positionIn = ({ seq, position = String(seq) }: Sequenced): string => position

export function useFollowed<S extends Sequenced>(source: Source<S>, sessionKey: number): Followed<S> {
  const { path, events: eventsPath, read, after, renewed } = source
  const [known, setKnown] = useState<{ path: string | undefined; state?: S; fault?: Fault }>({ path })
  const [live, setLive] = useState<Live>({ state: 'connecting' })
  const [reads, setReads] = useState(0)
  const [readAt, setReadAt] = useState(0)
  const position = useRef('0')
  const refresh = useCallback(() => setReads((count) => count + 1), [])
  const change = useCallback(
    (changed: (before: S) => S) =>
      setKnown((before) => (before.state === undefined ? before : { ...before, state: changed(before.state) })),
    [],
  )

  // Sends the request before the first frame is painted.
  useLayoutEffect(() => {
    if (path === undefined) return
    const gone = new AbortController()
    let stop = () => {}
    const onEvents = (events: readonly StreamEvent[]) =>
      change((before) => {
        const state = after(before, events)
        position.current = positionIn(state)
        if (state.isBehind) refresh()
        return state
      })
    const onState: Following['onState'] = (state, fault) => setLive({ state, fault })
    const readOnce = async () => {
      const fresh = await read(await request(path, { signal: gone.signal }))
      if (gone.signal.aborted) return
      position.current = positionIn(fresh)
      if (eventsPath !== undefined) mark('taskmill:data')
      setKnown((before) => {
        const same = before.path === path ? before.state : undefined
        return { path, state: renewed === undefined ? fresh : renewed(fresh, same) }
      })
      setReadAt(Date.now())
      if (eventsPath === undefined) return
      stop = followEvents({ path: eventsPath, after: () => position.current, onEvents, onState })
    }
    const readUntilDone = async () => {
      for (let pauseMs = FIRST_PAUSE_MS; !gone.signal.aborted; pauseMs = Math.min(pauseMs * 2, LONGEST_PAUSE_MS)) {
        try {
          return await readOnce()
        } catch (error) {
          if (gone.signal.aborted) return
          const fault = faultOf(error)
          setKnown((before) => ({ ...(before.path === path ? before : { path }), fault }))
          if (fault.status === 401 || fault.status === 404) return
          await new Promise((resolve) => setTimeout(resolve, pauseMs))
        }
      }
    }
    void readUntilDone()
    return () => {
      gone.abort()
      stop()
    }
  }, [path, eventsPath, reads, sessionKey, read, after, renewed, change, refresh])

  const isKnown = known.path === path
  const { state, fault } = isKnown ? known : { state: undefined, fault: undefined }
  return { state, fault, live, readAt, refresh, change }
}
