/**
 * One attempt in a runtime service: finds its place, submits it, follows it to its end, and kills it when it is stopped.
 *
 * Its id and its place are on disk before the request is sent, and a service never runs an id twice. So after an
 * unclear failure the same service is asked again; a 409 means that the first request arrived. Only an attempt that its
 * service cannot have goes to another one: it was refused, or the service has said twice that it is not there. While the
 * service is unreachable, the attempt retries up to a limit. Then it fails, and `Orphans` kills the task once the
 * service is back.
 */

import type { TaskStatusResponse } from '../../../shared/contract/runtime.ts'
import { DEFAULT_RUNTIME } from '../../../shared/contract/runtime-names.ts'
import { hasEnded } from '../../../shared/contract/runtime-status.ts'
import { CallFailed } from '../../../shared/http/client.ts'
import { unlessAborted } from '../../../shared/process/unless-aborted.ts'
import { isMissingBundle } from '../../../shared/request/inputs.ts'
import { formatDuration } from '../../../shared/settings/duration.ts'
import { ExecutionError, type ExecutorContext, type StopReason } from '../executor.ts'
import type { AttemptFiles } from './attempt-files.ts'
import type { RuntimeGround } from './ground.ts'
import { failureOf, isOfBarred, isRefusal, refusedDetails, stoppedError } from './outcome.ts'
import type { Placing } from './placing.ts'
import type { Away, PoolMember } from './pool-member.ts'
import { RetryBudget } from './retry-budget.ts'
import { isAway, SUBMISSION_LEASE_MS } from './service.ts'

/** Milliseconds that a stopped attempt waits for an unreachable service. */
export const STOP_AWAY_MS = 10_000

/** Pause in milliseconds after a long poll that returned at once although the task still runs. */
const UNHELD_PAUSE_MS = 200

/** Times that an attempt sends bundles again that were staged and went before its request came. */
const MAX_RESTAGED = 3

interface Attempt {
  readonly id: string
  readonly owner: string | undefined
  readonly placing: Placing
  /** Undefined if no input has to be moved. */
  readonly files: AttemptFiles | undefined
  /** While the attempt has no contact to its service, holds since when and why, by id. */
  readonly away: Map<string, Away>
}

/** The end of an attempt, and the service that ran it. */
export interface RemoteEnd {
  readonly status: TaskStatusResponse
  readonly member: PoolMember
}

export class RemoteAttempt {
  readonly #ground: RuntimeGround
  readonly #attempt: Attempt
  readonly #context: ExecutorContext
  /** Whether the service has the attempt (`taken`), may have it, or cannot have it. */
  #whereabouts: 'taken' | 'maybe' | 'not sent'
  /** The last submission. It may be in progress when the attempt is stopped. */
  #sending: Promise<void> | undefined
  /** The name of its runtime service; undefined before it has a place, and for attempts of earlier versions. */
  #runtime: string | undefined
  /** How often runtime services of that name had been lost before. */
  #losses = 0
  /** Fires when the attempt is stopped, or its runtime service is lost. */
  readonly #over = new AbortController()
  #isLost = false
  /** `performance.now()` of the last submission. One of an earlier process was sent before this attempt was made. */
  #sentMs = performance.now()
  #leave: () => void = () => {}

  constructor(ground: RuntimeGround, attempt: Attempt, context: ExecutorContext) {
    this.#ground = ground
    this.#attempt = attempt
    this.#context = context
    const { handle } = context
    this.#runtime = handle?.runtime
    this.#whereabouts = handle === undefined ? 'not sent' : handle.isTaken ? 'taken' : 'maybe'
  }

