/**
 * Reads the log of a task as bytes, and follows it on request until the task has ended.
 *
 * The source of a running attempt is the output that its executor holds, the output that another service holds, or the
 * progress that the attempt reports. The source of an ended task is its result. Followers share the bytes of a source;
 * each of them holds only its position.
 */

import type { ProgressEntry } from '../../shared/contract/control.ts'
import { messageOf, ServiceError } from '../../shared/contract/errors.ts'
import type { TaskStatus } from '../../shared/contract/task-status.ts'
import { lastLinesStart } from '../../shared/streams/bounded-output.ts'
import { grown } from '../../shared/streams/growth-waiters.ts'
import type { LogStart, OutputSoFar } from '../executors/executor.ts'
import { type LogStream, logTextOf, progressLines } from '../rules/log-page.ts'
import { ResultFile } from '../rules/result-file.ts'
import type { Task } from '../task/graph.ts'
import type { Handle } from '../task/rare-state.ts'
import type { Reader } from './logs.ts'
import { knownTask, type TaskAddress } from './named-tasks.ts'
import type { OperationParts } from './parts.ts'
import { storedValue } from './stored-result.ts'

/** Maximum number of concurrent followers. */
export const MAX_LOG_FOLLOWERS = 10_000

/** Maximum bytes of a chunk. */
const CHUNK_BYTES = 64 * 1024

export interface TaskLogRequest {
  readonly stream: LogStream
  readonly start: LogStart
  /**
   * The attempt that an offset refers to. A newer attempt is read from its first byte. Undefined: the newest attempt.
   */
  readonly attempt?: number | undefined
  /** End of following. Undefined: the log ends with the present output. */
  readonly followUntil: 'attempt ended' | 'task ended' | undefined
}

export interface TaskLog {
  /** The status when the first bytes were read. */
  readonly status: TaskStatus
  /** The attempt of the first bytes; 0 before the first attempt. */
  readonly attempt: number
  /** The position of the first byte in the output of that attempt. */
  readonly offset: number
  /** The lines before that position. Undefined where they are not here. */
  readonly linesBefore: number | undefined
  /** Whether output was cut off before the first bytes were read. */
  readonly isTruncated: boolean
  /**
   * The next bytes, which readers must not change. Undefined at the end, and after the signal of the reader has fired.
   */
  next(): Promise<Uint8Array | undefined>
}

/** Present number of followers. */
let followers = 0

/**
 * Resolves when the first bytes, or the end, are known. Throws 404, and 503 for too many followers or a lost source.
 */
export async function openTaskLog(
  parts: OperationParts,
  address: TaskAddress,
  request: TaskLogRequest,
  reader: Reader,
): Promise<TaskLog> {
  const task = knownTask(parts.store, address)
  if (request.followUntil !== undefined && followers >= MAX_LOG_FOLLOWERS) {
    throw new ServiceError(503, `${MAX_LOG_FOLLOWERS} logs are followed already: try again later, or without follow`)
  }
  const log = new TaskLogReader(parts, task, request, reader)
  const bytes = log.bytes()
  let first: Uint8Array | undefined = (await bytes.next()).value ?? undefined
  const leave = () => void bytes.return()
  if (reader.signal.aborted) leave()
  else reader.signal.addEventListener('abort', leave, { once: true })
  const kept = parts.keeper.kept('show')
  const head = {
    status: task.status,
    attempt: log.attempt,
    offset: log.offset,
    isTruncated: log.isTruncated,
    linesBefore: log.linesBefore,
  }
  await kept
  return {
    ...head,
    async next() {
      const chunk = first ?? (await bytes.next()).value ?? undefined
      first = undefined
      return chunk
    },
  }
}

