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
import type { OutputSoFar } from '../executors/executor.ts'
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
  /** Begin with so many of the last lines. Undefined: with the first one. */
  readonly tail: number | undefined
  /** Go on until the task has ended. */
  readonly follow: boolean
}

export interface TaskLog {
  /** As of the first bytes. */
  readonly status: TaskStatus
  /** The attempt whose output comes first; 0 before the first attempt. */
  readonly attempt: number
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
  if (request.follow && followers >= MAX_LOG_FOLLOWERS) {
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
    ...{ status: task.status, attempt: task.attempt, isTruncated: log.isTruncated },
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
  /** Lines to begin with; undefined once the first source was found. */
  #tail: number | undefined
  isTruncated = false

  constructor(parts: TaskLogParts, task: Task, request: TaskLogRequest, { signal, traceId }: Reader) {
    this.#parts = parts
    this.#task = task
    this.#request = request
    this.#tail = request.tail
    this.#traceId = traceId
    this.#ends = AbortSignal.any([signal, parts.stopping])
  }

  async *bytes(): AsyncGenerator<Uint8Array, void, void> {
    const isFollowing = this.#request.follow
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
    const task = this.#task
    let reported: ProgressEntry | undefined
    /** The attempt whose output has been read. */
    let readAttempt = 0
    while (!this.#ends.aborted && !task.isDeleted) {
      const output = readAttempt === task.attempt ? undefined : scheduler.outputOf(task)
      if (output !== undefined) {
        readAttempt = task.attempt
        yield* this.#growing(output)
      } else if (readAttempt !== task.attempt && !task.isTerminal && task.handle?.isTaken) {
        if (yield* this.#remote(task.handle)) readAttempt = task.attempt
      }
      const reports = this.#request.stream === 'stdout' ? entriesAfter(task.progress, reported) : []
      reported = reports.at(-1) ?? reported
      const isOver = task.isTerminal
      const lines = progressLines(reports)
      if (isOver && readAttempt !== task.attempt) yield* this.#result(lines)
      else yield* this.#text(lines)
      if (isOver) persistence.flush() // the end of the log tells that the task has ended
      if (isOver || !this.#request.follow) return
      if (reports.length === 0 && output === undefined) await store.whenChanged(task, this.#ends)
    }
  }

  /** The output of an attempt that executes; to its end, where the task is followed. */
  async *#growing(output: OutputSoFar): AsyncGenerator<Uint8Array, void, void> {
    const { stream, follow } = this.#request
    const source = output[stream] ?? (stream === 'stdout' ? output.output : undefined)
    if (source === undefined) return
    let position = this.#start(source.read(0))
    while (!this.#ends.aborted) {
      const isComplete = source.isComplete
      const bytes = source.read(position)
      this.isTruncated = source.truncated
      if (bytes.length > 0) {
        const chunk = bytes.subarray(0, CHUNK_BYTES)
        position += chunk.length
        yield chunk
      } else if (isComplete || !follow) return
      else await grown(source, this.#ends)
    }
  }

  /** Where the first source begins: at its last lines, where only those were asked for. */
  #start(bytes: Uint8Array): number {
    const tail = this.#tail
    this.#tail = undefined
    return tail === undefined ? 0 : lastLinesStart(bytes, tail)
  }

  /**
   * The output of an attempt that another service executes; to its end, where the task is followed. False if the service
   * does not have it. Throws 503 where it does not answer and the task is not followed.
   */
  async *#remote(handle: Handle): AsyncGenerator<Uint8Array, boolean, void> {
    const task = this.#task
    const isOver = () => task.isTerminal || task.isDeleted || task.handle?.id !== handle.id
    let hasBytes = false
    try {
      const log = this.#readRemote(handle, this.#request.follow ? isOver : undefined)
      if (log === undefined) return false
      for await (const bytes of log) {
        hasBytes = true
        yield bytes
      }
      return true
    } catch (error) {
      if (hasBytes || this.#request.follow || task.isTerminal) return hasBytes
      throw new ServiceError(503, `cannot read the output so far: ${messageOf(error)}; the task still runs, try again`)
    }
  }

  #readRemote(handle: Handle, untilOver: (() => boolean) | undefined) {
    const { stream } = this.#request
    const tail = this.#tail
    this.#tail = undefined
    const request = { stream, tail, untilOver, traceId: this.#traceId, signal: this.#ends }
    return this.#parts.executors.get(this.#task.type)?.readLog?.(handle, request)
  }

  /** `lines` and the log that the result holds, or the whole log where the result holds a part and another service has it. */
  async *#result(lines: string): AsyncGenerator<Uint8Array, void, void> {
    const { result, handle } = this.#task
    const tail = this.#tail
    const value = result instanceof ResultFile ? await storedValue(result, this.#parts.resultFiles) : result
    const { text, isTruncated } = logTextOf(value, this.#request.stream)
    if (isTruncated && handle?.isTaken && (yield* this.#remote(handle))) return
    this.isTruncated = isTruncated
    this.#tail = tail
    yield* this.#text(lines + text)
  }

  *#text(text: string): Generator<Uint8Array, void, void> {
    if (text === '') return
    const bytes = new TextEncoder().encode(text)
    for (let at = this.#start(bytes); at < bytes.length; at += CHUNK_BYTES) yield bytes.subarray(at, at + CHUNK_BYTES)
  }
}

/** The entries after `last`. Only the newest ones are kept, so `last` may be gone, and then all of them are newer. */
function entriesAfter(entries: readonly ProgressEntry[] = [], last: ProgressEntry | undefined): ProgressEntry[] {
  return entries.slice(last === undefined ? 0 : entries.lastIndexOf(last) + 1)
}
