/**
 * The inputs of one attempt that are on several runtime services, or on another one than the attempt.
 *
 * The hash of the bundle of each input that moves is determined once and recorded with the place of the attempt, so after a
 * restart the attempt gets the same content or fails. While a runtime service that has files is away, the attempt waits for it.
 */

import { CallFailed } from '../../../shared/http/client.ts'
import { unlessAborted } from '../../../shared/process/unless-aborted.ts'
import { missingTaskIn, type TaskFiles } from '../../../shared/request/inputs.ts'
import { shortened } from '../../../shared/request/text.ts'
import { formatDuration } from '../../../shared/settings/duration.ts'
import { fits, type PlacementRule } from '../../rules/placement.ts'
import { ExecutionError, type ExecutorContext } from '../executor.ts'
import { FilesChanged, type PlacedFiles, SourceFailed } from './bundle-relay.ts'
import type { MoveProgress } from './file-moves.ts'
import type { RuntimeGround } from './ground.ts'
import { failureOf, lacksRoute, refusedDetails, SOURCE, stoppedError } from './outcome.ts'
import { awayText, type PoolMember } from './pool-member.ts'
import { RetryBudget } from './retry-budget.ts'
import { isAway } from './service.ts'

/** An input, and the name of the runtime service that has its files. */
export interface AttemptInput extends TaskFiles {
  readonly path: string
  readonly runtime: string
}

/** Hashes of bundles by the path of the input. */
export type Pins = Readonly<Record<string, string>>

interface AttemptInputs {
  /** At least one. */
  readonly inputs: readonly AttemptInput[]
  /** The tenant of the attempt. Its inputs must come from tasks of the same tenant. */
  readonly tenant: string | undefined
}

export class AttemptFiles {
  readonly #ground: RuntimeGround
  readonly #inputs: readonly AttemptInput[]
  readonly #tenant: string | undefined
  readonly #context: ExecutorContext
  readonly #pins: Map<string, string>
  /** What the attempt waits for, in words. */
  #waiting: (() => string) | undefined

  constructor(ground: RuntimeGround, { inputs, tenant }: AttemptInputs, context: ExecutorContext) {
    this.#ground = ground
    this.#inputs = inputs
    this.#tenant = tenant
    this.#context = context
    this.#pins = new Map(Object.entries(context.handle?.bundles ?? {})) // those of before a restart
  }

  /** Undefined if nothing is moved, and nothing is waited for. */
  get waiting(): string | undefined {
    return this.#waiting?.()
  }

  get pins(): Pins | undefined {
    return this.#pins.size === 0 ? undefined : Object.fromEntries(this.#pins)
  }

  /**
   * Where the attempt may run: where most bytes of its inputs are, unless `placement` or a drain keeps it away from all of
   * them. Throws `ExecutionError` if a runtime service with inputs was removed.
   */
  async place(placement: PlacementRule, signal: AbortSignal): Promise<PlacementRule> {
    const members = new Set(this.#inputs.map((input) => this.#memberOf(input)))
    const open = [...members].filter((member) => fits(member, placement) && !member.isDraining)
    if (open.length === 0) return placement
    if (members.size === 1 || open.length === 1) return { runtime: open[0]!.name }
    const bytes = new Map(open.map(({ name }) => [name, 0]))
    for (const input of this.#inputs) {
      const known = bytes.get(input.runtime)
      if (known === undefined) continue
      const { moves } = this.#ground
      const { traceId } = this.#context
      const standBy = () => this.#context.standBy()
      const size = await this.#asking(input, signal, (from) => moves.size(from, traceId, signal), standBy)
      bytes.set(input.runtime, known + size)
    }
    const [[runtime]] = [...bytes].toSorted(([, a], [, b]) => b - a) as [[string, number]]
    return { runtime }
  }

  /** Determines the hashes of what is to be moved to `target`. Returns whether there are new ones. */
  async pin(target: PoolMember, signal: AbortSignal): Promise<boolean> {
    const { moves } = this.#ground
    const { traceId } = this.#context
    const unpinned = this.#elsewhere(target).filter(({ path }) => !this.#pins.has(path))
    for (const input of unpinned) {
      const at = `inputs.${shortened(input.path)}`
      this.#waiting = () => `runtime ${input.runtime} reads ${at}, which moves to runtime ${target.name}`
      const digest = await this.#asking(input, signal, (from) => moves.digest(from, traceId))
      if (digest.tenant !== this.#tenant) throw inputFault(`${at}: task ${input.task_id} belongs to another tenant`)
      this.#pins.set(input.path, digest.sha256)
    }
    return unpinned.length > 0
  }

  /** Brings to `target` what is elsewhere. Throws `ExecutionError`, or the `CallFailed` of the target. */
  async bring(target: PoolMember, signal: AbortSignal): Promise<void> {
    const { moves } = this.#ground
    const { traceId } = this.#context
    for (const input of this.#elsewhere(target)) {
      const sha256 = this.#pins.get(input.path)!
      try {
        if (await target.service.hasStaged(sha256, traceId, signal)) continue
        const onBegin = (progress: MoveProgress) => {
          this.#waiting = () => movingText(input, target.name, progress)
        }
        await this.#asking(input, signal, (from) => moves.move(from, target, sha256, { traceId, signal, onBegin }))
      } catch (error) {
        throw targetFault(target, error)
      } finally {
        this.#waiting = undefined
      }
    }
  }

  /** The request as `target` gets it: what was moved there is named by its hash. */
  requestFor(target: PoolMember, request: object): object {
    const { inputs } = request as { inputs?: Readonly<Record<string, object>> }
    const moved = this.#elsewhere(target).map(({ path }) => {
      const { task_id: _, file: __, ...expected } = inputs![path] as Partial<TaskFiles>
      return [path, { staged: this.#pins.get(path), ...expected }]
    })
    return { ...request, inputs: { ...inputs, ...Object.fromEntries(moved) } }
  }

  #elsewhere(target: PoolMember): readonly AttemptInput[] {
    return this.#inputs.filter(({ runtime }) => runtime !== target.name)
  }

  #memberOf({ path, runtime }: AttemptInput): PoolMember {
    const member = this.#ground.pool.get(runtime)
    if (member !== undefined) return member
    throw new ExecutionError(
      'invalid_input',
      `inputs.${shortened(path)} is on runtime ${runtime}, which was removed: run the task that made it again`,
      { retryable: false, isFinal: true },
    )
  }

