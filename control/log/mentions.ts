/** The graphs and task ids in the journal. A start builds all other graphs as soon as it has read their entries. */
import { isObject } from '../../shared/text/json.ts'
import type { Frame } from './journal-format.ts'
import { decodeGraph, optionsIn } from './journaled-graph.ts'
import { decodePatch } from './journaled-patch.ts'
import { graphsInStates } from './journaled-state.ts'

export class Mentions {
  readonly #ordinals = new Set<number>()
  readonly #ids = new Set<string>()

  /** Adds the graphs and ids of a frame. Ignores an invalid frame, which the replay refuses later. */
  add({ kind, payload }: Frame): void {
    try {
      if (kind === 't') {
        for (const ordinal of graphsInStates(JSON.parse(new TextDecoder().decode(payload)))) this.#ordinals.add(ordinal)
        return
      }
      if (kind === 'm') {
        const { graph_ordinal, tasks, states = [] } = decodePatch(payload)
        for (const ordinal of [graph_ordinal, ...graphsInStates(states)]) this.#ordinals.add(ordinal)
        for (const { id } of tasks) if (typeof id === 'string') this.#ids.add(id)
        return
      }
      const { graph_ordinal, tenant, body } = decodeGraph(payload)
      this.#ordinals.add(graph_ordinal)
      if (kind !== 'g') return
      if (tenant !== undefined || optionsIn(body).scope === 'graph') return // no other graph can have its ids
      const tasks = isObject(body) && Array.isArray(body.tasks) ? body.tasks : []
      for (const task of tasks) if (isObject(task) && typeof task.id === 'string') this.#ids.add(task.id)
    } catch {
      // The replay reports the error.
    }
  }

  /** Whether the journal has the graph, or one of these `ids` of the service. */
  has(ordinal: number, ids: Iterable<string>): boolean {
    if (this.#ordinals.has(ordinal)) return true
    for (const id of ids) if (this.#ids.has(id)) return true
    return false
  }
}
