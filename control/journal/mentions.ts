/** The graphs and ids of tasks that the journal mentions. A start builds all other graphs while it reads the state file. */
import { isObject } from '../../shared/json.ts'
import type { Frame } from './journal-format.ts'
import { decodeGraph, optionsIn } from './journaled-graph.ts'
import { graphsInStates } from './journaled-state.ts'

export class Mentions {
  readonly #ordinals = new Set<number>()
  readonly #ids = new Set<string>()

  /** Adds what a frame mentions. Ignores an invalid frame: the replay refuses it later. */
  add({ kind, payload }: Frame): void {
    try {
      if (kind === 't') {
        for (const ordinal of graphsInStates(new TextDecoder().decode(payload))) this.#ordinals.add(ordinal)
        return
      }
      const { graph_ordinal, body } = decodeGraph(payload)
      this.#ordinals.add(graph_ordinal)
      if (optionsIn(body).scope === 'graph') return // its ids are nobody else's
      const tasks = isObject(body) && Array.isArray(body.tasks) ? body.tasks : []
      for (const task of tasks) if (isObject(task) && typeof task.id === 'string') this.#ids.add(task.id)
    } catch {
      // The replay says what is wrong.
    }
  }

  /** Whether the journal mentions the graph or one of the ids, which belong to the service. */
  has(ordinal: number, ids: Iterable<string>): boolean {
    if (this.#ordinals.has(ordinal)) return true
    for (const id of ids) if (this.#ids.has(id)) return true
    return false
  }
}
