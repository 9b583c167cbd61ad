/**
 * One attempt in the runtime service: submits it, follows it to its end, and kills it when it is stopped.
 *
 * The id of the attempt is on disk before the request is sent, and the service never runs an id twice. So after an
 * unclear failure the request is sent again; a 409 means that the first one arrived. While the service is unreachable,
 * the attempt retries up to a limit. Then it fails, and `Orphans` kills the task once the service is back.
 */
import type { TaskStatusResponse } from '../../../shared/contract/runtime.ts'
import { hasEnded } from '../../../shared/contract/runtime-status.ts'
import { formatDuration } from '../../../shared/duration.ts'
import { CallFailed } from '../../../shared/http-client.ts'
import { unlessAborted } from '../../../shared/unless-aborted.ts'
import { ExecutionError, type ExecutorContext, type StopReason } from '../executor.ts'
import { failureOf } from './outcome.ts'
import { RetryBudget } from './retry-budget.ts'
import { isAway, type RuntimeService } from './service.ts'

/** Milliseconds that a stopped attempt waits for an unreachable service. */
export const STOP_AWAY_MS = 10_000

/** Pause in milliseconds after a long poll that returned at once although the task still runs. */
const UNHELD_PAUSE_MS = 200

export interface RemoteAttemptOptions {
  readonly service: RuntimeService
  readonly id: string
  readonly owner: string | undefined
  readonly context: ExecutorContext
  /** Milliseconds that the service may be unreachable before the attempt fails. */
  readonly awayMs: number
  /** While the attempt has no contact to the service, holds since when (milliseconds since 1970), by id. */
  readonly awaySince: Map<string, number>
  /** Whether an unreachable service is about to start. */
  readonly isExpected: boolean
  /** Kills the task there, now or as soon as the service can be reached. */
  readonly killRemote: (isTaken: boolean) => void
}

export class RemoteAttempt {
  readonly #options: RemoteAttemptOptions
  /** Whether the service has the attempt (`taken`), may have it, or cannot have it. */
  #whereabouts: 'taken' | 'maybe' | 'not sent'
  /** The last submission. It may be in progress when the attempt is stopped. */
  #sending: Promise<void> | undefined

  constructor(options: RemoteAttemptOptions) {
    this.#options = options
    const { handle } = options.context
    this.#whereabouts = handle === undefined ? 'not sent' : handle.isTaken ? 'taken' : 'maybe'
  }