  /** The final status of the task. Throws `ExecutionError` if it is unknown, or the attempt is stopped. */
  async run(request: object): Promise<RemoteEnd> {
    const { signal, handle } = this.#context
    const stop = () => this.#over.abort()
    signal.addEventListener('abort', stop, { once: true })
    if (signal.aborted) stop()
    let member: PoolMember | undefined
    try {
      if (handle !== undefined) {
        await this.#context.begin()
        if (signal.aborted) throw stoppedError()
        this.#enter(handle.runtime, handle.losses ?? 0)
        if (this.#over.signal.aborted) throw stoppedError()
        member = this.#ground.pool.get(handle.runtime) ?? (await this.#returned(handle.runtime))
      }
      if (member === undefined || this.#whereabouts !== 'taken') member = await this.#submit(request, member)
      return { status: await this.#follow(member, this.#ground.awayMs, this.#over.signal), member }
    } catch (error) {
      if (signal.aborted) return this.#stop(signal.reason as StopReason)
      if (this.#isLost) throw this.#lost()
      if (this.#whereabouts === 'not sent') this.#context.handOver(undefined)
      throw error
    } finally {
      signal.removeEventListener('abort', stop)
      this.#leave()
      this.#attempt.away.delete(this.#attempt.id)
    }
  }

  /** From here on, a removal of the runtime service knows of the attempt. */
  #enter(runtime: string | undefined, losses: number): void {
    this.#leave()
    this.#runtime = runtime
    this.#losses = losses
    const { pool } = this.#ground
    const leave = pool.enter(runtime, losses, () => {
      this.#isLost = true
      this.#over.abort()
    })
    const unwatch = pool.get(runtime)?.pulse.watch()
    this.#leave = () => {
      leave()
      unwatch?.()
    }
  }

  /** Waits until the runtime service of an earlier run is in the pool again. */
  async #returned(runtime: string | undefined): Promise<PoolMember> {
    const { pool, awayMs } = this.#ground
    const { id, away } = this.#attempt
    const fault = 'it is not in the pool'
    away.set(id, { since: Date.now(), fault })
    const budget = new RetryBudget(awayMs, this.#over.signal)
    while (await budget.pause()) {
      const member = pool.get(runtime)
      if (member === undefined) continue
      away.delete(id)
      this.#enter(runtime, this.#losses)
      return member
    }
    if (this.#over.signal.aborted) throw stoppedError()
    this.#kill()
    const name = runtime ?? DEFAULT_RUNTIME
    const message = `lost touch with the runtime service for ${formatDuration(awayMs)}: ${name}: ${fault}`
    throw new ExecutionError('external_failure', message, { retryable: true })
  }

  /** Sends the attempt to one runtime service after the other, until one has it. `known` may have it already. */
  async #submit(request: object, known: PoolMember | undefined): Promise<PoolMember> {
    const { awayMs } = this.#ground
    const { placing, files } = this.#attempt
    const context = this.#context
    const { signal } = this.#over
    let member = known
    let budget: RetryBudget | undefined
    let restaged = 0
    for (;;) {
      if (signal.aborted) throw stoppedError()
      if (member === undefined) {
        const next = placing.next(signal)
        member = next instanceof Promise ? await next : next
        this.#enter(member.name, this.#ground.pool.lossesOf(member.name))
        this.#recordPlace(member, false)
      }
      const silence = member.pulse.silentFor(awayMs)
      const over = AbortSignal.any([signal, silence.signal])
      try {
        this.#sending = this.#send(member, request, over)
        await unlessAborted(this.#sending, over, stoppedError)
        break
      } catch (error) {
        if (signal.aborted) throw stoppedError()
        if (silence.signal.aborted) throw this.#lostTouch(noAnswer(member), awayMs)
        if (!(error instanceof CallFailed)) throw error
        if (this.#whereabouts === 'not sent') {
          const isMissing = files !== undefined && isMissingBundle(refusedDetails(error))
          if (isMissing && ++restaged <= MAX_RESTAGED) continue
          this.#leave()
          placing.refused(member, error)
          context.waits() // for a place
          context.handOver(undefined)
          member = undefined
          continue
        }
        if (!isAway(error)) throw this.#refusedTouch(error)
        this.#noteAway(member, error)
        budget ??= new RetryBudget(awayMs, signal)
        if (!(await budget.pause())) throw signal.aborted ? stoppedError() : this.#lostTouch(error, awayMs)
      } finally {
        silence.release()
      }
    }
    this.#noteBack(member)
    this.#whereabouts = 'taken'
    this.#recordPlace(member, true)
    return member
  }

  /** Records where the attempt goes, with the hashes of its inputs until it is there. */
  #recordPlace({ name }: PoolMember, isTaken: boolean): void {
    const { id, owner, files } = this.#attempt
    const bundles = isTaken ? undefined : files?.pins
    const losses = this.#losses > 0 && { losses: this.#losses }
    this.#context.handOver({ id, isTaken, owner, runtime: name, ...losses, ...(bundles !== undefined && { bundles }) })
  }

  /** The request as the service gets it, which has all that it needs. */
  async #withFiles(member: PoolMember, request: object, signal: AbortSignal): Promise<object> {
    const { files } = this.#attempt
    if (files === undefined) return request
    if (await files.pin(member, signal)) this.#recordPlace(member, false)
    await files.bring(member, signal)
    return files.requestFor(member, request)
  }

  /**
   * Returns when the service has the task. If an earlier request may have arrived, asks for the task first: a
   * resubmission could be refused for another reason, such as a full queue. After such a refusal the service is asked a
   * second time, once it accepts no earlier request any more: it may have been frozen, with one in its buffers.
   */
  async #send(member: PoolMember, request: object, signal: AbortSignal): Promise<void> {
    const { service } = member
    const { pool } = this.#ground
    const { id } = this.#attempt
    const context = this.#context
    const mayBeThere = this.#whereabouts === 'maybe'
    if (mayBeThere && (await service.has(id, context.traceId))) return
    const isOpen = !mayBeThere || (!member.isDraining && pool.has(member))
    const body = isOpen ? await this.#withFiles(member, request, signal) : request
    const earlierMs = this.#sentMs
    if (signal.aborted) throw stoppedError()
    this.#whereabouts = 'maybe'
    let refusal: CallFailed | undefined
    try {
      if (!isOpen) refusal = new CallFailed(...NO_NEW_ONES)
      else {
        const onSend = () => {
          this.#sentMs = performance.now()
        }
        await service.submit(body, context.traceId, {
          ...{ begin: () => context.begin(), controlPort: pool.controlPort, signal, onSend },
        })
      }
    } catch (error) {
      if (!(error instanceof CallFailed)) throw error
      if (error.statusCode === 409 && !isOfBarred(error)) return
      const isUnsent = !error.wasSent && !mayBeThere
      if (!isRefusal(error) && !isUnsent) throw error
      refusal = error
    }
    if (refusal === undefined) return
    if (mayBeThere) {
      await pause(earlierMs + SUBMISSION_LEASE_MS - performance.now(), signal)
      if (await service.has(id, context.traceId)) return
      if (signal.aborted) throw stoppedError()
    }
    this.#whereabouts = 'not sent'
    throw refusal
  }

  /** Waits for the end of the task, without a limit of time while its service answers. */
  async #follow(member: PoolMember, awayMs: number, stop?: AbortSignal): Promise<TaskStatusResponse> {
    const silence = member.pulse.silentFor(awayMs)
    const signal = stop === undefined ? silence.signal : AbortSignal.any([stop, silence.signal])
    try {
      return await this.#askUntilEnd(member, awayMs, signal)
    } catch (error) {
      throw silence.signal.aborted && !stop?.aborted ? this.#lostTouch(noAnswer(member), awayMs) : error
    } finally {
      silence.release()
    }
  }

