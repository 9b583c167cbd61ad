/**
 * Whether the data directory that the service started with is still there under its path.
 *
 * Open files survive when their directory is moved or replaced, but the directories of tasks are reached by path. So
 * once the directory is lost, nothing is promised or launched, and no file is made or removed under the path, which may
 * belong to another service. Running tasks go on, and the next service reads how they ended. Only a restart ends this
 * state.
 */
import { messageOf, ServiceError } from '../../shared/contract/errors.ts'
import { DataDirectoryLost, type HeldDirectory } from '../../shared/files/held-directory.ts'
import type { Log } from '../../shared/logs/log.ts'

export class DirectoryGuard {
  readonly #held: Pick<HeldDirectory, 'check'>
  readonly #fd: number
  readonly #log: Log
  #lost: DataDirectoryLost | undefined

  /** `fd` is an open file of the directory, the one that changes are written to. */
  constructor(held: Pick<HeldDirectory, 'check'>, fd: number, log: Log) {
    this.#held = held
    this.#fd = fd
    this.#log = log
  }

  /** The result of the last check. Costs nothing. */
  get lost(): DataDirectoryLost | undefined {
    return this.#lost
  }

  /**
   * Checks, and says how the directory was lost. Undefined while it is there, or cannot be checked. Takes 1 to 2 µs.
   */
  look(): DataDirectoryLost | undefined {
    if (this.#lost !== undefined) return this.#lost
    try {
      this.#held.check(this.#fd)
    } catch (error) {
      // A path that does not answer fails for those who use it.
      if (!(error instanceof DataDirectoryLost)) return undefined
      this.#lost = error
      this.#log.error('the data directory is lost', { cause: messageOf(error) })
    }
    return this.#lost
  }

  /** Checks, and throws 503 when the directory is lost. */
  ensure(): void {
    const lost = this.look()
    if (lost !== undefined) throw new ServiceError(503, lost.message, { cause: lost })
  }
}
