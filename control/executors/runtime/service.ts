/** Client of the runtime service. It sends no message before the commit that this follows (`message-order.ts`). */

import { messageOf } from '../../../shared/contract/errors.ts'
import { BUNDLE_TYPE, type BundleSummary, isSha256, type StagedFile } from '../../../shared/contract/file-bundles.ts'
import type { DryRunResponse, TaskStatusResponse } from '../../../shared/contract/runtime.ts'
import type { RuntimeHealth } from '../../../shared/contract/runtime-info.ts'
import { WAIT_FOR_HEADER } from '../../../shared/contract/runtime-status.ts'
import { BAR_HEADER, NOT_AFTER_HEADER } from '../../../shared/contract/submission-lease.ts'
import type { TaskNetwork } from '../../../shared/contract/task-network.ts'
import { type Call, CallFailed, ServiceClient } from '../../../shared/http/client.ts'
import { headerValue } from '../../../shared/http/header-text.ts'
import type { TaskFiles } from '../../../shared/request/inputs.ts'
import { isObject } from '../../../shared/text/json.ts'
import type { Keeper } from '../../log/keeper.ts'
import { networkIn, statusFault } from './answer-checks.ts'
import { MESSAGE_ORDER } from './message-order.ts'
import { isBarred, isLate, isOfService, lacksRoute, stoppedError } from './outcome.ts'

/** Timeout in milliseconds of a call that is not a long poll. */
const CALL_TIMEOUT_MS = 15_000

/** The same of a call that walks over files, and of one that reads them all. */
export const WALK_TIMEOUT_MS = 60_000
const DIGEST_TIMEOUT_MS = 10 * 60_000

/**
 * Milliseconds after the sending of a submission until which the service may accept it. After that, a submission without
 * an answer is known not to be there, unless the service has it already.
 */
export const SUBMISSION_LEASE_MS = 5_000

/** Milliseconds for which a reading of the clock of the service is used: clocks drift apart by less than 0.1 % of that. */
const READING_LIFETIME_MS = 60_000

/** Times that a submission is sent which the service finds late: it was suspended, restarted, or had its clock set. */
const MAX_LATE = 3

/** Milliseconds of a long poll. Proxies cut longer ones. */
const HOLD_MS = 20_000

const TASKS = '/api/v1/tasks'
const STAGED = '/api/v1/runtime/files'

/** Bytes of an answer about the connections of a task, of which a runtime service lists a bounded number. */
const MAX_NETWORK_BYTES = 1024 * 1024

/** A part of an output. */
export interface LogRange {
  readonly stream: 'stdout' | 'stderr'
  /** Position of the first byte. */
  readonly offset?: number
  /** Number of last lines, instead of `offset`. */
  readonly tail?: number
  /** Maximum number of bytes. */
  readonly limit?: number
  /** Continue until the task has ended. */
  readonly follow?: true
}

export interface OpenLog {
  /** Position of the first byte. */
  readonly offset: number
  readonly stream: ReadableStream<Uint8Array>
}

/** How a caller reads a file. */
export interface FileCall {
  readonly method: 'GET' | 'HEAD'
  /** `Range` and `If-Range`. */
  readonly headers: Readonly<Record<string, string>>
}

export interface SubmitOptions {
  /** Has what the submission follows kept. Undefined: it is. */
  readonly begin: () => Promise<void> | undefined
  readonly controlPort: number | undefined
  readonly signal: AbortSignal
  readonly onSend: () => void
}

interface ClockReading {
  /** `performance.now()` when it had come. */
  readonly readMs: number
  readonly text: string | undefined
}

export interface RuntimeServiceOptions {
  readonly url: string
  readonly token: string | undefined
  /** What has the token, for the error of a refused one. Default: the variable with the token of all. */
  readonly tokenSource?: string | undefined
  readonly keeper: Pick<Keeper, 'kept'>
}

export class RuntimeService {
  readonly #url: string
  #clock: ClockReading | undefined
  readonly #keeper: RuntimeServiceOptions['keeper']
  #client: ServiceClient

  constructor(options: RuntimeServiceOptions) {
    this.#url = options.url
    this.#keeper = options.keeper
    this.#client = clientOf(options)
  }

  /** Sets the token of further calls. */
  authorize({ token, tokenSource }: Pick<RuntimeServiceOptions, 'token' | 'tokenSource'>): void {
    this.#client = clientOf({ url: this.#url, token, tokenSource })
  }

  /** The base URL, without a trailing slash, and without user and password. */
  get url(): string {
    return this.#client.shownUrl
  }

