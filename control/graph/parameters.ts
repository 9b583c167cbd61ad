/**
 * Parameters: values that a graph has under names, and its tasks use as `{"$param": name}`. Pure.
 *
 * A graph declares them in its field `params`, with their values. A null means that the value is still to be given.
 */
import { MAX_PARAMETERS, MAX_PARAMETERS_CHARACTERS, PARAMETER_NAME } from '../../shared/contract/control.ts'
import { isObject, type JsonObject } from '../../shared/json.ts'
import { nearestName } from '../../shared/nearest-name.ts'
import { didYouMean, quoted } from '../../shared/unknown-names.ts'
import { isWithinDepth, MAX_JSON_DEPTH } from '../json/depth.ts'
import { isLargeJson } from './result-file.ts'

export type Parameters = Readonly<JsonObject>

const NAME = new RegExp(PARAMETER_NAME)

/** What is wrong with the field `params` of a graph; undefined where nothing is. */
export function parametersFault(params: unknown): string | undefined {
  if (params == null) return undefined
  if (!isObject(params)) return 'params: expected object of parameters'
  const names = Object.keys(params)
  if (names.length > MAX_PARAMETERS) {
    return `params: expected at most ${MAX_PARAMETERS} parameters, got ${names.length}`
  }
  const odd = names.find((name) => !NAME.test(name))
  if (odd !== undefined) {
    return `params: expected names of 1 to 63 letters, digits, ".", "_", "/" or "-", got ${quoted(odd)}`
  }
  if (!isWithinDepth(params)) return `params: nested deeper than ${MAX_JSON_DEPTH} levels`
  return isLargeJson(params, MAX_PARAMETERS_CHARACTERS)
    ? `params: expected less than ${MAX_PARAMETERS_CHARACTERS} characters of JSON in all`
    : undefined
}

/** A text for each parameter without a value. */
export const missingParameters = (params: Parameters): string[] =>
  Object.keys(params).flatMap((name) => (params[name] === null ? [`graph needs parameter ${name}`] : []))

/** The text for a name that is no parameter of the graph; undefined where it is one. */
export const unknownParameter = (name: string, params: Parameters): string | undefined =>
  Object.hasOwn(params, name)
    ? undefined
    : `uses unknown parameter ${quoted(name)}${didYouMean(nearestName(name, Object.keys(params)))}`
