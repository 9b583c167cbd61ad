/**
 * The list for which a task with `for_each` has children, as a frame of the journal. Pure.
 *
 * The frame is on disk before the first child starts. So a restart runs the same children for the same elements, whatever
 * became of the task that the list comes from.
 */
import { MOST_ELEMENTS } from '../../shared/contract/fan-out.ts'
import type { Steps } from '../../shared/process/steps.ts'
import { parseJson } from '../../shared/text/json-bytes.ts'
import { jsonText } from '../json/pieces.ts'
import type { Task } from '../task/graph.ts'

/** What a restart needs to know of a fan-out. */
export interface StoredFanOut {
  readonly count: number
  /** The elements. Absent where the definition of the task has them. */
  readonly items?: readonly unknown[] | undefined
}

/** The payload of a frame of kind `x`. `id` is that of the task with `for_each`. */
export interface JournaledFanOut extends StoredFanOut {
  readonly graph_ordinal: number
  readonly id: string
}

/** The payload for `count` children of `task`. In steps, as the list may have megabytes. */
export function* encodeFanOut({ graph, id }: Task, { count, items }: StoredFanOut): Steps<string[]> {
  const head = JSON.stringify({ graph_ordinal: graph.ordinal, id, count })
  return items === undefined ? [head] : [`${head.slice(0, -1)},"items":`, yield* jsonText(items), '}']
}

/** Throws `JsonSyntaxError`. */
export const decodeFanOut = (payload: Uint8Array): JournaledFanOut => parseJson(payload) as JournaledFanOut

/** Whether a stored value has the form of a fan-out. */
export function isStoredFanOut(value: unknown): value is StoredFanOut {
  const { count, items } = (value ?? {}) as Partial<StoredFanOut>
  const isCount = Number.isSafeInteger(count) && count! >= 0 && count! <= MOST_ELEMENTS
  return isCount && (items === undefined || (Array.isArray(items) && items.length === count))
}
