/**
 * The log of a task. It follows new output while it is scrolled to the end. It renders colours and no other escape
 * sequence; all output is text.
 */

import { useEffect, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks'
import { EVENT_STREAM } from '../../../shared/contract/followed-log.ts'
import { ApiError, textOf as chunksOf, request } from '../app/api.ts'
import { countText } from '../model/amounts.ts'
import { LogEvents } from './log-events.ts'
import { type LogLine, LogLines, MAX_LINES, type StreamName, textOf } from './log-lines.ts'
import { StyledPieces } from './styled-text.tsx'

const STREAMS = ['stdout', 'stderr'] as const

/**
 * The two streams come over two connections. What a program complains about follows what it said, so stderr is shown once
 * stdout has been silent for this many milliseconds, or at the latest after the other.
 */
const STDOUT_PAUSE_MS = 100
const STDERR_HELD_MS = 2_000

/** Milliseconds until a broken stream is opened again. */
const AGAIN_MS = 1_000

/** Maximum distance from the bottom at which the log follows. */
const NEAR_END_PX = 24

/** Milliseconds without a sign of life. The service sends one every 15 s. */
const SILENCE_MS = 40_000

interface LogReader {
  /** The service answers. */
  onOpen(): void
  /** `linesBefore`: lines that are left out, if known. */
  onBegin(linesBefore: number | undefined): void
  onText(text: string): void
}

/** Reads until the log ends. Throws if the connection breaks, or is too silent. */
async function readLog(path: string, gone: AbortSignal, { onOpen, onBegin, onText }: LogReader): Promise<void> {
  const silence = new AbortController()
  let timer: ReturnType<typeof setTimeout> | undefined
  const heard = () => {
    clearTimeout(timer)
    timer = setTimeout(() => silence.abort(), SILENCE_MS)
  }
  const events = new LogEvents()
  try {
    heard()
    const signal = AbortSignal.any([gone, silence.signal])
    const response = await request(path, { signal, headers: { accept: EVENT_STREAM } })
    onOpen()
    let hasBegun = false
    for await (const chunk of chunksOf(response)) {
      heard()
      const text = events.push(chunk)
      if (text === '') continue
      if (!hasBegun) onBegin(events.linesBefore)
      hasBegun = true
      onText(text)
    }
  } finally {
    clearTimeout(timer)
  }
}

interface Reading {
  readonly lines: readonly LogLine[]
  readonly dropped: number
  readonly isReading: boolean
  readonly fault?: string
}

/** Follows both streams of a task until it has ended. `version` changes with its attempt. */
function useLog(path: string, version: unknown): Reading {
  const [reading, setReading] = useState<Reading>({ lines: [], dropped: 0, isReading: true })
  useEffect(() => {
    const gone = new AbortController()
    const log = new LogLines()
    let open: number = STREAMS.length
    let fault: string | undefined
    let frame = 0
    const show = () => {
      frame ||= requestAnimationFrame(() => {
        frame = 0
        if (gone.signal.aborted) return
        setReading({
          lines: log.lines,
          dropped: log.dropped,
          isReading: open > 0,
          ...(fault !== undefined && { fault }),
        })
      })
    }
    const held = { stderr: '', since: 0, silentFrom: Number.POSITIVE_INFINITY, isStdoutOver: false }
    let timer: ReturnType<typeof setTimeout> | undefined
    const release = () => {
      clearTimeout(timer)
      if (held.stderr === '' || gone.signal.aborted) return
      const due = Math.min(held.since + STDERR_HELD_MS, held.silentFrom + STDOUT_PAUSE_MS)
      const waitMs = held.isStdoutOver ? 0 : due - performance.now()
      if (waitMs > 0) {
        timer = setTimeout(release, waitMs)
        return
      }
      log.push('stderr', held.stderr)
      held.stderr = ''
      show()
    }
    const take = (stream: StreamName, text: string) => {
      if (stream === 'stdout') {
        log.push(stream, text)
        held.silentFrom = performance.now()
        show()
        return
      }
      if (held.stderr === '') held.since = performance.now()
      held.stderr += text
      release()
    }
    const read = async (stream: StreamName): Promise<void> => {
      for (;;) {
        try {
          // Requests no more lines than the page keeps, because a log may have many megabytes.
          const query = `stream=${stream}&follow=true&tail=${MAX_LINES}`
          await readLog(`${path}?${query}`, gone.signal, {
            onOpen: () => {
              if (stream === 'stdout') held.silentFrom = Math.min(held.silentFrom, performance.now())
            },
            onBegin: (linesBefore) => {
              if (stream === 'stderr') held.stderr = ''
              log.restart(stream, linesBefore)
            },
            onText: (text) => take(stream, text),
          })
          break
        } catch (error) {
          if (gone.signal.aborted) return
          const isOver = error instanceof ApiError && error.status !== 0
          if (isOver) {
            fault = error.message
            break
          }
          await new Promise((resolve) => setTimeout(resolve, AGAIN_MS))
        }
      }
      open--
      if (stream === 'stdout') held.isStdoutOver = true
      release()
      show()
    }
    setReading({ lines: [], dropped: 0, isReading: true })
    for (const stream of STREAMS) void read(stream)
    return () => {
      gone.abort()
      clearTimeout(timer)
      cancelAnimationFrame(frame)
    }
  }, [path, version])
  return reading
}

export function LogView({ path, version, name }: { path: string; version: unknown; name: string }) {
  const { lines, dropped, isReading, fault } = useLog(path, version)
  const [only, setOnly] = useState<StreamName>()
  const [wraps, setWraps] = useState(true)
  const [query, setQuery] = useState('')
  const [isFollowing, setIsFollowing] = useState(true)
  const [foundAt, setFoundAt] = useState(0)
  const box = useRef<HTMLDivElement>(null)
  const shown = useMemo(
    () => (only === undefined ? lines : lines.filter(({ stream }) => stream === only)),
    [lines, only],
  )
  const found = useMemo(() => {
    const needle = query.toLowerCase()
    return needle === ''
      ? []
      : shown.filter((line) => textOf(line).toLowerCase().includes(needle)).map(({ key }) => key)
  }, [shown, query])
  const current = found[foundAt % Math.max(1, found.length)]

  /** Where the log was scrolled to last, and how high it was then. */
  const last = useRef({ top: 0, height: 0 })
  useLayoutEffect(() => {
    if (!isFollowing || box.current === null) return
    box.current.scrollTop = box.current.scrollHeight
    last.current = { top: box.current.scrollTop, height: box.current.scrollHeight }
  }, [shown, isFollowing, wraps])
  useEffect(() => {
    if (current === undefined) return
    setIsFollowing(false)
    box.current?.querySelector(`[data-line="${current}"]`)?.scrollIntoView({ block: 'center' })
  }, [current])

  const onScroll = () => {
    const element = box.current
    if (element === null) return
    const { scrollTop: top, scrollHeight: height, clientHeight } = element
    // The log may have grown since it was scrolled to its end, or shrunk: only who scrolls up stops following.
    if (height - top - clientHeight < NEAR_END_PX) setIsFollowing(true)
    else if (top < last.current.top && height >= last.current.height) setIsFollowing(false)
    last.current = { top, height }
  }
  const has = (stream: StreamName) => lines.some((line) => line.stream === stream)
  return (
    <div class="log-view">
      <div class="log-tools">
        <input
          type="search"
          placeholder="Find in log"
          aria-label="Find in log"
          value={query}
          onInput={(event) => {
            setQuery(event.currentTarget.value)
            setFoundAt(0)
          }}
          onKeyDown={(event) => {
            if (event.key === 'Enter') setFoundAt((at) => at + (event.shiftKey ? found.length - 1 : 1))
          }}
        />
        {query !== '' && (
          <span class="log-found" role="status">
            {found.length === 0 ? 'none' : `${(foundAt % found.length) + 1} of ${found.length}`}
          </span>
        )}
        {has('stdout') && has('stderr') && (
          <select
            aria-label="Stream"
            value={only ?? ''}
            onChange={(event) => setOnly((event.currentTarget.value || undefined) as StreamName | undefined)}
          >
            <option value="">both streams</option>
            <option value="stdout">stdout</option>
            <option value="stderr">stderr</option>
          </select>
        )}
        <label class="check">
          <input type="checkbox" checked={wraps} onChange={(event) => setWraps(event.currentTarget.checked)} /> wrap
        </label>
        <button type="button" class="small" onClick={() => void download(path, name)}>
          Download
        </button>
      </div>
      <div
        ref={box}
        class={`log-lines${wraps ? ' wraps' : ''}${isFollowing ? ' follows' : ''}`}
        onScroll={onScroll}
        // biome-ignore lint/a11y/noNoninteractiveTabindex: a log that scrolls has to be reached by keyboard
        tabIndex={0}
        role="log"
        aria-label={`Log of ${name}`}
        aria-live="off"
      >
        {(dropped > 0 || lines.length >= MAX_LINES) && (
          <p class="log-note">The page shows the newest {countText(MAX_LINES)} lines. Download has all of them.</p>
        )}
        {shown.map(({ key, number, stream, pieces }) => (
          <div key={key} data-line={key} class={`log-line ${stream}${key === current ? ' found' : ''}`}>
            <span class="number" aria-hidden="true">
              {number}
            </span>
            <span class="text">
              <StyledPieces pieces={pieces} />
            </span>
          </div>
        ))}
        {lines.length === 0 && (
          <p class="log-note">{isReading ? 'No output yet.' : (fault ?? 'The task wrote no output.')}</p>
        )}
        {isReading && lines.length > 0 && <p class="log-note growing">…</p>}
      </div>
      {!isFollowing && (
        <button type="button" class="small to-end" onClick={() => setIsFollowing(true)}>
          ↓ {isReading ? 'Follow' : 'To the end'}
        </button>
      )}
    </div>
  )
}

/** Saves both streams, as they are, in one file. */
async function download(path: string, name: string): Promise<void> {
  const texts = await Promise.all(
    STREAMS.map(async (stream) => (await request(`${path}?stream=${stream}`)).blob().catch(() => new Blob())),
  )
  const url = URL.createObjectURL(new Blob(texts, { type: 'text/plain' }))
  const link = document.createElement('a')
  link.href = url
  link.download = `${name.replace(/[^\w.-]+/g, '_').slice(0, 100)}.log`
  link.click()
  URL.revokeObjectURL(url)
}
