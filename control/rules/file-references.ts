/**
 * File references: `{"$from": id, "file": path}` in `inputs` of a runtime task stands for a file or a directory in the
 * workspace of another one. Pure.
 *
 * The value is what the runtime service takes: `{"task_id", "file"}` with the id of the other task there, which stands in its
 * result (`file-values.ts`).
 */

import { RequestFault } from '../../shared/request/fault.ts'
import { checkFile } from '../../shared/request/inputs.ts'
import type { JsonObject } from '../../shared/text/json.ts'
import type { Reference } from './references.ts'

export const FILE_REFERENCE_FIELDS = ['$from', 'file'] as const

/** The parameter of a runtime task in which these references stand. */
const INPUTS = 'inputs'

/** The part of the record of a task that says where its files are. */
const RESULT = '/result'

/** Parses a file reference. Returns the fault if it is invalid. */
export function fileReferenceIn({ $from: id, file }: Readonly<JsonObject>): Reference | string {
  if (typeof id !== 'string' || id === '') return '$from: expected the id of a task'
  if (typeof file !== 'string') return 'file: expected the path of a file in the workspace of that task'
  try {
    checkFile('file', file)
    return { id, path: RESULT, file }
  } catch (error) {
    if (error instanceof RequestFault) return error.message
    throw error
  }
}

/** Whether a file reference may stand at this path of the parameters. */
export const isInputPath = (path: readonly (string | number)[]): boolean => path.length === 2 && path[0] === INPUTS

/** What is wrong with a file reference that stands elsewhere. */
export const MISPLACED_FILE =
  '"file" beside "$from" stands only in inputs of a runtime task, as in {"inputs": {"lib": {"$from": "build", "file": "dist"}}}'

/** The parameters of a task without its inputs, for what does not depend on them. */
export function withoutInputs(input: unknown): unknown {
  const { [INPUTS]: _, ...rest } = input as JsonObject
  return rest
}
