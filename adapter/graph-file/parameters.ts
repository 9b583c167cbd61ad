/** Values of parameters, as `--set` gives them. Pure. */
import { UsageError } from '../../shared/contract/errors.ts'
import { jsonFault, MAX_JSON_BYTES } from '../../shared/graph-file/json-fault.ts'
import { CallFailed } from '../../shared/http/client.ts'
import { didYouMean } from '../../shared/request/unknown-names.ts'
import { isObject, jsonOrUndefined } from '../../shared/text/json.ts'
import { nearestName } from '../../shared/text/nearest-name.ts'

export type ParameterValues = ReadonlyMap<string, unknown>

/** `name=text` or `name:=json`; of a name that is given twice the last value. Throws `UsageError`. */
export function parametersIn(given: readonly string[]): ParameterValues {
  const values = new Map<string, unknown>()
  for (const text of given) {
    const [, name, colon, value] = /^([^=:]+)(:?)=([\s\S]*)$/.exec(text) ?? []
    if (name === undefined || value === undefined) {
      throw new UsageError(`invalid --set ${text}: expected name=value, or name:=json`)
    }
    values.set(name, colon === '' ? value : jsonValue(name, value))
  }
  return values
}

function jsonValue(name: string, text: string): unknown {
  const value = jsonOrUndefined(text)
  if (value === undefined) {
    throw new UsageError(`invalid --set ${name}:=${text}: this is no JSON (${name}=${text} gives it as text)`)
  }
  const fault = jsonFault(value, MAX_JSON_BYTES)
  if (fault !== undefined) throw new UsageError(`invalid --set ${name}:=${text}: ${fault}`)
  return value
}

/**
 * The graph with these values in place of its defaults. `name` is its file in errors. Throws `UsageError` for a parameter that
 * the graph does not declare.
 */
export function withParameters(bytes: Uint8Array, values: ParameterValues, name: string): Uint8Array {
  if (values.size === 0) return bytes
  const graph = jsonOrUndefined(new TextDecoder().decode(bytes))
  if (!isObject(graph)) throw new CallFailed(`${name} is no JSON object, so --set has nothing to replace`)
  const declared = isObject(graph.params) ? graph.params : {}
  for (const parameter of values.keys()) if (!Object.hasOwn(declared, parameter)) throw undeclared(parameter, declared)
  // The graph is written anew, which would round large numbers.
  const fault = jsonFault(graph, MAX_JSON_BYTES)
  if (fault !== undefined) throw new CallFailed(`${name}: ${fault}`)
  const params = { ...declared, ...Object.fromEntries(values) }
  return new TextEncoder().encode(JSON.stringify({ ...graph, params }))
}

function undeclared(parameter: string, declared: object): UsageError {
  const names = Object.keys(declared)
  const known = names.length === 0 ? 'the graph declares none' : `the graph declares: ${names.join(', ')}`
  return new UsageError(
    `unknown parameter ${JSON.stringify(parameter)}${didYouMean(nearestName(parameter, names))} (${known})`,
  )
}
