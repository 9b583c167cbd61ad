/**
 * How much of what a graph stores its tasks cause: results, and inputs with values instead of placeholders. Pure.
 *
 * The sizes follow from the tasks alone, so a restart finds them again. Files count with their bytes, all else with its
 * characters as JSON, about. An outcome that was taken over from another task counts for that one.
 */

import { aboutCharacters, ResultFile } from '../rules/result-file.ts'
import type { Task } from './graph.ts'

/** Bytes of the result and the resolved input of `task`. */
export function storedBytes({ result, rare }: Task): number {
  const { resolved_input, input_file, reused_from } = rare
  if (reused_from !== undefined) return 0
  return bytesOf(result) + bytesOf(resolved_input) + (input_file?.bytes ?? 0)
}

const bytesOf = (value: unknown): number => {
  if (value === undefined) return 0
  return value instanceof ResultFile ? value.bytes : aboutCharacters(value)
}