class TaskLogReader {
  readonly #parts: OperationParts
  readonly #task: Task
  readonly #request: TaskLogRequest
  /** Fires when the reader is gone or the service stops. */
  readonly #ends: AbortSignal
  readonly #traceId: string
  /** Position at which the next source begins. */
  #start: LogStart
  /** Omitted bytes of earlier texts. */
  #leftOut = 0
  /** The attempt that was read last; 0 before the first one. Progress reports of all attempts are one log. */
  #readAttempt = 0
  /** The position of the first byte. */
  offset: number
  linesBefore: number | undefined
  isTruncated = false

  constructor(parts: OperationParts, task: Task, request: TaskLogRequest, { signal, traceId }: Reader) {
    this.#parts = parts
    this.#task = task
    this.#request = request
    this.#start = request.start
    this.offset = 'offset' in request.start ? request.start.offset : 0
    this.#traceId = traceId
    this.#ends = AbortSignal.any([signal, parts.stopping])
  }

  /** The attempt of the first bytes. */
  get attempt(): number {
    return this.#readAttempt === 0 ? this.#task.attempt : this.#readAttempt
  }

  async *bytes(): AsyncGenerator<Uint8Array, void, void> {
    const isFollowing = this.#request.followUntil !== undefined
    if (isFollowing) followers++
    try {
      yield* this.#attempts()
    } finally {
      if (isFollowing) followers--
    }
  }

  /** Yields the output of the attempts, one after the other. */
  async *#attempts(): AsyncGenerator<Uint8Array, void, void> {
    const { store, scheduler, keeper } = this.#parts
    const { stream, followUntil } = this.#request
    const task = this.#task
    let reported: ProgressEntry | undefined
    while (!this.#ends.aborted && !task.isDeleted) {
      const { seq } = task
      const isNextAttempt = this.#readAttempt !== 0 && this.#readAttempt !== task.attempt
      if (isNextAttempt && followUntil === 'attempt ended') return
      const output = this.#readAttempt === task.attempt ? undefined : scheduler.outputOf(task)
      if (output !== undefined) {
        yield* this.#growing(output)
      } else if (this.#readAttempt !== task.attempt && !task.isTerminal && task.rare.handle?.isTaken) {
        yield* this.#remote(task.rare.handle)
      }
      const reports = stream === 'stdout' ? entriesAfter(task.rare.progress, reported) : []
      reported = reports.at(-1) ?? reported
      const isOver = task.isTerminal
      const lines = progressLines(reports)
      if (isOver && this.#readAttempt !== task.attempt) yield* this.#result(lines)
      else yield* this.#text(lines)
      if (isOver) await keeper.kept('show') // the end of the log shows that the task has ended
      if (isOver || followUntil === undefined) return
      // A change since `seq` was read woke nobody: an attempt may begin between the look for its output and the wait.
      const hasNews = reports.length > 0 || output !== undefined || task.seq !== seq
      if (!hasNews) await store.whenChanged(task, this.#ends)
    }
  }

  /** Yields the output of an attempt that this service executes. Follows it on request. */
  async *#growing(output: OutputSoFar): AsyncGenerator<Uint8Array, void, void> {
    const { stream, followUntil } = this.#request
    const { attempt } = this.#task
    const start = this.#startOf(attempt)
    this.#readAttempt = attempt
    const source = output[stream] ?? (stream === 'stdout' ? output.output : undefined)
    if (source === undefined) return
    let position = startIn(source.read(0), start)
    this.#startedAt(position, source.read(0))
    while (!this.#ends.aborted) {
      const isComplete = source.isComplete
      const bytes = source.read(position)
      this.isTruncated = source.truncated
      if (bytes.length > 0) {
        const chunk = bytes.subarray(0, CHUNK_BYTES)
        position += chunk.length
        yield chunk
      } else if (isComplete || followUntil === undefined) return
      else await grown(source, this.#ends)
    }
  }

  /** The first position to read in an attempt. An offset applies to one attempt only. */
  #startOf(attempt: number): LogStart {
    const { attempt: asked = attempt } = this.#request
    return this.#readAttempt !== 0 || asked < attempt ? FIRST_BYTE : this.#start
  }

