/**
 * The log of a task as bytes: what there is, and on request what comes until the task has ended.
 *
 * The source is the output that the executor of a running attempt keeps anyway, or that another service keeps, or what the
 * attempt reports, or once the task has ended its result. Followers share the bytes of a source; each holds only how far it has read.
 */
import { lastLinesStart } from '../../shared/bounded-output.ts'
import type { ProgressEntry } from '../../shared/contract/control.ts'
import type { TaskStatus } from '../../shared/contract/task-status.ts'
import { messageOf, ServiceError } from '../../shared/errors.ts'
import { grown } from '../../shared/growth-waiters.ts'
import type { LogStart, OutputSoFar } from '../executors/executor.ts'
import type { Handle } from '../graph/cold-fields.ts'
import type { Task } from '../graph/graph.ts'
import { type LogStream, logTextOf, progressLines } from '../graph/log-page.ts'
import { ResultFile } from '../graph/result-file.ts'
import type { LogsParts, Reader } from './logs.ts'
import { knownTask, type TaskAddress } from './named-tasks.ts'
import { storedValue } from './stored-result.ts'

/** Logs that may be followed at the same time. */
export const MAX_LOG_FOLLOWERS = 10_000

/** Bytes handed on at once. */
const CHUNK_BYTES = 64 * 1024

export interface TaskLogParts extends LogsParts {
  /** Fires when the service stops: logs that are followed end then. */
  readonly stopping: AbortSignal
}

export interface TaskLogRequest {
  readonly stream: LogStream
  readonly start: LogStart
  /** The attempt that an offset counts in: the output of a newer one is read from its first byte. Undefined: the newest. */
  readonly attempt?: number | undefined
  /** Until when the log goes on. Undefined: it has what there is. */
  readonly followUntil: 'attempt ended' | 'task ended' | undefined
}

export interface TaskLog {
  /** As of the first bytes. */
  readonly status: TaskStatus
  /** The attempt whose output comes first; 0 before the first attempt. */
  readonly attempt: number
  /** The position of the first byte in that output. */
  readonly offset: number
  /** The task wrote more than is kept, as far as is known at the first bytes. */
  readonly isTruncated: boolean
  /** The next bytes; undefined at the end, or once the signal of the reader has fired. Readers must not change them. */
  next(): Promise<Uint8Array | undefined>
}

/** Followers at this moment. */
let followers = 0

/** Resolves with the first bytes, or the end. Throws 404; 503 for too many followers or a lost source. */
export async function openTaskLog(
  parts: TaskLogParts,
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
  parts.persistence.flush()
  return {
    ...{ status: task.status, attempt: log.attempt, offset: log.offset, isTruncated: log.isTruncated },
    async next() {
      const chunk = first ?? (await bytes.next()).value ?? undefined
      first = undefined
      return chunk
    },
  }
}

class TaskLogReader {
  readonly #parts: TaskLogParts
  readonly #task: Task
  readonly #request: TaskLogRequest
  /** Fires when nobody reads any more, or the service stops. */
  readonly #ends: AbortSignal
  readonly #traceId: string
  /** Where the next source begins. */
  #start: LogStart
  /** Bytes of earlier texts that were left out. */
  #leftOut = 0
  /** The attempt whose output has been read, or is read now; 0 before that. Reports are one log for all attempts. */
  #readAttempt = 0
  /** The position of the first byte. */
  offset: number
  isTruncated = false

  constructor(parts: TaskLogParts, task: Task, request: TaskLogRequest, { signal, traceId }: Reader) {
    this.#parts = parts
    this.#task = task
    this.#request = request
    this.#start = request.start
    this.offset = 'offset' in request.start ? request.start.offset : 0
    this.#traceId = traceId
    this.#ends = AbortSignal.any([signal, parts.stopping])
  }

  /** The attempt whose output comes first. */
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

