/**
 * The payloads of graphs and frames in the database, which has no column for their kind. States of tasks are a JSON array, and the list
 * of a task with `for_each` is an object. A patch begins with a letter: a replica of an earlier version sets its graph aside, and does
 * not run it without the patch. So does the graph of a tenant, which an earlier version would run as anybody's.
 */
import type { Graph } from '../../task/graph.ts'
import type { Frame } from '../journal-format.ts'

const PATCH = 'm'
const TENANT = 't'

/** The payload of a graph. `text` is its frame in the journal. */
export const graphPayload = ({ tenant }: Pick<Graph, 'tenant'>, text: string): string =>
  tenant === undefined ? text : TENANT + text

/** As `frameOf`, for `graphPayload`. */
export const graphFrameOf = (payload: string): Frame => ({
  ...{ kind: 'g', end: 0 },
  payload: Buffer.from(payload.startsWith(TENANT) ? payload.slice(TENANT.length) : payload),
})

/** The payload of a frame of kind `m`. */
export const patchPayload = (parts: readonly string[]): string => PATCH + parts.join('')

/** A frame as the journal has it. */
export function frameOf(payload: string): Frame {
  if (payload.startsWith(PATCH)) return { kind: 'm', payload: Buffer.from(payload.slice(PATCH.length)), end: 0 }
  return { kind: payload.startsWith('[') ? 't' : 'x', payload: Buffer.from(payload), end: 0 }
}
