/**
 * The payloads of frames in the database, which has no column for their kind. States of tasks are a JSON array, and the list of a
 * task with `for_each` is an object. A patch begins with a letter: a replica of an earlier version sets its graph aside, and does not
 * run it without the patch.
 */
import type { Frame } from '../journal-format.ts'

const PATCH = 'm'

/** The payload of a frame of kind `m`. */
export const patchPayload = (parts: readonly string[]): string => PATCH + parts.join('')

/** A frame as the journal has it. */
export function frameOf(payload: string): Frame {
  if (payload.startsWith(PATCH)) return { kind: 'm', payload: Buffer.from(payload.slice(PATCH.length)), end: 0 }
  return { kind: payload.startsWith('[') ? 't' : 'x', payload: Buffer.from(payload), end: 0 }
}
