/** A runtime service of the pool: its client, its logs and queue, what it has left, and whether it takes new tasks. */
import type { RuntimeLabels } from '../../../shared/contract/runtime-names.ts'
import { CallFailed } from '../../../shared/http/client.ts'
import type { RuntimeEntry } from '../../../shared/settings/runtime-entry.ts'
import { isoTime } from '../../../shared/text/iso-time.ts'
import type { Pause } from '../../rules/pause.ts'
import { type Need, type Offer, type PlaceableRuntime, sumOf, without } from '../../rules/placement.ts'
import { Pulse } from './pulse.ts'
import { RemoteCapacity, type RemoteCapacityNow } from './remote-capacity.ts'
import { RemoteLogs } from './remote-logs.ts'
import { RemoteQueue } from './remote-queue.ts'
import { RuntimeService, type RuntimeServiceOptions } from './service.ts'

/** Since when a runtime service does not answer (milliseconds since 1970), and why, in a few words. */
export interface Away {
  readonly since: number
  readonly fault: string
}

const NOTHING: Need = { task_slots: 0 }

export class PoolMember implements PlaceableRuntime {
  readonly name: string
  readonly service: RuntimeService
  readonly logs: RemoteLogs
  readonly queue: RemoteQueue
  readonly capacity: RemoteCapacity
  readonly pulse: Pulse
  labels: RuntimeLabels
  readonly #url: string
  #token: string | undefined
  readonly #commonToken: string | undefined
  /** Whether `--runtime-url` names it. */
  readonly isConfigured: boolean
  /** Undefined unless it takes no new tasks. */
  drain: Pause | undefined = undefined
  /** Undefined while calls reach it. */
  #away: Away | undefined
  /** The last picture of its resources, and the needs of tasks that were placed here since it was asked for. */
  #picture: Extract<RemoteCapacityNow, { state: 'ready' }> | undefined
  #placed: Need = NOTHING
  /** The picture that is asked for, and the needs of tasks that were placed here meanwhile. */
  #asked: Promise<RemoteCapacityNow> | undefined
  #placedMeanwhile: Need = NOTHING

  get isDraining(): boolean {
    return this.drain !== undefined
  }

  constructor(
    { name, url, labels, token }: RuntimeEntry,
    { token: commonToken, keeper }: Pick<RuntimeServiceOptions, 'token' | 'keeper'>,
    isConfigured: boolean,
  ) {
    this.name = name
    this.labels = labels
    this.isConfigured = isConfigured
    this.#url = url
    this.#token = token
    this.#commonToken = commonToken
    this.service = new RuntimeService({ url, keeper, ...this.#authority })
    this.logs = new RemoteLogs(this.service)
    this.queue = new RemoteQueue(this.service)
    this.capacity = new RemoteCapacity(this.service)
    this.pulse = new Pulse(this.service, (fault) => (fault === undefined ? this.noteBack() : this.noteAway(fault)))
  }

  /** As it was added, with user and password of its address. */
  get entry(): RuntimeEntry {
    const { name, labels } = this
    return { name, url: this.#url, labels, token: this.#token }
  }

  /** Sets the token of further calls, as a `RuntimeEntry` has it. */
  authorize(token: string | undefined): void {
    this.#token = token
    this.service.authorize(this.#authority)
  }

  /**
   * An added service gets only the token given with it. With the common token, whoever may add a service would learn that of
   * all others.
   */
  get #authority(): Pick<RuntimeServiceOptions, 'token' | 'tokenSource'> {
    if (this.#token === undefined) return { token: this.#commonToken }
    const tokenSource = this.isConfigured ? '--runtime-token-file' : 'its token with taskmill runtimes add --token-file'
    return { token: this.#token, tokenSource }
  }

  /** The base URL, without a slash at its end, and without user and password. */
  get url(): string {
    return this.service.url
  }

  get away(): Away | undefined {
    return this.#away
  }

  /** Notes that a call failed because the service is away. Keeps the time of the first one. */
  noteAway(fault: string): Away {
    this.#away = { since: this.#away?.since ?? Date.now(), fault }
    return this.#away
  }

  noteBack(): void {
    this.#away = undefined
  }

  /** Looks at its resources, unless that was within the last second. False if it is away. Never rejects. */
  async look(): Promise<boolean> {
    const asked = this.capacity.look()
    if (asked !== this.#asked) this.#placedMeanwhile = NOTHING
    this.#asked = asked
    const now = await asked
    if (now.state === 'away') {
      this.noteAway(now.fault)
      return false
    }
    this.noteBack()
    if (now !== this.#picture) this.#placed = this.#placedMeanwhile
    this.#picture = now
    return true
  }

  /** What it had left at the last look, less what was placed here since. Undefined before the first look. */
  get offer(): Offer | undefined {
    if (this.#picture === undefined) return undefined
    const { capacity, reserved, queued } = this.#picture
    return { capacity, queued, available: without(without(capacity, reserved), this.#placed) }
  }

  /** Notes that a task is placed here, which the next picture of its resources has. */
  notePlaced(need: Need): void {
    this.#placed = sumOf(this.#placed, need)
    this.#placedMeanwhile = sumOf(this.#placedMeanwhile, need)
  }
}

/** `runtime gpu-1 is away since 2026-01-01T00:00:00.000Z (connection refused)` */
export const awayText = (name: string, { since, fault }: Away): string =>
  `runtime ${name} is away since ${isoTime(since)} (${fault})`

/** Why a call did not get through, in a few words. */
export const faultOf = (error: unknown): string => (error instanceof CallFailed ? error.fault : String(error))
