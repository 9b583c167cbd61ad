/** Decides whether the service accepts graphs now, for submissions, /health and /readyz. */
import { messageOf, ServiceError } from '../../shared/contract/errors.ts'
import type { Ground } from './ground.ts'

export class Readiness {
  readonly #ground: Ground
  readonly #isDraining: () => boolean

  /** `isDraining`: whether the service is stopping. */
  constructor(ground: Ground, isDraining: () => boolean) {
    this.#ground = ground
    this.#isDraining = isDraining
  }

  /** Throws 503 if the service accepts no graph of any size. Uses only known facts, without a write to the disk. */
  ensure(): void {
    const { scheduler, keeper } = this.#ground
    // comes first, because it ends the service
    if (scheduler.fault !== undefined) throw new ServiceError(503, scheduler.fault)
    if (this.#isDraining()) throw new ServiceError(503, 'the service is stopping and accepts no new graphs')
    keeper.assertAccepting()
  }

  /** Why the service would refuse a graph of one task; undefined if it would accept one. Probes the disk. */
  fault(): string | undefined {
    try {
      this.ensure()
      this.#ground.retention.ensureRoom(1)
      this.#ground.keeper.probe()
      return undefined
    } catch (error) {
      return messageOf((error as Error).cause ?? error)
    }
  }
}
