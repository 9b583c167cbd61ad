/**
 * Checks the input of an action with the schemas of the executors. Pure.
 *
 * Input that is certain to fail is refused now, with the name of the field. Missing programs, files and servers show up
 * only when the task runs.
 */
import type { TObject } from '@sinclair/typebox'
import type { ActionKind } from '../../shared/contract/adapter-v1.ts'
import { didYouMean, eachUnknownField, quoted } from '../../shared/request/unknown-names.ts'
import { checkOf, withoutNullFields } from '../json/schema-check.ts'
import { runtimeParameters } from '../rules/runtime-parameters.ts'
import { invalidAction, unknownActionField } from './request.ts'

export type Input = Readonly<Record<string, unknown>>

/** The schema of the input of each kind, from its executor. */
export type InputSchemas = Readonly<Record<ActionKind, TObject>>

/**
 * Throws 400 for an unknown name in `input`. Accepts names of the other runtime kind, for which a later check has a
 * better error.
 */
export function refuseUnknownInput(kind: ActionKind, schema: TObject, input: Input): void {
  eachUnknownField(kind.startsWith('runtime.') ? runtimeParameters : schema, input, ({ at, path, nearest }) => {
    if (at === '') throw invalidAction(`unknown parameter ${quoted(path)} of ${kind}${didYouMean(nearest)}`)
    throw unknownActionField(`input.${path}`, nearest && `input.${nearest}`)
  })
}

/** `input` without its nulls, or throws 400. */
export function checkInput(kind: ActionKind, schema: TObject, input: Input): Input {
  const given = withoutNullFields(schema, input)
  for (const name of schema.required ?? []) {
    const isMissing = given[name] === undefined || (given[name] === '' && schema.properties[name]?.missing)
    if (isMissing) throw invalidAction(`input.${name} is required for ${kind}`)
  }
  const check = checkOf(schema)
  if (check.accepts(given)) return given
  const { path, expected } = check.faultOf(given)
  throw invalidAction(`input.${path}: expected ${expected}`)
}
