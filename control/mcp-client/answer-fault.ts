/** What is wrong with an answer of a server. The SDK drops what it cannot read, and its caller waits for ever. Pure. */
import { isObject, jsonTypeOf } from '../../shared/json.ts'

/** Whether `value` is meant as an answer, be it a right one or not. */
export const isAnswer = (value: unknown): value is Record<string, unknown> =>
  isObject(value) &&
  value.id !== undefined &&
  value.id !== null && // an error of the server's, about no request that it could tell
  value.method === undefined &&
  (value.jsonrpc === '2.0' || 'result' in value || 'error' in value)

/** Says what is wrong with `answer`, for whose sake a call fails; undefined if `isRight`, the SDK's own check, takes it. */
export const answerFault = (
  answer: Readonly<Record<string, unknown>>,
  isRight: (value: unknown) => boolean,
): string | undefined => (isRight(answer) ? undefined : `its answer is no MCP result: ${faultOf(answer)}`)

function faultOf({ jsonrpc, id, ...rest }: Readonly<Record<string, unknown>>): string {
  const { result, error, ...others } = rest
  if (jsonrpc !== '2.0') return `jsonrpc: expected "2.0", got ${jsonTypeOf(jsonrpc)}`
  if ('result' in rest && 'error' in rest) return 'it has both a result and an error'
  if ('result' in rest && !isObject(result)) return `result: expected object, got ${jsonTypeOf(result)}`
  if ('error' in rest) {
    if (!isObject(error)) return `error: expected object, got ${jsonTypeOf(error)}`
    if (!Number.isSafeInteger(error.code)) return `error.code: expected integer, got ${jsonTypeOf(error.code)}`
    if (typeof error.message !== 'string') return `error.message: expected string, got ${jsonTypeOf(error.message)}`
  } else if (!('result' in rest)) return 'it has neither a result nor an error'
  const [name] = Object.keys(others)
  if (name !== undefined) return `it has a member ${JSON.stringify(name.slice(0, MAX_NAME_CHARACTERS))}`
  return 'its _meta is malformed'
}

/** Characters of the name of a member that an error text repeats. */
const MAX_NAME_CHARACTERS = 100
