/**
 * Parameters: named values of a graph, which its tasks use as `{"$param": name}`. Pure.
 *
 * A graph declares them with their values in its field `params`. Null means that the parameter has no value yet.
 */
import { MAX_PARAMETERS, MAX_PARAMETERS_CHARACTERS, PARAMETER_NAME } from '../../shared/contract/submission.ts'
import type { Steps } from '../../shared/process/steps.ts'
import { didYouMean, quoted } from '../../shared/request/unknown-names.ts'
import { isObject, type JsonObject } from '../../shared/text/json.ts'
import { nearestName } from '../../shared/text/nearest-name.ts'
import { valueFault } from '../json/depth.ts'
import { jsonBytes } from '../json/pieces.ts'
import { isLargeJson } from './result-file.ts'

export type Parameters = Readonly<JsonObject>

const NAME = new RegExp(PARAMETER_NAME)

/** The fault of the field `params` of a graph; undefined if it is valid. */
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
  const fault = valueFault(params)
  if (fault !== undefined) return `params: ${fault}`
  return isLargeJson(params, MAX_PARAMETERS_CHARACTERS)
    ? `params: expected less than ${MAX_PARAMETERS_CHARACTERS} characters of JSON in all`
    : undefined
}

/** One error text for each parameter without a value. */
export const missingParameters = (params: Parameters): string[] =>
  Object.keys(params).flatMap((name) => (params[name] === null ? [`graph needs parameter ${name}`] : []))

/** Maximum unknown names in one graph that get a suggestion. A suggestion takes up to 3 ms. */
const MAX_SUGGESTIONS = 20

/** The error texts for unknown parameters. */
export class UnknownParameters {
  readonly #params: Parameters
  /** The texts, with suggestions, for the first unknown names. */
  readonly #texts = new Map<string, string>()

  constructor(params: Parameters) {
    this.#params = params
  }

  /** Undefined if `name` is a parameter. */
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

/** Sizes of used parameters as JSON, in bytes. */
const knownBytes = new WeakMap<Parameters, Map<string, number>>()

/** The size of the existing parameter `name`. Computed once. */
export function* parameterBytes(params: Parameters, name: string): Steps<number> {
  const counted = knownBytes.get(params) ?? new Map<string, number>()
  knownBytes.set(params, counted)
  const known = counted.get(name)
  if (known !== undefined) return known
  const bytes = (yield* jsonBytes(params[name], Number.POSITIVE_INFINITY))!
  counted.set(name, bytes)
  return bytes
}
