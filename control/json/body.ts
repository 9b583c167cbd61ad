/**
 * The body of a request as a JSON value, or 400 `invalid JSON: <detail>`. Pure.
 *
 * The detail names the field, or repeats what the parser says.
 */
import { badRequest } from '../../shared/contract/errors.ts'
import type { Steps } from '../../shared/process/steps.ts'
import { JsonSyntaxError, parseJson } from '../../shared/text/json-bytes.ts'
import { valueFault } from './depth.ts'
import { type LongArrays, parseObjectWithArrays } from './large-json.ts'

/** Bytes up to which a body is parsed in one go: about two milliseconds. */
const PARSE_AT_ONCE_BYTES = 512 * 1024

/** Fields of a submitted graph beside `tasks`, and of a task: two million of them hold the event loop for three seconds. */
export const MAX_FIELDS = 1_000

/** 400 for a body, or a field of it, that has the wrong form. `detail` begins with the path of the field. */
export const invalidJson = (detail: string) => badRequest(invalidJsonText(detail))

export const invalidJsonText = (detail: string): string => `invalid JSON: ${detail}`

/** Throws 400 for a value that cannot be kept. `at` is its path. */
export function checkValue(value: unknown, at: string): void {
  const fault = valueFault(value)
  if (fault !== undefined) throw invalidJson(`${at}: ${fault}`)
}

/** The value of a body, or throws 400. If the body is large, the arrays that `arrays` names are parsed in steps. */
export function* decodeJson(body: Uint8Array, arrays: LongArrays): Steps<unknown> {
  if (body.length === 0) throw invalidJson('the body is empty')
  try {
    if (body.length <= PARSE_AT_ONCE_BYTES) return parseJson(body)
    return yield* parseObjectWithArrays(body, arrays, { maxFields: MAX_FIELDS })
  } catch (error) {
    if (error instanceof JsonSyntaxError) throw invalidJson(error.message)
    throw error
  }
}
