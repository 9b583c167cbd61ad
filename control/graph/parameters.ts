/**
 * Parameters: values that a graph has under names, and its tasks use as `{"$param": name}`. Pure.
 *
 * A graph declares them in its field `params`, with their values. A null means that the value is still to be given.
 */
import { MAX_PARAMETERS, MAX_PARAMETERS_CHARACTERS, PARAMETER_NAME } from '../../shared/contract/control.ts'
import { isObject, type JsonObject } from '../../shared/json.ts'
import { nearestName } from '../../shared/nearest-name.ts'
import type { Steps } from '../../shared/steps.ts'
import { didYouMean, quoted } from '../../shared/unknown-names.ts'
import { isWithinDepth, MAX_JSON_DEPTH } from '../json/depth.ts'
import { jsonBytes } from '../json/pieces.ts'
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

/** Names for which the nearest parameter is looked for, in one graph: it takes up to 3 ms for each. */
const MAX_SUGGESTIONS = 20

/** The texts for names that are no parameters of a graph. */
export class UnknownParameters {
  readonly #params: Parameters
  /** For the first unknown names. */
  readonly #texts = new Map<string, string>()

  constructor(params: Parameters) {
    this.#params = params
  }

  /** Undefined where `name` is a parameter. */
  textOf(name: string): string | undefined {
    if (Object.hasOwn(this.#params, name)) return undefined
    const known = this.#texts.get(name)
    if (known !== undefined) return known
    const text = `uses unknown parameter ${quoted(name)}`
    if (this.#texts.size === MAX_SUGGESTIONS) return text
    const suggestion = `${text}${didYouMean(nearestName(name, Object.keys(this.#params)))}`
    this.#texts.set(name, suggestion)
    return suggestion
  }
}

/** Bytes of the JSON of parameters that tasks use. */
const knownBytes = new WeakMap<Parameters, Map<string, number>>()

/** Bytes of the JSON of the parameter `name`, which `params` has. Counted once. */
export function* parameterBytes(params: Parameters, name: string): Steps<number> {
  const counted = knownBytes.get(params) ?? new Map<string, number>()
  knownBytes.set(params, counted)
  const known = counted.get(name)
  if (known !== undefined) return known
  const bytes = (yield* jsonBytes(params[name], Number.POSITIVE_INFINITY))!
  counted.set(name, bytes)
  return bytes
}
