/**
 * Whether the data directory of the start is still there under its path.
 *
 * The files that are open outlive a directory that was moved or replaced, while the directories of tasks are reached by
 * their paths. So once the directory is lost nothing is promised, nothing is launched, and no file is made or removed under its
 * path, which may belong to another service. Running tasks go on; the next service reads how they ended. Only a restart
 * ends this condition.
 */
import { messageOf, ServiceError } from '../../shared/errors.ts'
import { DataDirectoryLost, type HeldDirectory } from '../../shared/held-directory.ts'
import type { Log } from '../../shared/log.ts'

export class DirectoryGuard {
  readonly #held: Pick<HeldDirectory, 'check'>
  readonly #fd: number
  readonly #log: Log
  #lost: DataDirectoryLost | undefined

  /** `fd` is an open file of the directory that changes are written to. */
  constructor(held: Pick<HeldDirectory, 'check'>, fd: number, log: Log) {
    this.#held = held
    this.#fd = fd
    this.#log = log
  }

  /** What was found at the last look; costs nothing. */
  get lost(): DataDirectoryLost | undefined {
    return this.#lost
  }

  /** Looks, and says how the directory was lost; undefined while it is there, or cannot be asked for. Takes 1 to 2 µs. */
  look(): DataDirectoryLost | undefined {
    if (this.#lost !== undefined) return this.#lost
    try {
      this.#held.check(this.#fd)
    } catch (error) {
      // A path that does not answer is met by those who use it.
      if (!(error instanceof DataDirectoryLost)) return undefined
      this.#lost = error
      this.#log.error(messageOf(error))
    }
    return this.#lost
  }

  /** Looks, and throws 503 when the directory is lost. */
  ensure(): void {
    const lost = this.look()
    if (lost !== undefined) throw new ServiceError(503, lost.message, { cause: lost })
  }
}
