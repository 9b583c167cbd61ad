/**
 * File references: `{"$from": id, "file": path}` in `inputs` of a runtime task stands for a file or a directory in the
 * workspace of another one. Pure.
 *
 * The value is what the runtime service takes: `{"task_id", "file"}` with the id of the other task there, which stands in its
 * result (`file-values.ts`). In a child of a task with `for_each`, `{"$item": pointer}` or `{"$index": true}` may be the path.
 */

import { RequestFault } from '../../shared/request/fault.ts'
import { checkFile } from '../../shared/request/inputs.ts'
import { isObject, type JsonObject } from '../../shared/text/json.ts'
import { ELEMENT_FIELDS, elementPlaceholderIn } from './element-placeholder.ts'
import type { Reference } from './references.ts'

export const FILE_REFERENCE_FIELDS = ['$from', 'file'] as const

/** The parameter of a runtime task in which these references stand. */
const INPUTS = 'inputs'

/** The part of the record of a task that says where its files are. */
const RESULT = '/result'

/** Parses a file reference. Returns the fault if it is invalid. */
export function fileReferenceIn({ $from: id, file }: Readonly<JsonObject>): Reference | string {
  if (typeof id !== 'string' || id === '') return '$from: expected the id of a task'
  if (isElement(file)) {
    const element = elementPlaceholderIn(file)
    return typeof element === 'string' ? `file: ${element}` : { id, path: RESULT, file: element }
  }
  if (typeof file !== 'string') return 'file: expected the path of a file in the workspace of that task'
  return fileFault(file) ?? { id, path: RESULT, file }
}

/** In a child of a task with `for_each`, its element or index may be the path. */
const isElement = (file: unknown): file is JsonObject => {
  const [name, ...others] = isObject(file) ? Object.keys(file).filter((key) => key !== 'as') : []
  return others.length === 0 && name !== undefined && Object.hasOwn(ELEMENT_FIELDS, name)
}

/** Why `file` is no path in a workspace, in words that begin with `file`. Undefined if it is one. */
export function fileFault(file: string): string | undefined {
  try {
    checkFile('file', file)
    return undefined
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
