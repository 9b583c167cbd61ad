/** Finds invalid answers of a server. The SDK drops such answers, and their callers would wait for ever. Pure. */
import { Type } from '../../shared/contract/schema-builder.ts'
import { isObject, jsonTypeOf } from '../../shared/text/json.ts'
import { checkOf } from '../json/schema-check.ts'

/** Whether `value` looks like an answer, valid or not. */
export const isAnswer = (value: unknown): value is Record<string, unknown> =>
  isObject(value) &&
  value.id !== undefined &&
  value.id !== null && // null marks an error that belongs to no known request
  value.method === undefined &&
  (value.jsonrpc === '2.0' || 'result' in value || 'error' in value)

/** The fault of `answer`, which fails its call. Undefined if `isRight`, the check of the SDK, accepts the answer. */
export const answerFault = (
  answer: Readonly<Record<string, unknown>>,
  isRight: (value: unknown) => boolean,
): string | undefined => (isRight(answer) ? undefined : `its answer is no MCP result: ${faultOf(answer)}`)

const integer = { minimum: Number.MIN_SAFE_INTEGER, maximum: Number.MAX_SAFE_INTEGER, expected: 'integer' }

const Answer = Type.Object({
  jsonrpc: Type.Literal('2.0', { expected: '"2.0"' }),
  id: Type.Unknown(),
  result: Type.Optional(Type.Object({}, { expected: 'object' })),
  error: Type.Optional(
    Type.Object({ code: Type.Integer(integer), message: Type.String({ expected: 'string' }) }, { expected: 'object' }),
  ),
})

function faultOf(answer: Readonly<Record<string, unknown>>): string {
  const check = checkOf(Answer)
  if (!check.accepts(answer)) {
    const { path, expected, found } = check.faultOf(answer)
    return `${path}: expected ${expected}, got ${jsonTypeOf(found)}`
  }
  if ('result' in answer && 'error' in answer) return 'it has both a result and an error'
  if (!('result' in answer || 'error' in answer)) return 'it has neither a result nor an error'
  const name = Object.keys(answer).find((key) => !(key in Answer.properties))
  if (name !== undefined) return `it has a member ${JSON.stringify(name.slice(0, MAX_NAME_CHARACTERS))}`
  return 'its _meta is malformed'
}

/** Maximum characters of the name of a member in an error. */
const MAX_NAME_CHARACTERS = 100
