/**
 * A stream of events that reconnects after a break or a restart of the service, and resumes after the last event.
 *
 * A page has one such stream at a time. A page that is hidden for a while closes it and resumes it when it is visible
 * again. Browsers allow six connections to a service, so pages in the background must not hold any.
 */
import { EventText } from '../model/event-text.ts'
import type { StreamEvent } from '../model/wire.ts'
import { ApiError, request, textOf } from './api.ts'

/** `paused`: the page is hidden. */
export type LiveState = 'connecting' | 'live' | 'paused'

export interface Following {
  readonly path: string
  /** The last event seen. */
  readonly after: () => string
  /** Called at most once per frame, with all events since the last call. */
  readonly onEvents: (events: StreamEvent[]) => void
  readonly onState: (state: LiveState) => void
}

/** Milliseconds between the hiding of the page and the end of the stream. */
const CLOSE_AFTER_HIDDEN_MS = 15_000

/** Milliseconds without a byte until the stream counts as broken. The service sends a comment every 15 s. */
const SILENCE_MS = 40_000

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

  const connect = async () => {
    connection = new AbortController()
    const signal = AbortSignal.any([stopped.signal, connection.signal])
    let silence = setTimeout(() => connection.abort(), SILENCE_MS)
    try {
      flush()
      const response = await request(`${path}?after=${after()}`, { signal })
      onState('live')
      const reader = new EventText()
      for await (const chunk of textOf(response)) {
        clearTimeout(silence)
        silence = setTimeout(() => connection.abort(), SILENCE_MS)
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
      onState('connecting')
      const openedAt = performance.now()
      try {
        await connect()
      } catch (error) {
        if (error instanceof ApiError && (error.status === 401 || error.status === 404)) return
      }
      if (stopped.signal.aborted || isPaused) continue
      onState('connecting')
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
