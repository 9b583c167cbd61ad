/** Watches which replicas there are. Asks the database only while there is a watcher. */
import type { Keeper } from '../log/keeper.ts'
import { type Joined, replicasToJoin } from './joined-pages.ts'

/** Milliseconds between two looks. Until then, a new replica is not noticed. */
const LOOK_MS = 1_000

interface Watcher {
  readonly known: string
  readonly onChange: () => void
}

export class Membership {
  readonly #keeper: Pick<Keeper, 'others' | 'replica'>
  readonly #watchers = new Set<Watcher>()
  #timer: Timer | undefined
  #isLooking = false

  constructor(keeper: Pick<Keeper, 'others' | 'replica'>) {
    this.#keeper = keeper
  }

  /** Rejects with 503. */
  now(): Promise<Joined> {
    return replicasToJoin(this.#keeper)
  }

  /** Calls `onChange` once the replicas are not those of `known` any more. Returns a function that ends the watch. */
  watch(known: Joined, onChange: () => void): () => void {
    const watcher = { known: keyOf(known), onChange }
    this.#watchers.add(watcher)
    this.#timer ??= setInterval(() => void this.#look(), LOOK_MS)
    return () => {
      this.#watchers.delete(watcher)
      if (this.#watchers.size > 0) return
      clearInterval(this.#timer)
      this.#timer = undefined
    }
  }

  async #look(): Promise<void> {
    if (this.#isLooking) return
    this.#isLooking = true
    const key = await this.now().then(keyOf, () => undefined) // while the database is away, nobody comes or goes
    this.#isLooking = false
    if (key === undefined) return
    for (const watcher of [...this.#watchers]) if (watcher.known !== key) watcher.onChange()
  }
}

const keyOf = ({ others, missing }: Joined): string =>
  JSON.stringify([others.map(({ id, address }) => [id, address]), [...missing].sort()])
