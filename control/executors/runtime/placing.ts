/**
 * Finds the runtime service for one attempt: of two random ones that fit, the one with more left. One that is full,
 * refuses or is away is followed by the next. While none may take the attempt, it waits, and says why.
 */

import type { CallFailed } from '../../../shared/http/client.ts'
import { unlessAborted } from '../../../shared/process/unless-aborted.ts'
import { formatDuration } from '../../../shared/settings/duration.ts'
import { fittingRuntimes, isBetter, type Need, namesText, type PlacementRule } from '../../rules/placement.ts'
import { ExecutionError, type ExecutorContext } from '../executor.ts'
import type { RuntimeGround } from './ground.ts'
import { failureOf, stoppedError } from './outcome.ts'
import { awayText, type PoolMember } from './pool-member.ts'
import { RetryBudget } from './retry-budget.ts'
import { isAway } from './service.ts'

/** Milliseconds for a picture of the resources of one runtime service if another one has answered. */
const PICTURE_MS = 250

/** What an attempt asks of its place. */
interface Wanted {
  readonly rule: PlacementRule
  readonly need: Need
}

interface Refusal {
  readonly member: PoolMember
  readonly failure: ExecutionError
}

export class Placing {
  readonly #ground: RuntimeGround
  readonly #wanted: Wanted
  readonly #context: ExecutorContext
  /** The runtime services of this round that did not take the attempt. */
  readonly #tried = new Set<PoolMember>()
  #refusals: Refusal[] = []
  /** The last call that found a runtime service away. */
  #lastAway: CallFailed | undefined
  #budget: RetryBudget | undefined
  /** Waits for a slot, if the attempt has given its own back. */
  #resume: (() => Promise<void>) | undefined
  /** Why the attempt has no place yet. */
  waiting: string | undefined

  constructor(ground: RuntimeGround, wanted: Wanted, context: ExecutorContext) {
    this.#ground = ground
    this.#wanted = wanted
    this.#context = context
  }

  /** The next one to send the attempt to. Throws `ExecutionError` once none will take it. */
  next(signal: AbortSignal): PoolMember | Promise<PoolMember> {
    const found = this.#fitting()
    const isSettled = this.#resume === undefined
    const only = isSettled && 'open' in found && found.open.length === 1 ? found.open[0] : undefined
    if (only !== undefined && !this.#tried.has(only)) return this.#placedAt(only)
    return this.#choose(signal)
  }

  /** Notes that `member` does not have the attempt. Throws `ExecutionError` if no other one would take it either. */
  refused(member: PoolMember, error: CallFailed): void {
    const { pool, isExpected } = this.#ground
    this.#tried.add(member)
    if (isAway(error)) {
      member.noteAway(error.fault)
      this.#lastAway = error
      if (pool.isLone && !(isExpected(member) && error.statusCode === 0)) throw failureOf(error)
      return
    }
    const failure = failureOf(error, pool.isLone ? '' : `runtime ${member.name}: `)
    if (failure.code === 'invalid_input') throw failure
    this.#refusals.push({ member, failure })
  }

  #fitting() {
    return fittingRuntimes(this.#ground.pool.members, this.#wanted.rule)
  }

  #placedAt(member: PoolMember): PoolMember {
    member.notePlaced(this.#wanted.need)
    this.waiting = undefined
    return member
  }

  async #choose(signal: AbortSignal): Promise<PoolMember> {
    const { pool } = this.#ground
    for (;;) {
      if (signal.aborted) throw stoppedError()
      const found = this.#fitting()
      if ('waiting' in found) {
        this.waiting = found.waiting
        this.#tried.clear()
        this.#refusals = []
        this.#resume ??= this.#context.standBy()
        await pool.changed(signal)
        continue
      }
      const left = found.open.filter((member) => !this.#tried.has(member))
      if (left.length === 0) await this.#roundOver(found.open, signal)
      else {
        const pair = this.#twoOf(left)
        const ready = found.open.length === 1 ? pair : await this.#readyOf(pair)
        if (this.#resume !== undefined && ready.length > 0) {
          await this.#resumed(this.#resume, signal)
          continue // the pool may have changed meanwhile
        }
        const chosen = this.#better(ready.filter((member) => pool.has(member) && !member.isDraining))
        if (chosen !== undefined) return this.#placedAt(chosen)
      }
    }
  }

  async #resumed(resume: () => Promise<void>, signal: AbortSignal): Promise<void> {
    this.waiting = 'waiting for a slot (--max-concurrency)'
    await unlessAborted(resume(), signal, stoppedError)
    this.#resume = undefined
  }

  /** The members that answer. Members that are away count as tried. */
  async #readyOf(pair: readonly PoolMember[]): Promise<readonly PoolMember[]> {
    const looks = await looksAt(pair)
    for (const [i, isReady] of looks.entries()) if (isReady === false) this.#tried.add(pair[i]!)
    return pair.filter((_, i) => looks[i])
  }

  /** Compares and places in one turn, so that many tasks at once see what the others have taken. */
  #better([first, second]: readonly PoolMember[]): PoolMember | undefined {
    if (first?.offer === undefined || second?.offer === undefined) return first
    return isBetter(second.offer, first.offer, this.#wanted.need) ? second : first
  }

  #twoOf(members: readonly PoolMember[]): readonly PoolMember[] {
    if (members.length === 1) return members
    const first = Math.floor(Math.random() * members.length)
    const second = (first + 1 + Math.floor(Math.random() * (members.length - 1))) % members.length
    return [members[first]!, members[second]!]
  }

  /** All that fit were tried. Waits for those that are away. Throws if there are none, or after a limit. */
  async #roundOver(members: readonly PoolMember[], signal: AbortSignal): Promise<void> {
    const { awayMs } = this.#ground
    const refusal = this.#refusals.find(({ failure }) => failure.retryable) ?? this.#refusals[0]
    const away = members.filter((member) => !this.#refusals.some((each) => each.member === member))
    if (refusal !== undefined && away.length === 0) throw refusal.failure
    this.#budget ??= new RetryBudget(awayMs, signal)
    this.#resume ??= this.#context.standBy()
    this.waiting = awayTextOf(away)
    if (!(await this.#budget.pause())) {
      if (signal.aborted) throw stoppedError()
      if (refusal !== undefined) throw refusal.failure
      const cause = this.#lastAway
      const message = `lost touch with the runtime service for ${formatDuration(awayMs)}: ${cause?.message ?? this.waiting}`
      throw new ExecutionError('external_failure', message, { retryable: true, ...(cause !== undefined && { cause }) })
    }
    this.#tried.clear()
    this.#refusals = []
  }
}

/** The text of the one that is away; of several, that of the first and the names of the others. */
function awayTextOf(members: readonly PoolMember[]): string {
  const [first, ...others] = members
  const away = first!.away
  const text = away === undefined ? `runtime ${first!.name} does not answer` : awayText(first!.name, away)
  return others.length === 0 ? text : `${text}, and so are ${namesText(others.map(({ name }) => name))}`
}

/** Whether each answers. Undefined for one that has not in time while another one has. */
async function looksAt(pair: readonly PoolMember[]): Promise<readonly (boolean | undefined)[]> {
  const looks = pair.map((member) => member.look())
  const { promise: late, resolve } = Promise.withResolvers<undefined>()
  const timer = setTimeout(resolve, PICTURE_MS, undefined)
  const inTime = await Promise.all(looks.map((look) => Promise.race([look, late])))
  clearTimeout(timer)
  return inTime.includes(true) ? inTime : Promise.all(looks)
}