  /** `bytes`: those of the source from its beginning, where they are known. */
  #startedAt(offset: number, bytes?: Uint8Array): void {
    this.offset = this.#leftOut + offset
    const isKnown = bytes !== undefined && this.#leftOut === 0
    this.linesBefore = this.offset === 0 ? 0 : isKnown ? linesIn(bytes.subarray(0, offset)) : undefined
    this.#start = FIRST_BYTE
  }

  /**
   * Yields the output of an attempt that another service executes. Follows it on request. Returns false if that service
   * does not have the attempt. Throws 503 if it does not answer and the log is not followed.
   */
  async *#remote(handle: Handle): AsyncGenerator<Uint8Array, boolean, void> {
    const task = this.#task
    const isFollowed = this.#request.followUntil !== undefined
    const isOver = () => task.isTerminal || task.isDeleted || task.rare.handle?.id !== handle.id
    let hasBytes = false
    try {
      const log = this.#readRemote(handle, isFollowed ? isOver : undefined)
      if (log === undefined) return false
      for await (const bytes of log) {
        hasBytes = true
        yield bytes
      }
      return true
    } catch (error) {
      if (hasBytes || isFollowed || task.isTerminal) return hasBytes
      throw new ServiceError(503, `cannot read the output so far: ${messageOf(error)}; the task still runs, try again`)
    }
  }

  #readRemote(handle: Handle, untilOver: (() => boolean) | undefined) {
    const { stream } = this.#request
    const { attempt, type } = this.#task
    const onStart = (offset: number) => {
      this.#readAttempt = attempt
      this.#startedAt(offset)
    }
    const request = { stream, start: this.#startOf(attempt), onStart, untilOver }
    return this.#parts.executors
      .get(type)
      ?.readLog?.(handle, { ...request, traceId: this.#traceId, signal: this.#ends })
  }

  /**
   * Yields `lines`, then the log in the result. If the result holds only a part, another service may have the whole
   * log.
   */
  async *#result(lines: string): AsyncGenerator<Uint8Array, void, void> {
    const { result, rare, attempt } = this.#task
    const { handle } = rare
    const value = result instanceof ResultFile ? await storedValue(result, this.#parts.keeper.results) : result
    const { text, isTruncated } = logTextOf(value, this.#request.stream)
    if (isTruncated && handle?.isTaken && (yield* this.#remote(handle))) return
    this.isTruncated = isTruncated
    if (lines === '') this.#start = this.#startOf(attempt)
    this.#readAttempt = attempt
    yield* this.#text(lines + text)
  }

  /** Yields a text. Its positions continue those of earlier texts. */
  *#text(text: string): Generator<Uint8Array, void, void> {
    if (text === '') return
    const bytes = new TextEncoder().encode(text)
    let at = startIn(bytes, this.#start)
    if (at > bytes.length) {
      this.#leftOut += bytes.length
      this.#start = { offset: at - bytes.length }
      return
    }
    this.#startedAt(at, bytes)
    for (; at < bytes.length; at += CHUNK_BYTES) yield bytes.subarray(at, at + CHUNK_BYTES)
  }
}

const NEWLINE = 10

function linesIn(bytes: Uint8Array): number {
  let count = 0
  for (let at = bytes.indexOf(NEWLINE); at >= 0; at = bytes.indexOf(NEWLINE, at + 1)) count++
  return count
}

const FIRST_BYTE: LogStart = { offset: 0 }

/** The first position to read in `bytes`. An offset may be behind their end, if more bytes follow. */
const startIn = (bytes: Uint8Array, start: LogStart): number =>
  'offset' in start ? start.offset : lastLinesStart(bytes, start.tail)

/** The entries after `last`. Tasks keep only the newest entries. If `last` is gone, all entries are newer. */
function entriesAfter(entries: readonly ProgressEntry[] = [], last: ProgressEntry | undefined): ProgressEntry[] {
  return entries.slice(last === undefined ? 0 : entries.lastIndexOf(last) + 1)
}
