/** The state of runtime services that replicas share: the pool, and the orphans. */
import { messageOf, stackOf } from '../../../shared/contract/errors.ts'
import { Looks } from './looks.ts'
import { SharedOrphans, type SharedOrphansOptions } from './shared-orphans.ts'
import { SharedPool } from './shared-pool.ts'

export interface SharedRuntimesOptions extends SharedOrphansOptions {
  readonly leaseMs: number
}

export class SharedRuntimes {
  readonly pool: SharedPool
  readonly orphans: SharedOrphans
  readonly #looks: Looks

  constructor(options: SharedRuntimesOptions) {
    const { database, leaseMs, log } = options
    this.pool = new SharedPool(database, log)
    this.orphans = new SharedOrphans(options)
    this.#looks = new Looks({
      leaseMs,
      look: async () => {
        await this.pool.look()
        const orphans = await this.orphans.look()
        if (orphans > 0) log.info('attempts that are to be ended were taken over', { attempts: orphans })
      },
      onAway: (error) => log.debug('cannot look for changes of the runtime services', { cause: messageOf(error) }),
      onFault: (error) => log.error('changes of the runtime services are not read', { cause: stackOf(error) }),
    })
  }

  start(): void {
    this.#looks.start()
    this.#looks.ring()
  }

  ring(): void {
    this.#looks.ring()
  }

  stop(): void {
    this.#looks.stop()
  }
}
