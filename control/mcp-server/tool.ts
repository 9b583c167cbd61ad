/** A tool of `POST /mcp`: a schema for its input, one for its answer, and the work. */
import type { Static, TObject } from '@sinclair/typebox'
import { badRequest } from '../../shared/contract/errors.ts'
import type { Right } from '../../shared/contract/rights.ts'
import type { Caller } from '../../shared/http/callers.ts'
import type { RequestTrace } from '../../shared/logs/trace.ts'
import {
  didYouMean,
  FREE_FIELDS,
  firstUnknown,
  quoted,
  type UnknownFields,
} from '../../shared/request/unknown-names.ts'
import { isObject, jsonTypeOf, withoutNulls } from '../../shared/text/json.ts'
import { nearestName, type Synonyms } from '../../shared/text/nearest-name.ts'
import { MAX_JSON_DEPTH, valueFault } from '../json/depth.ts'
import { checkOf } from '../json/schema-check.ts'
import type { OperationParts } from '../operations/parts.ts'
import type { WaitCaller } from '../operations/wait.ts'
import type { Asker } from './question.ts'

export interface ToolContext extends WaitCaller, Asker, RequestTrace {
  /** Who calls. Undefined: the token of the service. */
  readonly by: Caller | undefined
}

/** Where the graph that a call submits comes from. */
export const originIn = ({ traceId, traceState, by }: ToolContext) => ({ traceId, traceState, by })

export interface Tool<I extends TObject = TObject> {
  readonly name: string
  readonly title: string
  /** For the model that chooses the tool. */
  readonly description: string
  /** What a caller needs to see and call the tool. */
  readonly right: Right
  /** Whether it belongs to the whole service: callers with a tenant neither see nor call it. */
  readonly isOfService?: boolean
  readonly input: I
  readonly answer: TObject
  /** Whether the tool changes nothing. */
  readonly isReadOnly?: boolean
  /** Whether the tool may undo or overwrite something. */
  readonly isDestructive?: boolean
  /** The answer of a call without `detail`, which the input has then. Default: all of it. */
  brief?(answer: object): object
  /** Its answer, or `NeedsAnswers`. Throws `ServiceError`, whose text the model gets. */
  run(input: Static<I>, parts: OperationParts, context: ToolContext): Promise<object>
}

/** Infers the types of the input and the answer of `run` from the schemas. */
export const defineTool = <I extends TObject, A extends TObject>(
  tool: Omit<Tool<I>, 'answer' | 'brief'> & { readonly answer: A; brief?(answer: Static<A>): Static<A> },
): Tool => tool as unknown as Tool

/**
 * Levels of a field: those of `params`, and a list of tasks around them. Formatting deeper values overflows the stack.
 */
const MAX_FIELD_LEVELS = MAX_JSON_DEPTH + 2

/** Characters of a string that an error repeats. */
const MAX_SHOWN_VALUE = 100

/** Throws 400 for the first unknown argument. The tool itself checks what is inside its arguments. */
function refuseUnknown({ properties }: TObject, input: object): void {
  const names = Object.keys(properties)
  const name = firstUnknown(input, new Set([...names, ...FREE_FIELDS]))
  if (name === undefined) return
  throw badRequest(`invalid input: unknown field ${quoted(name)}${didYouMean(nearestName(name, names, SYNONYMS))}`)
}

/** Names that models use for the arguments. */
const SYNONYMS: Synonyms = {
  id: 'task_id',
  ids: 'task_ids',
  task: 'task_id',
  timeout: 'timeout_ms',
  wait: 'wait_ms',
  arguments: 'input',
  args: 'input',
  params: 'input',
  tool: 'tool_name',
}

/** `given` without its nulls, or throws 400 with the name of the field. */
export function checkToolInput(schema: TObject, given: unknown, unknownFields: UnknownFields): Record<string, unknown> {
  if (given !== undefined && !isObject(given))
    throw badRequest(`invalid input: expected object, got ${jsonTypeOf(given)}`)
  const input = withoutNulls(given ?? {})
  if (unknownFields === 'refuse') refuseUnknown(schema, input)
  for (const name of schema.required ?? []) {
    if (input[name] === undefined || input[name] === '') throw badRequest(`invalid input: ${name} is required`)
  }
  for (const [name, value] of Object.entries(input)) {
    const fault = valueFault(value, MAX_FIELD_LEVELS)
    if (fault !== undefined) throw badRequest(`invalid input: ${name}: ${fault}`)
  }
  const check = checkOf(schema)
  if (check.accepts(input)) return input
  const { path, expected, found, isOneOf } = check.faultOf(input)
  // A short string in place of a known word is shown: it may be misspelt.
  const isShown = isOneOf && typeof found === 'string' && found.length <= MAX_SHOWN_VALUE
  const got = isShown ? JSON.stringify(found) : jsonTypeOf(found)
  throw badRequest(`invalid input: ${path}: expected ${expected}, got ${got}`)
}