  /**
   * Submits a task of a control service that listens on `controlPort`. Before each request it waits for `begin`, and calls
   * `onSend`. The service accepts the request at most `SUBMISSION_LEASE_MS` later, except a service of an earlier version.
   * Sends nothing once `signal` has fired. Throws what `begin` throws, and `CallFailed`, like all further methods.
   */
  async submit(request: object, traceId: string, { begin, controlPort, signal, onSend }: SubmitOptions): Promise<void> {
    const body = new TextEncoder().encode(JSON.stringify(request))
    for (let late = 1; ; late++) {
      const clock = await this.#readClock(traceId, signal)
      const begun = begin()
      if (begun !== undefined) await begun
      if (signal.aborted) throw stoppedError()
      onSend()
      const headers = { ...trace(traceId), ...asControl(controlPort), ...notAfter(clock) }
      try {
        await this.#client.call({ method: 'POST', path: TASKS, body, headers, timeoutMs: CALL_TIMEOUT_MS })
        return
      } catch (error) {
        if (!(error instanceof CallFailed) || !isLate(error)) throw error
        this.#clock = undefined
        if (late >= MAX_LATE) throw new CallFailed(error.message, { statusCode: 503, fault: 'it accepts too late' })
      }
    }
  }

  /** A reading of the clock of the service that is not old. Without text from a service of an earlier version. */
  async #readClock(traceId: string, signal: AbortSignal): Promise<ClockReading> {
    if (this.#clock !== undefined && performance.now() - this.#clock.readMs < READING_LIFETIME_MS) return this.#clock
    try {
      return await this.ping(CALL_TIMEOUT_MS, traceId, signal)
    } catch (error) {
      if (isAway(error)) throw error
      return { readMs: performance.now(), text: undefined } // the submission shows what is wrong
    }
  }

  /** Whether the service answers at all. */
  async ping(timeoutMs: number, traceId: string, signal?: AbortSignal): Promise<ClockReading> {
    const headers = trace(traceId)
    const answer = await this.#client.call({ method: 'GET', path: '/healthz', headers, timeoutMs, signal })
    const { clock } = answer as Partial<RuntimeHealth>
    this.#clock = { readMs: performance.now(), text: typeof clock === 'string' ? clock : undefined }
    return this.#clock
  }

