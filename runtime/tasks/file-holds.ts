/** The taker of files: a task of this service, or another runtime service. */
export interface Copier {
  readonly task_id: string | undefined
}

/**
 * Tasks whose files are being copied for others, and tasks that are being removed. No task is both, so a copy never gets
 * a part of what a removal has left.
 */
export class FileHolds {
  /** By the id of the source: who gets its files. */
  readonly #copies = new Map<string, Set<Copier>>()
  /** Removals under way, by task id. A new task of that id must not collide with one. */
  readonly #removals = new Map<string, Promise<void>>()

  /** Number of tasks that are held. */
  get size(): number {
    return this.#copies.size + this.#removals.size
  }

  /** A taker that gets files of the task `id` right now. */
  copierOf(id: string): Copier | undefined {
    return this.#copies.get(id)?.values().next().value
  }

  removalOf(id: string): Promise<void> | undefined {
    return this.#removals.get(id)
  }

  isHeld(id: string): boolean {
    return this.#copies.has(id) || this.#removals.has(id)
  }

  /** Keeps the files of `sources`, none of which is being removed, until the end of the copy for the task `copier`. */
  hold(copier: string, sources: Iterable<string>): Disposable {
    return this.#hold({ task_id: copier }, new Set(sources))
  }

  /** The same while another runtime service reads files of `source`. */
  holdForOthers(source: string): Disposable {
    return this.#hold({ task_id: undefined }, new Set([source]))
  }

  #hold(copier: Copier, held: ReadonlySet<string>): Disposable {
    for (const id of held) {
      const copiers = this.#copies.get(id)
      if (copiers === undefined) this.#copies.set(id, new Set([copier]))
      else copiers.add(copier)
    }
    return { [Symbol.dispose]: () => this.#release(copier, held) }
  }

  #release(copier: Copier, sources: ReadonlySet<string>): void {
    for (const id of sources) {
      const copiers = this.#copies.get(id)
      if (copiers?.delete(copier) && copiers.size === 0) this.#copies.delete(id)
    }
  }

  /** Registers `ids` as being removed until `work` is done. */
  async removeDuring(ids: readonly string[], work: Promise<void>): Promise<void> {
    for (const id of ids) this.#removals.set(id, work)
    try {
      await work
    } finally {
      for (const id of ids) this.#removals.delete(id)
    }
  }
}
