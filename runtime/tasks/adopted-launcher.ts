/** The launcher of a task that an earlier service started. */
import type { Launcher, LauncherEnd } from '../launch/launcher-host.ts'

/** Checks the lock of the launcher, because no message reports its end. */
export class AdoptedLauncher implements Launcher {
  readonly #isAlive: () => boolean
  readonly #gone = Promise.withResolvers<LauncherEnd>()

  constructor(isAlive: () => boolean, wasAlive: boolean) {
    this.#isAlive = isAlive
    if (!wasAlive) this.#gone.resolve({})
  }

  get gone(): Promise<LauncherEnd> {
    return this.#gone.promise
  }

  lookAround(): boolean {
    const isAlive = this.#isAlive()
    if (!isAlive) this.#gone.resolve({})
    return isAlive
  }

  heard(): void {}
  serverEnded(): void {}
}