  /** The plan that `submit` would answer with. The service stores nothing. */
  async dryRun(request: object, traceId: string, signal: AbortSignal): Promise<DryRunResponse> {
    const body = new TextEncoder().encode(JSON.stringify(request))
    const answer = await this.#client.call({
      ...{ method: 'POST', path: `${TASKS}?dry_run=true`, body, headers: trace(traceId) },
      ...{ timeoutMs: CALL_TIMEOUT_MS, signal },
    })
    if (isObject((answer as Partial<DryRunResponse>).execution_plan)) return answer as DryRunResponse
    throw new CallFailed(`the runtime service at ${this.url} answered a dry run without a plan`, { statusCode: 200 })
  }

  /**
   * A call about a task that the service may have. A failure without the code of a refusal is not from the service: a proxy
   * that has lost it answers 404 itself, and the task goes on. So the service is away.
   */
  async #callFor(call: Call): Promise<object> {
    try {
      return await this.#client.call(call)
    } catch (error) {
      if (!(error instanceof CallFailed) || error.statusCode === 0 || isOfService(error)) throw error
      throw new CallFailed(error.message, { fault: error.fault })
    }
  }

  /** Whether the service knows the task. */
  async has(id: string, traceId: string): Promise<boolean> {
    try {
      await this.#callFor({
        ...{ method: 'GET', path: `${TASKS}/${id}`, headers: trace(traceId), timeoutMs: CALL_TIMEOUT_MS },
      })
      return true
    } catch (error) {
      if (error instanceof CallFailed && error.statusCode === 404) return false
      throw error
    }
  }

  /** The present status of a task. Throws `CallFailed`, with status 200 if the answer is not the status of a task. */
  look(id: string, traceId: string, signal?: AbortSignal): Promise<TaskStatusResponse> {
    return this.#statusWithin(0, id, trace(traceId), signal)
  }

  /** The queued tasks. */
  queued(timeoutMs: number): Promise<unknown> {
    return this.#client.call({ method: 'GET', path: `${TASKS}?status=accepted&limit=1000`, timeoutMs })
  }

  /** Capacity and reservations. */
  resources(timeoutMs: number): Promise<unknown> {
    return this.#client.call({ method: 'GET', path: '/api/v1/runtime/resources', timeoutMs })
  }

  /** Long poll: the status of a task when it has ended, or after `HOLD_MS`. */
  waitFor(id: string, traceId: string, signal?: AbortSignal): Promise<TaskStatusResponse> {
    return this.#statusWithin(HOLD_MS, id, trace(traceId), signal)
  }

  /** The same when the process of the task was started. */
  waitForStart(id: string, traceId: string, signal?: AbortSignal): Promise<TaskStatusResponse> {
    return this.#statusWithin(HOLD_MS, id, { ...trace(traceId), [WAIT_FOR_HEADER]: 'start' }, signal)
  }

  /** Whether the service tells of a start. Those of earlier versions do not. */
  async tellsStart(traceId: string, signal: AbortSignal): Promise<boolean> {
    return (await this.#readClock(traceId, signal)).text !== undefined
  }

  async #statusWithin(
    ms: number,
    id: string,
    headers: Readonly<Record<string, string>>,
    signal: AbortSignal | undefined,
  ): Promise<TaskStatusResponse> {
    const answer = await this.#callFor({
      method: 'GET',
      path: `${TASKS}/${id}?wait_ms=${ms}`,
      headers,
      timeoutMs: ms + CALL_TIMEOUT_MS,
      signal,
    })
    const fault = statusFault(answer, id)
    if (fault === undefined) return answer as TaskStatusResponse
    const message = `the runtime service at ${this.url} answered for task ${id} with a status that cannot be read: ${fault}`
    throw new CallFailed(message, { statusCode: 200 })
  }

  /** Streams a part of an output. Throws `CallFailed`. */
  async openLog(id: string, range: LogRange, traceId: string, signal: AbortSignal): Promise<OpenLog> {
    const query = new URLSearchParams(
      Object.entries(range).map(([name, value]): [string, string] => [name, String(value)]),
    )
    const { headers, stream } = await this.#client.open(`${TASKS}/${id}/logs?${query}`, trace(traceId), signal)
    return { offset: Number(headers.get('x-log-offset') ?? 0), stream }
  }

  /** What a task did through the rules of its network. Throws `CallFailed`. */
  async network(id: string, traceId: string, signal: AbortSignal): Promise<TaskNetwork> {
    const answer = await this.#client.call({
      ...{ method: 'GET', path: `${TASKS}/${id}/network`, headers: trace(traceId) },
      ...{ timeoutMs: CALL_TIMEOUT_MS, maxAnswerBytes: MAX_NETWORK_BYTES, signal },
    })
    const network = networkIn(answer)
    if (network !== undefined) return network
    const message = `the runtime service at ${this.url} answered for the network of task ${id} with something else`
    throw new CallFailed(message, { statusCode: 200 })
  }

  /** The size of files of a task as a bundle. */
  bundleSize(files: TaskFiles, traceId: string, signal: AbortSignal): Promise<BundleSummary> {
    return this.#bundle(files, 'size', WALK_TIMEOUT_MS, traceId, signal)
  }

  /** The same with the hash. The service reads the files. */
  async bundleDigest(files: TaskFiles, traceId: string) {
    const digest = await this.#bundle(files, 'digest', DIGEST_TIMEOUT_MS, traceId)
    const { sha256 } = digest
    if (sha256 !== undefined && isSha256(sha256)) return { ...digest, sha256 }
    throw new CallFailed(`the runtime service at ${this.url} answered a digest without a hash`, { statusCode: 200 })
  }

  async #bundle(files: TaskFiles, only: string, timeoutMs: number, traceId: string, signal?: AbortSignal) {
    const path = `${bundlePath(files)}&only=${only}`
    const answer = await this.#client.call({ method: 'GET', path, headers: trace(traceId), timeoutMs, signal })
    const { bytes, files: count } = answer as Partial<BundleSummary>
    if (Number.isSafeInteger(bytes) && Number.isSafeInteger(count)) return answer as BundleSummary
    throw new CallFailed(`the runtime service at ${this.url} answered for a bundle without its size`, {
      statusCode: 200,
    })
  }

  /** A file of the workspace of a task, or the list of a directory. Without a stream for HEAD. */
  openFile(id: string, path: string, { method, headers }: FileCall, traceId: string, signal: AbortSignal) {
    const names = path.split('/').map(encodeURIComponent).join('/')
    return this.#client.openAny(method, `${TASKS}/${id}/files/${names}`, { ...trace(traceId), ...headers }, signal)
  }

  /** Files of an ended task as a tar. Without a stream for HEAD. */
  openTar(files: TaskFiles, { method, headers }: FileCall, traceId: string, signal: AbortSignal) {
    const path = `${TASKS}/${encodeURIComponent(files.task_id)}/tar?file=${encodeURIComponent(files.file)}`
    return this.#client.openAny(method, path, { ...trace(traceId), ...headers }, signal)
  }

  /** Streams files of a task as a bundle. */
  openBundle(files: TaskFiles, traceId: string, signal: AbortSignal) {
    return this.#client.open(bundlePath(files), trace(traceId), signal)
  }

  /** Whether the service has the bundle staged. It then counts as used. */
  async hasStaged(sha256: string, traceId: string, signal: AbortSignal): Promise<boolean> {
    const path = `${STAGED}/${sha256}`
    try {
      const headers = trace(traceId)
      await this.#client.call({ method: 'GET', path, headers, timeoutMs: CALL_TIMEOUT_MS, signal })
      return true
    } catch (error) {
      if (error instanceof CallFailed && error.statusCode === 404 && !lacksRoute(error)) return false
      throw error
    }
  }

  /** Stages a bundle. `signal` ends the call: the service needs as long as the body takes, and syncs it. */
  async stage(sha256: string, body: ReadableStream<Uint8Array>, traceId: string, signal: AbortSignal): Promise<void> {
    const call = {
      method: 'PUT',
      path: `${STAGED}/${sha256}`,
      body,
      type: BUNDLE_TYPE,
      headers: trace(traceId),
    } as const
    const { sha256: staged } = (await this.#client.upload({ ...call, signal })) as Partial<StagedFile>
    if (staged === sha256) return
    throw new CallFailed(`the runtime service at ${this.url} did not say that it has the bundle`, { statusCode: 200 })
  }

  /**
   * Kills a task. If the service does not know it, a submission that is on its way is refused when it arrives. Returns
   * whether there is such a task. Throws a 404 if there is none, and the service may still accept one.
   */
  async kill(id: string, owner: string | undefined, traceId: string, timeoutMs = CALL_TIMEOUT_MS): Promise<boolean> {
    await this.#follow('kill')
    const headers = { ...trace(traceId), ...asOwner(owner), [BAR_HEADER]: 'true' }
    const path = `${TASKS}/${id}/kill`
    try {
      await this.#callFor({ method: 'POST', path, headers, timeoutMs })
      return true
    } catch (error) {
      if (error instanceof CallFailed && isBarred(error)) return false
      throw error
    }
  }

  /** Resolves once what a message follows is kept. Throws `CallFailed` while that is impossible. */
  async #follow(message: 'kill'): Promise<void> {
    try {
      await this.#keeper.kept(MESSAGE_ORDER[message].after)
    } catch (error) {
      const fault = `it is not asked yet: ${messageOf(error)}`
      throw new CallFailed(`the runtime service at ${this.url}: ${fault}`, { wasSent: false, fault })
    }
  }

  /** Removes an ended task with its files. */
  async remove(id: string, owner: string | undefined, traceId: string): Promise<void> {
    const headers = { ...trace(traceId), ...asOwner(owner) }
    await this.#callFor({ method: 'DELETE', path: `${TASKS}/${id}`, headers, timeoutMs: CALL_TIMEOUT_MS })
  }
}

