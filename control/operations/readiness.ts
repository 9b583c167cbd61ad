/** Decides whether the service accepts graphs now, for submissions, /health and /readyz. */
import { messageOf, ServiceError } from '../../shared/contract/errors.ts'
import type { Keeper } from '../log/keeper.ts'
import type { Retention } from '../task/retention.ts'

export interface ReadinessOptions {
  /** Whether the service is stopping. */
  readonly isDraining: () => boolean
  /** Why the scheduler has stopped; undefined while it works. */
  readonly schedulerFault: () => string | undefined
  readonly keeper: Pick<Keeper, 'assertAccepting' | 'probe'>
  readonly retention: Pick<Retention, 'ensureRoom'>
}

export class Readiness {
  readonly #options: ReadinessOptions

  constructor(options: ReadinessOptions) {
    this.#options = options
  }

  /** Throws 503 if the service accepts no graph of any size. Uses only known facts, without a write to the disk. */
  ensure(): void {
    const { isDraining, schedulerFault, keeper } = this.#options
    const fault = schedulerFault() // comes first, because it ends the service
    if (fault !== undefined) throw new ServiceError(503, fault)
    if (isDraining()) throw new ServiceError(503, 'the service is stopping and accepts no new graphs')
    keeper.assertAccepting()
  }

  /** Why the service would refuse a graph of one task; undefined if it would accept one. Probes the disk. */
  fault(): string | undefined {
    try {
      this.ensure()
      this.#options.retention.ensureRoom(1)
      this.#options.keeper.probe()
      return undefined
    } catch (error) {
      return messageOf((error as Error).cause ?? error)
    }
  }
}
