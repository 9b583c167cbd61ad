/** Whether a graph would be taken in now: the one place that POST, /health and /readyz ask. */
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

  /** Throws 503 when no graph can be taken in, whatever its size. Costs nothing: it goes by what is known. */
  ensure(): void {
    const { isDraining, schedulerFault, persistence } = this.#options
    const fault = schedulerFault() // first: the service stops for it
    if (fault !== undefined) throw new ServiceError(503, fault)
    if (isDraining()) throw new ServiceError(503, 'the service is stopping and accepts no new graphs')
    persistence.assertAccepting()
  }

  /** Why no graph would be taken in now; undefined when one of a single task would. Asks the disk. */
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