  /** The output of one attempt after the other. */
  async *#attempts(): AsyncGenerator<Uint8Array, void, void> {
    const { store, scheduler, persistence } = this.#parts
    const { stream, followUntil } = this.#request
    const task = this.#task
    let reported: ProgressEntry | undefined
    while (!this.#ends.aborted && !task.isDeleted) {
      const isNextAttempt = this.#readAttempt !== 0 && this.#readAttempt !== task.attempt
      if (isNextAttempt && followUntil === 'attempt ended') return
      const output = this.#readAttempt === task.attempt ? undefined : scheduler.outputOf(task)
      if (output !== undefined) {
        yield* this.#growing(output)
      } else if (this.#readAttempt !== task.attempt && !task.isTerminal && task.handle?.isTaken) {
        yield* this.#remote(task.handle)
      }
      const reports = stream === 'stdout' ? entriesAfter(task.progress, reported) : []
      reported = reports.at(-1) ?? reported
      const isOver = task.isTerminal
      const lines = progressLines(reports)
      if (isOver && this.#readAttempt !== task.attempt) yield* this.#result(lines)
      else yield* this.#text(lines)
      if (isOver) persistence.flush() // the end of the log tells that the task has ended
      if (isOver || followUntil === undefined) return
      if (reports.length === 0 && output === undefined) await store.whenChanged(task, this.#ends)
    }
  }

  /** The output of an attempt that executes; to its end, where it is followed. */
  async *#growing(output: OutputSoFar): AsyncGenerator<Uint8Array, void, void> {
    const { stream, followUntil } = this.#request
    const { attempt } = this.#task
    const start = this.#startOf(attempt)
    this.#readAttempt = attempt
    const source = output[stream] ?? (stream === 'stdout' ? output.output : undefined)
    if (source === undefined) return
    let position = startIn(source.read(0), start)
    this.#startedAt(position)
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

  /** Where the output of an attempt begins: an offset counts in that of one attempt only. */
  #startOf(attempt: number): LogStart {
    const { attempt: asked = attempt } = this.#request
    return this.#readAttempt !== 0 || asked < attempt ? FIRST_BYTE : this.#start
  }

  #startedAt(offset: number): void {
    this.offset = this.#leftOut + offset
    this.#start = FIRST_BYTE
  }

  /**
   * The output of an attempt that another service executes; to its end, where it is followed. False if the service does not
   * have it. Throws 503 where it does not answer and the task is not followed.
   */
  async *#remote(handle: Handle): AsyncGenerator<Uint8Array, boolean, void> {
    const task = this.#task
    const isFollowed = this.#request.followUntil !== undefined
    const isOver = () => task.isTerminal || task.isDeleted || task.handle?.id !== handle.id
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

  /** `lines` and the log that the result holds, or the whole log where the result holds a part and another service has it. */
  async *#result(lines: string): AsyncGenerator<Uint8Array, void, void> {
    const { result, handle, attempt } = this.#task
    const value = result instanceof ResultFile ? await storedValue(result, this.#parts.resultFiles) : result
    const { text, isTruncated } = logTextOf(value, this.#request.stream)
    if (isTruncated && handle?.isTaken && (yield* this.#remote(handle))) return
    this.isTruncated = isTruncated
    if (lines === '') this.#start = this.#startOf(attempt)
    this.#readAttempt = attempt
    yield* this.#text(lines + text)
  }

  /** A text that follows the texts before it. */
  *#text(text: string): Generator<Uint8Array, void, void> {
    if (text === '') return
    const bytes = new TextEncoder().encode(text)
    let at = startIn(bytes, this.#start)
    if (at > bytes.length) {
      this.#leftOut += bytes.length
      this.#start = { offset: at - bytes.length }
      return
    }
    this.#startedAt(at)
    for (; at < bytes.length; at += CHUNK_BYTES) yield bytes.subarray(at, at + CHUNK_BYTES)
  }
}

const FIRST_BYTE: LogStart = { offset: 0 }

/** The position where reading `bytes` begins. An offset may be beyond their end: the rest is still to come. */
const startIn = (bytes: Uint8Array, start: LogStart): number =>
  'offset' in start ? start.offset : lastLinesStart(bytes, start.tail)

/** The entries after `last`. Only the newest ones are kept, so `last` may be gone, and then all of them are newer. */
function entriesAfter(entries: readonly ProgressEntry[] = [], last: ProgressEntry | undefined): ProgressEntry[] {
  return entries.slice(last === undefined ? 0 : entries.lastIndexOf(last) + 1)
}