  async #askUntilEnd(member: PoolMember, awayMs: number, signal: AbortSignal): Promise<TaskStatusResponse> {
    const { id } = this.#attempt
    const context = this.#context
    const { service } = member
    const { traceId } = context
    let awaitsStart = context.isTimed ? undefined : false
    let budget: RetryBudget | undefined
    // After a restart the task may have ended already. If not, its timeout must not wait for a long poll.
    let isFirstLook = context.handle !== undefined
    for (;;) {
      const askedAt = performance.now()
      const isLook = isFirstLook || budget !== undefined // a long poll would notice the return of the service late
      try {
        if (awaitsStart === undefined) {
          awaitsStart = await service.tellsStart(traceId, signal)
          if (!awaitsStart && !isFirstLook) context.works(Date.now())
        }
        let status: TaskStatusResponse
        if (isLook) status = await service.look(id, traceId, signal)
        else if (awaitsStart) status = await service.waitForStart(id, traceId, signal)
        else status = await service.waitFor(id, traceId, signal)
        this.#noteBack(member)
        budget = undefined
        if (hasEnded(status.status)) return status
        const isStart = awaitsStart && status.status === 'running'
        if (isStart) {
          awaitsStart = false
          context.works(Date.parse(status.started_at ?? '') || Date.now())
        } else if (awaitsStart) context.waits()
        else if (isFirstLook) context.goesOn()
        // Do not flood a service that ignores wait_ms, or whose proxy cuts long polls at once and lets looks through.
        const isUnheld = !isFirstLook && !isStart && performance.now() - askedAt < UNHELD_PAUSE_MS
        isFirstLook = false
        if (isUnheld) await pause(UNHELD_PAUSE_MS, signal)
      } catch (error) {
        if (signal.aborted) throw stoppedError()
        if (!isAway(error)) throw this.#forgotten(member, error as CallFailed)
        if (budget === undefined) budget = new RetryBudget(awayMs, signal)
        else this.#noteAway(member, error) // one long poll that a proxy has cut is no absence
        if (!(await budget.pause())) throw signal.aborted ? stoppedError() : this.#lostTouch(error, awayMs)
      }
    }
  }

  /**
   * Kills the task; leaves it running if only control stops. If the service does not answer, returns once no submission can
   * be accepted any more.
   */
  async #stop(reason: StopReason): Promise<RemoteEnd> {
    if (reason === 'interrupted' || this.#whereabouts === 'not sent') throw stoppedError()
    const { id, owner } = this.#attempt
    const member = this.#ground.pool.get(this.#runtime)
    if (member === undefined) {
      this.#kill()
      await this.#lapsed()
      throw stoppedError()
    }
    const budget = new RetryBudget(STOP_AWAY_MS)
    let hasWaited = false
    let wasThere: boolean | undefined
    while (wasThere === undefined) {
      try {
        wasThere = await member.service.kill(id, owner, this.#context.traceId, budget.leftMs)
      } catch (error) {
        if (isAway(error) && !this.#isLost && (await budget.pause())) continue
        const { statusCode } = error as CallFailed
        const isUnknown = statusCode === 404
        if (isUnknown && this.#whereabouts !== 'taken' && !hasWaited) {
          hasWaited = true
          await this.#sent()
          continue
        }
        if (!isUnknown || this.#whereabouts !== 'taken') {
          this.#kill() // a request in progress may arrive later
          this.#killOnArrival()
          await this.#lapsed()
        }
        throw failureOf(error as CallFailed)
      }
    }
    if (!wasThere) throw stoppedError() // and it never will be
    return { status: await this.#follow(member, STOP_AWAY_MS), member }
  }

  /** Resolves once the service accepts no submission that was sent. */
  async #lapsed(): Promise<void> {
    if (this.#whereabouts !== 'taken') await pause(this.#sentMs + SUBMISSION_LEASE_MS - performance.now(), undefined)
  }

  /**
   * Waits for a submission in progress to a service of an earlier version, where a kill that overtakes it finds nothing and
   * bars nothing.
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

  #kill(isTaken = this.#whereabouts === 'taken'): void {
    const { id, owner } = this.#attempt
    this.#ground.orphans.abandon({ id, owner, isTaken, runtime: this.#runtime })
  }

  /** Kills a task whose submission arrives after `Orphans` has stopped looking for it. */
  #killOnArrival(): void {
    if (this.#whereabouts === 'taken') return
    this.#sending?.then(
      () => this.#kill(true),
      () => this.#whereabouts === 'maybe' && this.#kill(false),
    )
  }

  #noteAway(member: PoolMember, { message, fault }: CallFailed): void {
    const { id, away } = this.#attempt
    member.noteAway(fault)
    const since = away.get(id)?.since
    away.set(id, { since: since ?? Date.now(), fault })
    if (since !== undefined) return
    const fields = { handle_id: id, runtime: member.name, cause: message }
    this.#context.log.warn('the runtime service is away, waiting for it', fields)
  }

  #noteBack(member: PoolMember): void {
    const { id, away } = this.#attempt
    member.pulse.answered()
    if (!away.delete(id)) return
    this.#context.log.info('the runtime service is back', { handle_id: id, runtime: member.name })
  }

  #lostTouch(error: CallFailed, awayMs: number): ExecutionError {
    if (this.#whereabouts !== 'not sent') this.#kill()
    const message = `lost touch with the runtime service for ${formatDuration(awayMs)}: ${error.message}`
    return new ExecutionError('external_failure', message, { cause: error, retryable: true })
  }

  /** The error of an attempt that may be there, but is not told. */
  #refusedTouch(error: CallFailed): ExecutionError {
    this.#kill(false)
    return failureOf(error)
  }

  /** The error of an attempt whose runtime service was removed for good. It is killed there if that comes back. */
  #lost(): ExecutionError {
    if (this.#whereabouts !== 'not sent') this.#kill()
    const message = `runtime ${this.#runtime} is lost: it was removed for good, and what became of the attempt is unknown`
    return new ExecutionError('external_failure', message, { retryable: true })
  }

  /** The error for a reachable service that does not return the status. */
  #forgotten({ service }: PoolMember, error: CallFailed): ExecutionError {
    if (error.statusCode !== 404) {
      this.#kill(true)
      return failureOf(error)
    }
    const message = `the runtime service at ${service.url} does not know task ${this.#attempt.id} any more: what became of it is unknown`
    return new ExecutionError('not_found', message, { cause: error, source: 'runtime' })
  }
}

/** The refusal in place of a runtime service that is to get no new tasks. */
const NO_NEW_ONES = [
  'the runtime service takes no new tasks',
  { statusCode: 503, fault: 'it takes no new tasks' },
] as const

const noAnswer = ({ service }: PoolMember) =>
  new CallFailed(`cannot reach the runtime service at ${service.url}: it does not answer`, { fault: 'no answer' })

/** Sleeps. Throws when `signal` fires. */
async function pause(ms: number, signal: AbortSignal | undefined): Promise<void> {
  if (ms <= 0) return
  await (signal === undefined ? Bun.sleep(ms) : unlessAborted(Bun.sleep(ms), signal, stoppedError))
}