  /** Asks the runtime service that has an input, and waits while it is away. Throws `ExecutionError`. */
  async #asking<T>(
    input: AttemptInput,
    signal: AbortSignal,
    ask: (from: PlacedFiles) => Promise<T>,
    standBy?: ExecutorContext['standBy'],
  ): Promise<T> {
    const { awayMs } = this.#ground
    const at = `inputs.${shortened(input.path)}`
    let budget: RetryBudget | undefined
    let resume: (() => Promise<void>) | undefined
    for (;;) {
      if (signal.aborted) throw stoppedError()
      const member = this.#memberOf(input)
      try {
        const answer = await unlessAborted(ask({ member, files: input }), signal, stoppedError)
        if (budget !== undefined) member.noteBack()
        if (resume !== undefined) {
          this.#waiting = () => 'waiting for a slot (--max-concurrency)'
          await unlessAborted(resume(), signal, stoppedError)
        }
        this.#waiting = undefined
        return answer
      } catch (error) {
        if (error instanceof FilesChanged) {
          throw inputFault(`${at}: ${shortened(input.file)} of task ${input.task_id} was changed`)
        }
        if (signal.aborted || !(error instanceof SourceFailed)) throw error
        const { cause, member: failed } = error
        if (!isAway(cause)) {
          if (failed !== member) continue // the same content from elsewhere was on its way
          throw sourceFault(input, cause)
        }
        const away = failed.noteAway(cause.fault)
        this.#waiting = () => `${awayText(failed.name, away)}: ${at} is there`
        budget ??= new RetryBudget(awayMs, signal)
        resume ??= standBy?.()
        if (await budget.pause()) continue
        if (signal.aborted) throw stoppedError()
        const message = `lost touch with runtime ${member.name}, which has ${at}, for ${formatDuration(awayMs)}: ${cause.message}`
        throw new ExecutionError('external_failure', message, { cause, retryable: true })
      }
    }
  }
}

const MIB = 1024 ** 2

const inputFault = (message: string) => new ExecutionError('invalid_input', message, { retryable: false })

/** `moving inputs.lib from runtime a to runtime b: 12 MiB` */
function movingText({ path, runtime }: AttemptInput, target: string, { isWaiting, sentBytes }: MoveProgress): string {
  const what = `inputs.${shortened(path)} from runtime ${runtime} to runtime ${target}`
  return isWaiting
    ? `waiting to move ${what}: other moves come first`
    : `moving ${what}: ${Math.floor(sentBytes / MIB)} MiB`
}

/** The failure of an attempt whose input cannot be had where it is. */
function sourceFault({ path, runtime }: AttemptInput, error: SourceFailed['cause']): ExecutionError {
  const at = `inputs.${shortened(path)}: `
  if (lacksRoute(error)) return tooOld(runtime, 'hand files to')
  const details = refusedDetails(error)
  if (missingTaskIn(details) === undefined) return failureOf(error, at)
  const { message } = failureOf(error, at)
  return new ExecutionError('invalid_input', message, { cause: error, source: SOURCE, retryable: false, details })
}

/** The target may be away or full; a call that it does not know means that it is too old. */
function targetFault({ name }: PoolMember, error: unknown): unknown {
  return error instanceof CallFailed && lacksRoute(error) ? tooOld(name, 'take files of') : error
}

const tooOld = (runtime: string, what: string) =>
  new ExecutionError(
    'external_failure',
    `runtime ${runtime} cannot ${what} another one: its version is too old (upgrade taskmill-runtime there, or place the tasks on one runtime)`,
    { retryable: false },
  )
