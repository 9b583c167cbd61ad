/**
 * A stream of events that reconnects after a break or a restart of the service, and resumes after the last event.
 *
 * A page has one such stream at a time. A page that is hidden for a while closes it and resumes it when it is visible
 * again. Browsers allow six connections to a service, so pages in the background must not hold any.
 */
import { EventText } from '../model/event-text.ts'
import type { StreamEvent } from '../model/wire.ts'
import { ApiError, request, textOf } from './api.ts'
import { faultOf } from './fault.ts'

/** `paused`: the page is hidden. */
export type LiveState = 'connecting' | 'live' | 'paused'

/** Whether events come, and why not. */
export interface Live {
  readonly state: LiveState
  readonly fault?: string | undefined
}

export interface Following {
  readonly path: string
  /** The last event seen. */
  readonly after: () => string
  /** Called at most once per frame, with all events since the last call. */
  readonly onEvents: (events: StreamEvent[]) => void
  /** `fault`: why no events come, in words. */
  readonly onState: (state: LiveState, fault?: string) => void
}

/** Milliseconds between the hiding of the page and the end of the stream. */
const CLOSE_AFTER_HIDDEN_MS = 15_000

/** Milliseconds without a byte until the stream counts as broken. The service sends a comment every 15 s. */
const SILENCE_MS = 40_000

/** Milliseconds for the first byte. The service sends it at once. */
const FIRST_BYTE_MS = 10_000

/** Failures one after the other from which the page tells: a restart of the service is none. */
const TOLD_FAILURES = 3

const FIRST_PAUSE_MS = 250
const LONGEST_PAUSE_MS = 5_000

/** Follows until the function that it returns is called. */
export function followEvents({ path, after, onEvents, onState }: Following): () => void {
  const stopped = new AbortController()
  let connection = new AbortController()
  let waiting: StreamEvent[] = []
  let hideTimer: ReturnType<typeof setTimeout> | undefined
  let isPaused = document.visibilityState === 'hidden'
  let wake = () => {}

  const flush = () => {
    const events = waiting
    waiting = []
    if (events.length > 0 && !stopped.signal.aborted) onEvents(events)
  }
  const take = (events: StreamEvent[]) => {
    if (events.length === 0) return
    if (waiting.length === 0) {
      if (document.visibilityState === 'hidden') setTimeout(flush, 100)
      else requestAnimationFrame(flush)
    }
    waiting.push(...events)
  }

  const onVisibility = () => {
    clearTimeout(hideTimer)
    if (document.visibilityState === 'visible') {
      isPaused = false
      wake()
      return
    }
    hideTimer = setTimeout(() => {
      isPaused = true
      onState('paused')
      connection.abort()
    }, CLOSE_AFTER_HIDDEN_MS)
  }
  document.addEventListener('visibilitychange', onVisibility)

  /** Sleeps until the time is up, or the page is visible again. */
  const pause = (ms: number) =>
    new Promise<void>((resolve) => {
      wake = resolve
      setTimeout(resolve, ms)
    })

  let failures = 0
  let isLive = false
  const onLive = () => {
    if (isLive) return
    isLive = true
    failures = 0
    onState('live')
  }

  /** Returns when the stream ends. Throws why there is none. */
  const connect = async () => {
    isLive = false
    connection = new AbortController()
    const signal = AbortSignal.any([stopped.signal, connection.signal])
    const silent = () => {
      failures = TOLD_FAILURES
      connection.abort(new Error('nothing arrives on it; does a proxy hold it back?'))
    }
    let silence = setTimeout(silent, FIRST_BYTE_MS)
    try {
      flush()
      const response = await request(`${path}?after=${after()}`, { signal })
      const reader = new EventText()
      for await (const chunk of textOf(response)) {
        onLive()
        clearTimeout(silence)
        silence = setTimeout(silent, SILENCE_MS)
        take(reader.push(chunk))
      }
    } finally {
      clearTimeout(silence)
    }
  }

  const run = async () => {
    let pauseMs = FIRST_PAUSE_MS
    while (!stopped.signal.aborted) {
      if (isPaused) {
        await new Promise<void>((resolve) => {
          wake = resolve
        })
        continue
      }
      if (failures === 0) onState('connecting')
      const openedAt = performance.now()
      let fault = 'it ended'
      try {
        await connect()
      } catch (error) {
        if (error instanceof ApiError && (error.status === 401 || error.status === 404)) return
        fault = faultOf(error).message
      }
      if (stopped.signal.aborted || isPaused) continue
      failures++
      onState('connecting', failures < TOLD_FAILURES ? undefined : fault)
      pauseMs = performance.now() - openedAt > 2_000 ? FIRST_PAUSE_MS : Math.min(pauseMs * 2, LONGEST_PAUSE_MS)
      await pause(pauseMs)
    }
  }
  void run()
  return () => {
    document.removeEventListener('visibilitychange', onVisibility)
    clearTimeout(hideTimer)
    stopped.abort()
    wake()
  }
}
