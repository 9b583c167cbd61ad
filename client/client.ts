/**
 * `taskmill/client`: the control service for programs, in Bun, Node and browsers, without dependencies.
 *
 * Every method throws `TaskmillError` if the call fails, `TypeError` for an argument that cannot be right, and the reason of
 * the given signal once that fires. A call is tried again where that is safe (`connection.ts`).
 */

import { isTerminal } from '../shared/contract/task-status.ts'
import { refusalOfFailures, unmeantFailures } from '../shared/http/certain-failures.ts'
import type { FilePiece } from '../shared/streams/resumed-file.ts'
import type { SavedFile } from '../shared/streams/saved-file.ts'
import { type Call, type CallOptions, Connection, type ConnectionOptions, type Query } from './connection.ts'
import type {
  ApprovalAnswer,
  CancelGraphResponse,
  CancelResponse,
  GraphDetails,
  GraphDryRun,
  GraphPatch,
  GraphPauseAnswer,
  GraphState,
  GraphSummary,
  HealthResponse,
  ListedPause,
  PatchResponse,
  PauseAnswer,
  PauseReason,
  PauseRequest,
  RerunRequest,
  RerunResponse,
  ResumeRequest,
  RetryResponse,
  Schedule,
  ScheduleRequest,
  ScheduleSummary,
  ScheduleTriggered,
  SubmitResponse,
  TaskFileListing,
  TaskGraph,
  TaskRecord,
  TaskStatus,
  WaitingKind,
} from './contract.ts'
import { TaskmillError } from './errors.ts'
import { type EventOptions, readEvents, type SubjectEventOptions, type TaskmillEvent } from './event-reader.ts'
import { type ReadFileOptions, readTaskFile, type SaveFileOptions, saveTaskFile } from './file-reader.ts'
import {
  type FollowLogOptions,
  followLog,
  type LogChunk,
  type LogOptions,
  readLog,
  type TaskLog,
} from './log-reader.ts'
import { type GraphReference, graphPath, type TaskReference, taskPath } from './references.ts'

/** Milliseconds for which the client asks the service to hold an answer back. Most proxies cut a silent request at 60 s. */
const MAX_WAIT_MS = 50_000

export interface SubmitOptions extends CallOptions {
  /**
   * At most 255 characters. The same key with the same graph gets the first answer again, so that the call can be tried
   * again whatever became of the first try.
   */
  readonly idempotencyKey?: string | undefined
  /** The answer comes when all tasks have ended, or after these milliseconds, at most 50000. */
  readonly waitMs?: number | undefined
}

export interface WaitOptions {
  readonly signal?: AbortSignal | undefined
  /** Milliseconds until the call fails with the code `timeout`. Default: none. The graph goes on. */
  readonly timeoutMs?: number | undefined
}

export interface RunOptions extends WaitOptions {
  /** Submits the graph even if it is certain to fail. */
  readonly force?: boolean | undefined
  readonly idempotencyKey?: string | undefined
  readonly traceId?: string | undefined
}

interface PageOptions extends CallOptions {
  /** Elements of a page, 1 to 1000: the answers stay small. Default 100. */
  readonly pageSize?: number | undefined
}

export interface TaskFilter extends PageOptions {
  readonly status?: TaskStatus | readonly TaskStatus[] | undefined
  /** A type, or a tool in any form: `os`, `shell`, `runtime.command`. */
  readonly type?: string | readonly string[] | undefined
}

export interface GraphFilter extends PageOptions {
  readonly state?: GraphState | readonly GraphState[] | undefined
  /** What one of its tasks waits for. */
  readonly waiting?: WaitingKind | readonly WaitingKind[] | undefined
  /** true: only graphs that are paused themselves; false: only others. */
  readonly paused?: boolean | undefined
  /** Exactly this name. */
  readonly name?: string | undefined
  /** Graphs of this tenant. */
  readonly tenant?: string | undefined
  /** All of these labels. */
  readonly labels?: Readonly<Record<string, string>> | undefined
  /** Accepted at this time or later, and before this time. */
  readonly since?: Date | string | undefined
  readonly until?: Date | string | undefined
}

export interface ListFilesOptions extends CallOptions {
  readonly path?: string | undefined
  /** Default: the last attempt. */
  readonly attempt?: number | undefined
}

export interface PutScheduleOptions extends CallOptions {
  /** Only check the schedule: the answer has its next due times, and nothing is kept. */
  readonly dryRun?: boolean
  /** Only create it: fails with status 412 if there is one with this name. */
  readonly onlyNew?: boolean
}

