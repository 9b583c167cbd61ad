/**
 * Whether the input of an action can be worked on at all, by the very schemas that the executors check it with.
 *
 * What is certain to fail when it runs is refused now, with the name of the field; whether a program, a file or a server
 * is there is known only then. Pure.
 */
import type { TObject, TSchema } from '@sinclair/typebox'
import { type TypeCheck, TypeCompiler } from '@sinclair/typebox/compiler'
import type { ActionKind } from '../../shared/contract/adapter-v1.ts'
import { isObject } from '../../shared/json.ts'
import { didYouMean, quoted, unknownField } from '../../shared/unknown-names.ts'
import { runtimeParameters } from '../graph/runtime-parameters.ts'
import { invalidAction, unknownActionField, withoutNulls } from './request.ts'

export type Input = Readonly<Record<string, unknown>>

/** The schema of each kind's input, from whoever works on it. */
export type InputSchemas = Readonly<Record<ActionKind, TObject>>

/** A check is made when it is first needed, and once: it costs milliseconds. */
const checks = new WeakMap<TObject, TypeCheck<TObject>>()

/**
 * Throws 400 for a name in `input` that the kind does not have. A runtime kind may have the names of the other one: that it
 * cannot take them is said in words of its own.
 */
export function refuseUnknownInput(kind: ActionKind, schema: TObject, input: Input): void {
  const found = unknownField(kind.startsWith('runtime.') ? runtimeParameters : schema, input)
  if (found === undefined) return
  const { at, path, nearest } = found
  if (at === '') throw invalidAction(`unknown parameter ${quoted(path)} of ${kind}${didYouMean(nearest)}`)
  throw unknownActionField(`input.${path}`, nearest && `input.${nearest}`)
}

/** `input` without its nulls, or throws 400. */
export function checkInput(kind: ActionKind, schema: TObject, input: Input): Input {
  const given = withoutNestedNulls(schema, input)
  for (const name of schema.required ?? []) {
    const isMissing = given[name] === undefined || (given[name] === '' && schema.properties[name]?.missing)
    if (isMissing) throw invalidAction(`input.${name} is required for ${kind}`)
  }
  let check = checks.get(schema)
  if (check === undefined) {
    check = TypeCompiler.Compile(schema)
    checks.set(schema, check)
  }
  if (check.Check(given)) return given
  const { path = '', message = '' } = check.Errors(given).First() ?? {}
  const keys = path.split('/').slice(1)
  const { depth, expected } = expectedAt(schema, keys, message)
  throw invalidAction(`input.${keys.slice(0, depth).join('.')}: expected ${expected}`)
}

/** As deep as the schema has names for; what is below is the caller's own. */
function withoutNestedNulls(schema: TSchema, given: Input): Record<string, unknown> {
  const rest = withoutNulls(given)
  for (const [name, property] of Object.entries<TSchema>(schema.properties)) {
    const value = rest[name]
    if (property.properties !== undefined && isObject(value)) rest[name] = withoutNestedNulls(property, value)
  }
  return rest
}

/** The words of the innermost schema on the way to a fault that has some, and how many names lead there. */
function expectedAt(schema: TSchema, keys: readonly string[], message: string): { depth: number; expected: string } {
  let found = { depth: keys.length, expected: message.replace(/^Expected /, '') }
  let at: TSchema | undefined = schema
  for (const [i, key] of keys.entries()) {
    at = at?.properties?.[key] as TSchema | undefined
    if (typeof at?.expected === 'string') found = { depth: i + 1, expected: at.expected }
  }
  return found
}