const bundlePath = ({ task_id, file }: TaskFiles): string =>
  `${TASKS}/${encodeURIComponent(task_id)}/bundle?file=${encodeURIComponent(file)}`

/** No task with rules for its network can connect to this port of ours. */
const asControl = (port: number | undefined) => (port === undefined ? {} : { 'x-service-control-port': String(port) })

const asOwner = (owner: string | undefined) => (owner === undefined ? {} : { 'x-service-owner': headerValue(owner) })

/** Whether the service is reachable and accepts tasks. */
export async function isReady(client: ServiceClient): Promise<boolean> {
  try {
    await client.call({ method: 'GET', path: '/readyz', timeoutMs: CALL_TIMEOUT_MS })
    return true
  } catch {
    return false
  }
}

export const clientOf = (options: Omit<RuntimeServiceOptions, 'keeper'>): ServiceClient =>
  new ServiceClient(
    {
      name: 'runtime',
      start: 'taskmill-control --with-runtime or taskmill-runtime serve',
      urlVariable: 'SERVICE_RUNTIME_URL',
      urlFlag: '--runtime-url',
      tokenVariable: options.tokenSource ?? 'SERVICE_RUNTIME_TOKEN',
    },
    options,
  )

/** From the arrival of the reading on, which was made before: the service counts at least as long. */
const notAfter = ({ text, readMs }: ClockReading) =>
  text === undefined
    ? {}
    : { [NOT_AFTER_HEADER]: `${text}+${Math.ceil(performance.now() - readMs + SUBMISSION_LEASE_MS)}` }

const trace = (traceId: string) => ({ 'x-trace-id': traceId })

/**
 * Whether the service is unreachable or temporarily refuses, so that the call may be repeated. A proxy has more statuses for
 * that (500, 520 to 524). Rethrows other errors than `CallFailed`.
 */
export function isAway(error: unknown): error is CallFailed {
  if (!(error instanceof CallFailed)) throw error
  const { statusCode } = error
  const isOfProxy = statusCode >= 500 && !isOfService(error)
  return isOfProxy || statusCode === 0 || statusCode === 502 || statusCode === 503 || statusCode === 504
}
