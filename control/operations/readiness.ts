/** Decides whether the service would accept a graph now, for POST, /health and /readyz alike. */
import { messageOf, ServiceError } from '../../shared/errors.ts'
import type { Persistence } from '../journal/persistence.ts'
import type { Retention } from '../store/retention.ts'

export interface ReadinessOptions {
  /** True once the service is stopping. */
  readonly isDraining: () => boolean
  /** Why the scheduler starts nothing any more; undefined while it works. */
  readonly schedulerFault: () => string | undefined
  readonly persistence: Pick<Persistence, 'assertAccepting' | 'probe'>
  readonly retention: Pick<Retention, 'ensureRoom'>
}

export class Readiness {
  readonly #options: ReadinessOptions

  constructor(options: ReadinessOptions) {
    this.#options = options
  }

  /** Throws 503 when no graph can be accepted, whatever its size. Cheap: it goes by what is known and asks no disk. */
  ensure(): void {
    const { isDraining, schedulerFault, persistence } = this.#options
    const fault = schedulerFault() // first: the service stops for it
    if (fault !== undefined) throw new ServiceError(503, fault)
    if (isDraining()) throw new ServiceError(503, 'the service is stopping and accepts no new graphs')
    persistence.assertAccepting()
  }

  /** Why a graph of one task would be refused now; undefined when it would be accepted. Asks the disk. */
  fault(): string | undefined {
    try {
      this.ensure()
      this.#options.retention.ensureRoom(1)
      this.#options.persistence.probe()
      return undefined
    } catch (error) {
      return messageOf((error as Error).cause ?? error)
    }
  }
}