  /** The final status of the task. Throws `ExecutionError` if it is unknown, or the attempt is stopped. */
  async run(request: object): Promise<TaskStatusResponse> {
    const { signal } = this.#options.context
    try {
      if (this.#whereabouts !== 'taken') await this.#submit(request, signal)
      return await this.#follow(this.#options.awayMs, signal)
    } catch (error) {
      if (signal.aborted) return this.#stop(signal.reason as StopReason)
      if (this.#whereabouts === 'not sent') this.#options.context.handOver(undefined)
      throw error
    } finally {
      this.#options.awaySince.delete(this.#options.id)
    }
  }

  async #submit(request: object, signal: AbortSignal): Promise<void> {
    const { id, owner, context, awayMs, isExpected } = this.#options
    const budget = new RetryBudget(awayMs, signal)
    for (;;) {
      if (signal.aborted) throw stoppedError()
      try {
        this.#sending = this.#send(request, signal)
        await unlessAborted(this.#sending, signal, stoppedError)
        break
      } catch (error) {
        if (signal.aborted) throw stoppedError()
        if (!isAway(error)) throw failureOf(error as CallFailed)
        const isWorthIt = this.#whereabouts === 'maybe' || (isExpected && error.statusCode === 0)
        if (!isWorthIt) throw failureOf(error)
        this.#noteAway(error)
        if (!(await budget.pause())) throw signal.aborted ? stoppedError() : this.#lostTouch(error, awayMs)
      }
    }
    this.#noteBack()
    this.#whereabouts = 'taken'
    context.handOver({ id, isTaken: true, owner })
  }

  /**
   * Returns when the service has the task. If an earlier request may have arrived, asks for the task first: a
   * resubmission could be refused for another reason, such as a full queue.
   */
  async #send(request: object, signal: AbortSignal): Promise<void> {
    const { service, id, context } = this.#options
    if (this.#whereabouts === 'maybe' && (await service.has(id, context.traceId))) return
    if (signal.aborted) throw stoppedError()
    this.#whereabouts = 'maybe'
    try {
      await service.submit(request, context.traceId)
    } catch (error) {
      if (!(error instanceof CallFailed)) throw error
      if (error.statusCode === 409) return
      const isRefused = error.statusCode !== 0 && error.statusCode !== 502 && error.statusCode !== 504
      if (isRefused || !error.wasSent) this.#whereabouts = 'not sent'
      throw error
    }
  }

  /** Waits for the end of the task, without a limit of time. */
  async #follow(awayMs: number, signal?: AbortSignal): Promise<TaskStatusResponse> {
    const { service, id, context, awaySince } = this.#options
    let budget: RetryBudget | undefined
    // After a restart the task may have ended already. If not, its timeout must not wait for a long poll.
    let isFirstLook = context.handle !== undefined
    for (;;) {
      const askedAt = performance.now()
      const isLook = isFirstLook || awaySince.has(id) // a long poll would notice the return of the service late
      try {
        const status = isLook
          ? await service.look(id, context.traceId, signal)
          : await service.waitFor(id, context.traceId, signal)
        this.#noteBack()
        budget = undefined
        if (hasEnded(status.status)) return status
        if (isFirstLook) context.goesOn()
        // Do not flood a service that ignores wait_ms.
        else if (!isLook && performance.now() - askedAt < UNHELD_PAUSE_MS) await pause(UNHELD_PAUSE_MS, signal)
        isFirstLook = false
      } catch (error) {
        if (signal?.aborted) throw stoppedError()
        if (!isAway(error)) throw this.#forgotten(error as CallFailed)
        this.#noteAway(error)
        budget ??= new RetryBudget(awayMs, signal)
        if (!(await budget.pause())) throw signal?.aborted ? stoppedError() : this.#lostTouch(error, awayMs)
      }
    }
  }

  /** Kills the task; leaves it running if only control stops. */
  async #stop(reason: StopReason): Promise<TaskStatusResponse> {
    if (reason === 'interrupted') throw stoppedError()
    await this.#sent()
    if (this.#whereabouts === 'not sent') throw stoppedError()
    const { service, id, owner, context, killRemote } = this.#options
    const budget = new RetryBudget(STOP_AWAY_MS)
    for (;;) {
      try {
        await service.kill(id, owner, context.traceId)
        break
      } catch (error) {
        const isGone = error instanceof CallFailed && error.statusCode === 404 && this.#whereabouts === 'taken'
        if (isAway(error) && (await budget.pause())) continue
        if (!isGone) {
          killRemote(this.#whereabouts === 'taken') // a request in progress may arrive later
          this.#killOnArrival()
        }
        throw failureOf(error as CallFailed)
      }
    }
    return this.#follow(STOP_AWAY_MS)
  }

  /**
   * Waits for a submission in progress. A kill that overtakes it would find nothing, and the task would run after its
   * cancel.
   */
  async #sent(): Promise<void> {
    if (this.#whereabouts === 'taken' || this.#sending === undefined) return
    const { promise: late, resolve } = Promise.withResolvers<void>()
    const timer = setTimeout(resolve, STOP_AWAY_MS)
    const arrived = this.#sending.then(
      () => {
        this.#whereabouts = 'taken'
      },
      () => {}, // `#send` has set `#whereabouts`
    )
    await Promise.race([arrived, late])
    clearTimeout(timer)
  }

  /** Kills a task whose submission arrives after `Orphans` has stopped looking for it. */
  #killOnArrival(): void {
    if (this.#whereabouts === 'taken') return
    const { killRemote } = this.#options
    this.#sending?.then(
      () => killRemote(true),
      () => this.#whereabouts === 'maybe' && killRemote(false),
    )
  }

  #noteAway({ message }: CallFailed): void {
    const { id, context, awaySince } = this.#options
    if (awaySince.has(id)) return
    awaySince.set(id, Date.now())
    context.log.warn('the runtime service is away, waiting for it', { handle_id: id, cause: message })
  }

  #noteBack(): void {
    const { id, context, awaySince } = this.#options
    if (awaySince.delete(id)) context.log.info('the runtime service is back', { handle_id: id })
  }

  #lostTouch(error: CallFailed, awayMs: number): ExecutionError {
    if (this.#whereabouts !== 'not sent') this.#options.killRemote(this.#whereabouts === 'taken')
    const message = `lost touch with the runtime service for ${formatDuration(awayMs)}: ${error.message}`
    return new ExecutionError('external_failure', message, { cause: error, retryable: true })
  }

  /** The error for a reachable service that does not return the status. */
  #forgotten(error: CallFailed): ExecutionError {
    const { id, killRemote, service } = this.#options
    if (error.statusCode !== 404) {
      killRemote(true)
      return failureOf(error)
    }
    const message = `the runtime service at ${service.url} does not know task ${id} any more: what became of it is unknown`
    return new ExecutionError('not_found', message, { cause: error, source: 'runtime' })
  }
}

/** The reason is known where the signal was fired. */
const stoppedError = () => new ExecutionError('cancelled', 'the attempt is not waited for any more')

/** Sleeps. Throws when `signal` fires. */
const pause = (ms: number, signal: AbortSignal | undefined): Promise<void> =>
  signal === undefined ? Bun.sleep(ms) : unlessAborted(Bun.sleep(ms), signal, stoppedError)
