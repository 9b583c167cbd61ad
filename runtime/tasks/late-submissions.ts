/**
 * Submissions that must not be accepted any more: their callers gave them up, but the requests may still be on their way,
 * for example in the socket of a service that was stopped.
 *
 * A submission may name a time until which it may be accepted, as milliseconds after a reading of our clock. A kill may bar
 * an id that is unknown. Both are in memory only: a reading of an earlier process is refused, too. Callers give submissions
 * some seconds, so a bar holds long enough in any case.
 */
import type { BarredDetails, LateDetails } from '../../shared/contract/submission-lease.ts'
import { invalidInput, Refusal } from '../refusal.ts'

/** Milliseconds that a bar holds. */
export const BAR_MS = 60_000

/** Barred ids. Further kills bar nothing, and say so. */
export const MAX_BARRED_IDS = 100_000

const NOT_AFTER = /^([0-9a-f]{8})\.(\d{1,16})\.(\d{1,16})\+(\d{1,16})$/

interface Times {
  /** Milliseconds of a clock that nobody sets, and that may stand still while the machine is suspended. */
  readonly monotonicMs: number
  /** Milliseconds since 1970. */
  readonly wallMs: number
}

const now = (): Times => ({ monotonicMs: Math.floor(performance.now()), wallMs: Date.now() })

export class LateSubmissions {
  /** Names this process. */
  readonly #instance = crypto.randomUUID().slice(0, 8)
  readonly #now: () => Times
  /** By id: when its bar ends, on the monotonic clock. In that order. */
  readonly #barred = new Map<string, number>()

  constructor(readTimes = now) {
    this.#now = readTimes
  }

  /** A reading of the clock. Callers send it back as it is. */
  get clock(): string {
    const { monotonicMs, wallMs } = this.#now()
    return `${this.#instance}.${monotonicMs}.${wallMs}`
  }

  /**
   * Throws 409 if a submission is too late or its id is barred, and 400 if `notAfter` is no time. It is too late as soon as
   * one of the two clocks says so.
   */
  check(taskId: string, notAfter: string | undefined): void {
    this.#forgetOld()
    if (this.#barred.has(taskId)) throw refused(`task ${taskId} was killed before its submission came`, 'barred')
    if (notAfter === undefined) return
    const [, instance, monotonic, wall, ms] = NOT_AFTER.exec(notAfter) ?? []
    if (instance === undefined) {
      throw invalidInput('invalid X-Service-Not-After: expected CLOCK+MILLISECONDS, with CLOCK from GET /healthz')
    }
    const { monotonicMs, wallMs } = this.#now()
    const passedMs = Math.max(monotonicMs - Number(monotonic), wallMs - Number(wall))
    if (instance === this.#instance && passedMs <= Number(ms)) return
    throw refused(`the submission of task ${taskId} came too late: its X-Service-Not-After is over`, 'late')
  }

  /** Refuses submissions of an unknown id for `BAR_MS`. False if there are too many. */
  bar(taskId: string): boolean {
    this.#forgetOld()
    this.#barred.delete(taskId)
    if (this.#barred.size >= MAX_BARRED_IDS) return false
    this.#barred.set(taskId, this.#now().monotonicMs + BAR_MS)
    return true
  }

  #forgetOld(): void {
    const { monotonicMs } = this.#now()
    for (const [id, until] of this.#barred) {
      if (until > monotonicMs) return
      this.#barred.delete(id)
    }
  }
}

const refused = (message: string, refused_as: LateDetails['refused_as']) =>
  new Refusal('conflict', message, { refused_as } satisfies LateDetails)

/** The answer to a kill that bars its id. */
export const barredTask = (taskId: string) =>
  new Refusal('not_found', `task not found: ${taskId}`, { barred: true } satisfies BarredDetails)
