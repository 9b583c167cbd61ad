/**
 * Orphans in rows: abandoned attempts in runtime services, each to be killed by one replica.
 *
 * The row is written with the end of its task, or in an earlier turn, and removed after the kill. A replica kills no attempt
 * before its row is committed: if it was declared dead meanwhile, it would kill an attempt that another replica follows.
 * Living replicas take over the rows of dead ones.
 */
import type { Log } from '../../../shared/logs/log.ts'
import type { Orphan, OrphanKeeper } from '../orphan-file.ts'
import type { Database } from './database.ts'
import { ownOrphans, takeOrphans } from './orphan-rows.ts'
import type { ReplicaRows } from './replica-rows.ts'
import type { OrphanState } from './turn-writes.ts'

export interface SharedOrphansOptions {
  readonly database: Pick<Database, 'settings' | 'soon'>
  readonly replica: Pick<ReplicaRows, 'epoch' | 'id'>
  readonly log: Log
  /** Writes a state in the next turn. */
  readonly write: (orphan: OrphanState) => void
}

export class SharedOrphans implements OrphanKeeper {
  readonly #options: SharedOrphansOptions
  readonly #orphans = new Map<string, Orphan>()
  /** Whether orphans may have been taken over by a statement whose answer was lost. */
  #isUncertain = false
  onFound: (orphans: readonly Orphan[]) => void = () => {}

  constructor(options: SharedOrphansOptions) {
    this.#options = options
  }

  get found(): readonly Orphan[] {
    return [...this.#orphans.values()]
  }

  add(orphan: Orphan): void {
    this.#orphans.set(orphan.handle_id, orphan)
    this.#options.write({ id: orphan.handle_id, orphan })
  }

  remove(orphans: readonly Orphan[]): void {
    for (const orphan of orphans) {
      const { handle_id: id } = orphan
      if (this.#orphans.get(id) !== orphan) continue
      this.#orphans.delete(id)
      this.#options.write({ id, orphan: undefined })
    }
  }

  /** Takes over orphans of dead replicas. Returns their number. */
  async look(): Promise<number> {
    const { database, replica, log } = this.#options
    const isUncertain = this.#isUncertain
    this.#isUncertain = true // until the answer is here
    const taken = await takeOrphans(database, replica, log)
    const own = isUncertain ? await ownOrphans(database, replica, log) : taken
    this.#isUncertain = false
    const found = own.filter(({ handle_id }) => !this.#orphans.has(handle_id))
    for (const orphan of found) this.#orphans.set(orphan.handle_id, orphan)
    if (found.length > 0) this.onFound(found)
    return taken.length
  }
}
