/**
 * One attempt in the runtime service: hand it over, follow it to its end, end it when it is to stop.
 *
 * The id of the attempt is on record before it is sent, and the same id is never run twice there. So whenever it is not
 * known whether the service got it, it is sent again: a 409 means that it is there already. While the service is away
 * the attempt waits for it, for a while; an attempt that it then still runs is left to `Orphans`, which ends it.
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

/** Milliseconds that an attempt which is to stop waits for a service that is away. */
export const STOP_AWAY_MS = 10_000

/** Pause in milliseconds after a held request that the service answered at once, though the task goes on. */
const UNHELD_PAUSE_MS = 200

export interface RemoteAttemptOptions {
  readonly service: RuntimeService
  readonly id: string
  readonly owner: string | undefined
  readonly context: ExecutorContext
  /** Milliseconds that the service may be away for while it has the attempt. */
  readonly awayMs: number
  /** Gets, by id, since when (milliseconds since 1970) the attempt has not reached the service; only while it does not. */
  readonly awaySince: Map<string, number>
  /** A service that cannot be reached will be there in a moment. */
  readonly isExpected: boolean
  /** Kills the task there, now or as soon as the service can be reached. */
  readonly killRemote: (isTaken: boolean) => void
}

export class RemoteAttempt {
  readonly #options: RemoteAttemptOptions
  /** The service has it, may have it, or cannot have it. */
  #whereabouts: 'taken' | 'maybe' | 'not sent'
  /** The last request to take it; when the attempt is to stop, it may be under way. */
  #sending: Promise<void> | undefined

  constructor(options: RemoteAttemptOptions) {
    this.#options = options
    const { handle } = options.context
    this.#whereabouts = handle === undefined ? 'not sent' : handle.isTaken ? 'taken' : 'maybe'
  }

  /** The status with which the task ended there. Throws `ExecutionError` when that cannot be known, or is not waited for. */
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

  /** Returns when the service has it. What may have arrived is looked for first: a full queue, say, would hide it. */
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

  /** Waits for the end of the task there, for as long as that takes. */
  async #follow(awayMs: number, signal?: AbortSignal): Promise<TaskStatusResponse> {
    const { service, id, context, awaySince } = this.#options
    let budget: RetryBudget | undefined
    // One of an earlier run may have ended long ago; if not, its timeout is not to wait for what the service holds.
    let isFirstLook = context.handle !== undefined
    for (;;) {
      const askedAt = performance.now()
      const isLook = isFirstLook || awaySince.has(id) // a held request would tell only later that the service is back
      try {
        const status = isLook
          ? await service.look(id, context.traceId, signal)
          : await service.waitFor(id, context.traceId, signal)
        this.#noteBack()
        budget = undefined
        if (hasEnded(status.status)) return status
        if (isFirstLook) context.goesOn()
        // A service that ignores wait_ms would otherwise be asked without a pause.
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

  /** Ends the attempt there, or leaves it to run on when it is only this service that stops. */
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
          killRemote(this.#whereabouts === 'taken') // what may still be on its way is not there yet
          this.#killOnArrival()
        }
        throw failureOf(error as CallFailed)
      }
    }
    return this.#follow(STOP_AWAY_MS)
  }

  /** What is under way must have arrived before it can be ended there, else it would run after we said that it does not. */
  async #sent(): Promise<void> {
    if (this.#whereabouts === 'taken' || this.#sending === undefined) return
    const { promise: late, resolve } = Promise.withResolvers<void>()
    const timer = setTimeout(resolve, STOP_AWAY_MS)
    const arrived = this.#sending.then(
      () => {
        this.#whereabouts = 'taken'
      },
      () => {}, // where it is then, it has noted
    )
    await Promise.race([arrived, late])
    clearTimeout(timer)
  }

  /** What was under way when the attempt was given up may take longer than `Orphans` looks for it. */
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

  /** It is there, and does not tell us about the task. */
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

/** Why it is thrown is known to whoever made the signal fire. */
const stoppedError = () => new ExecutionError('cancelled', 'the attempt is not waited for any more')

/** Throws when `signal` fires. */
const pause = (ms: number, signal: AbortSignal | undefined): Promise<void> =>
  signal === undefined ? Bun.sleep(ms) : unlessAborted(Bun.sleep(ms), signal, stoppedError)
