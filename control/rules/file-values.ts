/**
 * The values of file references: what the runtime service takes as inputs. Pure.
 *
 * If the other task has `for_each`, the value is the list of these for its children. An input that is a list stands for the
 * directory of the inputs `<path>/<index>/<file>`.
 */

import { isYieldDue, type Steps } from '../../shared/process/steps.ts'
import { type TaskFiles, WHOLE_WORKSPACE } from '../../shared/request/inputs.ts'
import { isObject } from '../../shared/text/json.ts'
import { childId } from './child-ids.ts'

/** The value with about the bytes of its JSON, or the reason why there is no value. */
type FilesValue = { readonly value: unknown; readonly bytes: number } | { readonly fault: string }

/** The inputs that `input` at `path` stands for. What is no file of a list stays at its index. */
export function listedInputs(path: string, input: unknown): readonly (readonly [path: string, input: unknown])[] {
  if (!Array.isArray(input)) return [[path, input]]
  return input.map((each: unknown, i) => {
    const file = isObject(each) && typeof each.file === 'string' && each.file !== WHOLE_WORKSPACE ? `/${each.file}` : ''
    return [`${path}/${i}${file}`, each] as const
  })
}

/** The value of a reference to `file` of the task `id`, which has this result. A task with `for_each` has a list of results. */
export function* filesValue(result: unknown, id: string, file: string): Steps<FilesValue> {
  const isList = Array.isArray(result)
  const results: readonly unknown[] = isList ? result : [result]
  const values: TaskFiles[] = []
  let bytes = 0
  for (let i = 0; i < results.length; i++) {
    if (isYieldDue(i)) yield
    const value = fileOf(results[i], file)
    if (value === undefined) {
      return { fault: `task ${isList ? childId(id, i) : id} has no files: it did not run in the runtime service` }
    }
    values.push(value)
    bytes += value.task_id.length + file.length + BYTES_PER_VALUE
  }
  return { value: isList ? values : values[0], bytes }
}

/** Bytes of names and quotes in the value of a file reference, about. */
const BYTES_PER_VALUE = 26

function fileOf(result: unknown, file: string): (TaskFiles & { readonly runtime?: string }) | undefined {
  if (!isObject(result) || typeof result.task_id !== 'string') return undefined
  const { task_id, placed_on } = result // a result says where the files are, also after a rerun
  return { task_id, file, ...(typeof placed_on === 'string' && { runtime: placed_on }) }
}