export interface PatchOptions extends CallOptions {
  /** Only check the patch: the answer says what it would make of the graph, with `waves`, and nothing changes. */
  readonly dryRun?: boolean | undefined
  readonly idempotencyKey?: string | undefined
}

export interface RerunOptions extends CallOptions, RerunRequest {
  readonly idempotencyKey?: string | undefined
}

export interface RetryOptions extends CallOptions {
  /** Fails with status 409 if the graph has another revision, because somebody changed it. Default: any. */
  readonly revision?: number | undefined
  /** The same key gets the first answer again, and retries nothing again. */
  readonly idempotencyKey?: string | undefined
}

export class Taskmill {
  readonly #connection: Connection

  /** Throws `TypeError` for an address or a time limit that is none. */
  constructor(options: ConnectionOptions = {}) {
    this.#connection = new Connection(options)
  }

  /** Address of the service, without a final slash. */
  get url(): string {
    return this.#connection.url
  }

  /** Submits a graph. Returns once it is on disk. */
  submit(graph: TaskGraph, options: SubmitOptions = {}): Promise<SubmitResponse> {
    const { idempotencyKey, timeoutMs = this.#connection.timeoutMs, waitMs: asked, ...call } = options
    const waitMs = asked === undefined ? undefined : Math.min(asked, MAX_WAIT_MS)
    return this.#json({
      ...{ ...call, method: 'POST', path: '/tasks', body: graph, query: { wait_ms: waitMs } },
      ...{ headers: keyHeader(idempotencyKey), isRepeatable: idempotencyKey !== undefined },
      timeoutMs: timeoutMs + (waitMs ?? 0),
    })
  }

  /** Finds all faults of a graph, without running it. */
  dryRun(graph: TaskGraph, options: CallOptions = {}): Promise<GraphDryRun> {
    const call = { ...options, method: 'POST', path: '/tasks', body: graph, query: { dry_run: true } } as const
    return this.#json({ ...call, isRepeatable: true })
  }

  /**
   * Submits a graph, and returns it when it has ended. A failure of a task is no error: see `state` of the graph. A graph that
   * is certain to fail is not submitted (`invalid`), unless `force` is true.
   */
  async run(graph: TaskGraph, { idempotencyKey, traceId, force, ...wait }: RunOptions = {}): Promise<GraphDetails> {
    if (force !== true) await this.#refuseFailures(graph, { traceId, signal: wait.signal })
    const submitted = await this.submit(graph, { idempotencyKey, traceId, signal: wait.signal })
    return this.wait(submitted, wait)
  }

  /** Waits until a graph has ended, over restarts of the service. */
  async wait(graph: GraphReference, options: WaitOptions = {}): Promise<GraphDetails> {
    const ended = await this.#waited(graphPath(graph), options, (body) => (body as GraphDetails).state !== 'running')
    return ended as GraphDetails
  }

  /** Waits until a task has ended, over restarts of the service. */
  async waitTask(task: TaskReference, options: WaitOptions = {}): Promise<TaskRecord> {
    return (await this.#waited(taskPath(task), options, (body) =>
      isTerminal((body as TaskRecord).status),
    )) as TaskRecord
  }

  /** A graph with its tasks. */
  getGraph(graph: GraphReference, options: CallOptions = {}): Promise<GraphDetails> {
    return this.#get(graphPath(graph), options)
  }

  /** The record of a task, with its result. */
  getTask(task: TaskReference, options: CallOptions = {}): Promise<TaskRecord> {
    return this.#get(taskPath(task), options)
  }

  /** The tasks whose ids belong to the service, in order of creation. Pages are read as the iteration needs them. */
  tasks({ status, type, ...page }: TaskFilter = {}): AsyncGenerator<TaskRecord, void> {
    return this.#pages('/tasks', { status: list(status), type: list(type) }, page)
  }

  /** All tasks of a graph. */
  graphTasks(graph: GraphReference, { status, type, ...page }: TaskFilter = {}): AsyncGenerator<TaskRecord, void> {
    return this.#pages(`${graphPath(graph)}/tasks`, { status: list(status), type: list(type) }, page)
  }

  /** The graphs, the newest first. */
  graphs(filter: GraphFilter = {}): AsyncGenerator<GraphSummary, void> {
    const { state, waiting, paused, name, tenant, labels = {}, since, until, ...page } = filter
    const label = Object.entries(labels).map(([name, value]) => `${name}=${value}`)
    const query = {
      state: list(state),
      waiting: list(waiting),
      paused,
      name,
      tenant,
      label,
      since: time(since),
      until: time(until),
    }
    return this.#pages('/graphs', query, page)
  }

  /** What happens at the service, without end. Resumes by itself; `reset` tells that events were missed. */
  events(options: EventOptions = {}): AsyncGenerator<TaskmillEvent, void> {
    return readEvents(this.#connection, { kind: 'service', path: '' }, options)
  }

  /** What happens to a graph and its tasks, from its beginning to its end. */
  graphEvents(graph: GraphReference, options: SubjectEventOptions = {}): AsyncGenerator<TaskmillEvent, void> {
    return readEvents(this.#connection, { kind: 'graph', path: graphPath(graph) }, options)
  }

  /** What happens to a task, to its end. */
  taskEvents(task: TaskReference, options: SubjectEventOptions = {}): AsyncGenerator<TaskmillEvent, void> {
    return readEvents(this.#connection, { kind: 'task', path: taskPath(task) }, options)
  }

  /** The output of a task so far. */
  log(task: TaskReference, options: LogOptions = {}): Promise<TaskLog> {
    return readLog(this.#connection, taskPath(task), options)
  }

  /** The output of a task while it is written, to the end of the task. Resumes by itself. */
  followLog(task: TaskReference, options: FollowLogOptions = {}): AsyncGenerator<LogChunk, void> {
    return followLog(this.#connection, taskPath(task), options)
  }

  /** A directory in the workspace of a runtime task: at most 1000 entries. Default: the workspace. */
  files(task: TaskReference, { path, attempt, ...call }: ListFilesOptions = {}): Promise<TaskFileListing> {
    const query = { path, attempt }
    return this.#json({ ...call, method: 'GET', path: `${taskPath(task)}/files`, query, isRepeatable: true })
  }

  /** The bytes of a file of a runtime task, or of a directory as a tar. Resumes by itself. */
  file(task: TaskReference, path: string, options: ReadFileOptions = {}): AsyncGenerator<FilePiece, void> {
    return readTaskFile(this.#connection, taskPath(task), path, options)
  }

  /**
   * Saves a file or a directory of a runtime task at `to`, or in it if that is a directory; in Bun and Node. What an
   * earlier call has saved in part is continued.
   */
  saveFile(task: TaskReference, path: string, to: string, options: SaveFileOptions = {}): Promise<SavedFile> {
    return saveTaskFile(this.#connection, taskPath(task), path, to, options)
  }

  /** Cancels a task, and skips what depends on it. */
  cancelTask(task: TaskReference, options: CallOptions = {}): Promise<CancelResponse> {
    return this.#json({ ...options, method: 'POST', path: `${taskPath(task)}/cancel`, isRepeatable: true })
  }

  /** Cancels all tasks of a graph that have not ended. */
  cancelGraph(graph: GraphReference, options: CallOptions = {}): Promise<CancelGraphResponse> {
    return this.#json({ ...options, method: 'POST', path: `${graphPath(graph)}/cancel`, isRepeatable: true })
  }

  /** Runs a task that failed or was cancelled again in its graph, with all that depends on it. */
  retryTask(task: TaskReference, options: RetryOptions = {}): Promise<RetryResponse> {
    return this.#retry(taskPath(task), options)
  }

  /** As `retryTask`, for all tasks of a graph that failed or were cancelled. */
  retryGraph(graph: GraphReference, options: RetryOptions = {}): Promise<RetryResponse> {
    return this.#retry(graphPath(graph), options)
  }

  #retry(path: string, { idempotencyKey, revision, ...call }: RetryOptions): Promise<RetryResponse> {
    return this.#json({
      ...{ ...call, method: 'POST', path: `${path}/retry`, ...(revision !== undefined && { body: { revision } }) },
      ...{ headers: keyHeader(idempotencyKey), isRepeatable: idempotencyKey !== undefined },
    })
  }

  /** Adds tasks to a live graph, and removes, replaces or changes those that have not started: all of it or nothing. */
  patchGraph(graph: GraphReference, patch: GraphPatch, options: PatchOptions = {}): Promise<PatchResponse> {
    const { dryRun = false, idempotencyKey, ...call } = options
    return this.#json({
      ...{ ...call, method: 'PATCH', path: graphPath(graph), body: patch, query: { dry_run: dryRun || undefined } },
      ...{ headers: keyHeader(idempotencyKey), isRepeatable: dryRun || idempotencyKey !== undefined },
    })
  }

  /** Nothing of a graph starts until it is resumed; what runs goes on. */
  pauseGraph(graph: GraphReference, { why }: PauseReason = {}, options: CallOptions = {}): Promise<GraphPauseAnswer> {
    const path = `${graphPath(graph)}/pause`
    return this.#json({ ...options, method: 'POST', path, body: { why }, isRepeatable: true })
  }

  /** Ends the pause of a graph. */
  resumeGraph(graph: GraphReference, options: CallOptions = {}): Promise<GraphPauseAnswer> {
    return this.#json({ ...options, method: 'POST', path: `${graphPath(graph)}/resume`, isRepeatable: true })
  }

  /** No task of a type starts, or none at all, until that is resumed. */
  pause({ type, why }: PauseRequest = {}, options: CallOptions = {}): Promise<PauseAnswer> {
    return this.#json({ ...options, method: 'POST', path: '/pause', body: { type, why }, isRepeatable: true })
  }

  /** Ends the pause of a type, or of the service. */
  resume({ type }: ResumeRequest = {}, options: CallOptions = {}): Promise<PauseAnswer> {
    return this.#json({ ...options, method: 'POST', path: '/resume', body: { type }, isRepeatable: true })
  }

  /** The pauses of types and of the service. Those of graphs are in `pause` of the graphs. */
  pauses(options: CallOptions = {}): Promise<readonly ListedPause[]> {
    return this.#get('/pauses', options)
  }

  /** Removes the record of a task. */
  deleteTask(task: TaskReference, options: CallOptions = {}): Promise<void> {
    return this.#delete(taskPath(task), options)
  }

  /** Removes a graph that has ended, with all its records and files. */
  deleteGraph(graph: GraphReference, options: CallOptions = {}): Promise<void> {
    return this.#delete(graphPath(graph), options)
  }

  /** Runs an ended graph again as a new one: what did not succeed, and everything downstream. */
  rerun(graph: GraphReference, options: RerunOptions = {}): Promise<RerunResponse> {
    const { idempotencyKey, from, params, ...call } = options
    return this.#json({
      ...{ ...call, method: 'POST', path: `${graphPath(graph)}/rerun`, body: { from, params } },
      ...{ headers: keyHeader(idempotencyKey), isRepeatable: idempotencyKey !== undefined },
    })
  }

  /** Approves a task of type `approval`. */
  approve(task: TaskReference, { who, why }: ApprovalAnswer, options: CallOptions = {}): Promise<TaskRecord> {
    const path = `${taskPath(task)}/approve`
    return this.#json({ ...options, method: 'POST', path, body: { who, why }, isRepeatable: true })
  }

  /** Rejects a task of type `approval`. */
  reject(task: TaskReference, { who, why }: ApprovalAnswer, options: CallOptions = {}): Promise<TaskRecord> {
    const path = `${taskPath(task)}/reject`
    return this.#json({ ...options, method: 'POST', path, body: { who, why }, isRepeatable: true })
  }

  /** Ends a task of type `wait` with `value`, any JSON value, as its result. */
  signal(task: TaskReference, value: unknown = null, options: CallOptions = {}): Promise<TaskRecord> {
    return this.#json({ ...options, method: 'POST', path: `${taskPath(task)}/signal`, body: value, isRepeatable: true })
  }

  /** Creates or replaces a schedule: a graph that the service submits at certain times. */
  putSchedule(name: string, schedule: ScheduleRequest, options: PutScheduleOptions = {}): Promise<Schedule> {
    const { dryRun = false, onlyNew = false, ...call } = options
    const path = `${schedulePath(name)}${dryRun ? '?dry_run=true' : ''}`
    const headers = onlyNew ? { 'if-none-match': '*' } : {}
    // Repeated, it would find the schedule that it has made.
    return this.#json({ ...call, method: 'PUT', path, body: schedule, headers, isRepeatable: !onlyNew || dryRun })
  }

  /** All schedules, without their graphs. */
  schedules(options: CallOptions = {}): Promise<readonly ScheduleSummary[]> {
    return this.#get('/schedules', options)
  }

  /** A schedule, with its next due times and its last graphs. */
  getSchedule(name: string, options: CallOptions = {}): Promise<Schedule> {
    return this.#get(schedulePath(name), options)
  }

  /** Nothing is due until the schedule is resumed. */
  pauseSchedule(name: string, options: CallOptions = {}): Promise<Schedule> {
    return this.#json({ ...options, method: 'POST', path: `${schedulePath(name)}/pause`, isRepeatable: true })
  }

  /** What would have been due meanwhile is not made up for. */
  resumeSchedule(name: string, options: CallOptions = {}): Promise<Schedule> {
    return this.#json({ ...options, method: 'POST', path: `${schedulePath(name)}/resume`, isRepeatable: true })
  }

  /** Submits the graph of a schedule now. */
  triggerSchedule(name: string, options: CallOptions = {}): Promise<ScheduleTriggered> {
    return this.#json({ ...options, method: 'POST', path: `${schedulePath(name)}/trigger`, isRepeatable: false })
  }

  /** Removes a schedule. Its graphs stay. */
  deleteSchedule(name: string, options: CallOptions = {}): Promise<void> {
    return this.#delete(schedulePath(name), options)
  }

  /** Whether the service lives, and accepts graphs. */
  health(options: CallOptions = {}): Promise<HealthResponse> {
    return this.#get('/health', options)
  }

  async #refuseFailures(graph: TaskGraph, call: CallOptions): Promise<void> {
    const query = { dry_run: true, brief: true }
    const asked: Call = { ...call, method: 'POST', path: '/tasks', body: graph, query, isRepeatable: true }
    const found = await this.#json<Partial<GraphDryRun>>(asked).catch((error: unknown) => {
      // The submission tells of any other refusal, and an older service has no such dry run.
      if (error instanceof TaskmillError && error.status >= 400 && error.status < 500) return undefined
      throw error
    })
    const expectOf = (id: string) => graph.tasks.find((task) => task.id === id)?.annotations?.expect
    const refusal = refusalOfFailures(unmeantFailures(found?.errors, expectOf), 'correct it, or pass force: true')
    if (refusal !== undefined) throw new TaskmillError(refusal, { code: 'invalid', wasSent: false })
  }

  async #json<T>(call: Call): Promise<T> {
    return (await this.#connection.call(call)).body as T
  }

  #get<T>(path: string, options: CallOptions): Promise<T> {
    return this.#json({ ...options, method: 'GET', path, isRepeatable: true })
  }

  async #delete(path: string, options: CallOptions): Promise<void> {
    let wasLost = false
    const onLost = () => {
      wasLost = true
    }
    try {
      await this.#connection.call({ ...options, method: 'DELETE', path, isRepeatable: true, onLost })
    } catch (error) {
      // The try whose answer was lost has deleted it.
      if (!(wasLost && error instanceof TaskmillError && error.code === 'not_found')) throw error
    }
  }

  async #waited(path: string, options: WaitOptions, isOver: (body: unknown) => boolean): Promise<unknown> {
    const { signal, timeoutMs } = options
    const { awayMs, retryMs, timeoutMs: answerMs } = this.#connection
    const until = timeoutMs === undefined ? undefined : Date.now() + timeoutMs
    for (let isFirst = true; ; isFirst = false) {
      const waitMs = until === undefined ? MAX_WAIT_MS : Math.max(0, Math.min(MAX_WAIT_MS, until - Date.now()))
      const { body } = await this.#connection.call({
        ...{ method: 'GET', path, query: { wait_ms: waitMs }, signal, isRepeatable: true },
        ...{ timeoutMs: waitMs + answerMs, retryMs: isFirst ? retryMs : awayMs },
      })
      if (isOver(body)) return body
      if (until === undefined || Date.now() < until) continue
      throw new TaskmillError(`GET ${path}: no end within ${timeoutMs} ms`, { code: 'timeout' })
    }
  }

  async *#pages<T>(path: string, query: Query, { pageSize = 100, ...call }: PageOptions): AsyncGenerator<T, void> {
    let cursor: string | undefined
    do {
      const asked = { ...query, limit: pageSize, cursor }
      const page = await this.#connection.call({ ...call, method: 'GET', path, query: asked, isRepeatable: true })
      if (!Array.isArray(page.body))
        throw new TaskmillError(`GET ${path} answered no list: is this the control service?`, {
          code: 'unexpected_answer',
        })
      yield* page.body as T[]
      cursor = page.headers.get('x-next-cursor') ?? undefined
    } while (cursor !== undefined)
  }
}

const schedulePath = (name: string): string => `/schedules/${encodeURIComponent(name)}`

const keyHeader = (key: string | undefined): Readonly<Record<string, string>> =>
  key === undefined ? {} : { 'idempotency-key': key }

const list = (value: string | readonly string[] | undefined): readonly string[] | undefined =>
  typeof value === 'string' ? [value] : value

const time = (value: Date | string | undefined): string | undefined =>
  value instanceof Date ? value.toISOString() : value
