/** Sizes of the inputs that the children of tasks with `for_each` will get, as far as they are known before a task runs. Pure. */
import type { Steps } from '../../shared/steps.ts'
import { jsonBytes } from '../json/pieces.ts'
import { type Parameters, parameterBytes } from './parameters.ts'
import { findPlaceholders } from './placeholders.ts'
import type { ValidTask } from './validate.ts'

export class ChildInputs {
  readonly #params: Parameters
  /** Bytes of lists. Many tasks may have the same parameter for a list. */
  readonly #known = new Map<readonly unknown[], number>()

  constructor(params: Parameters = {}) {
    this.#params = params
  }

  /** Bytes of JSON of the whole elements and parameters in the inputs of all children, which is the least that they have. */
  *bytes({ input, params }: ValidTask, list: readonly unknown[]): Steps<number> {
    let elements = 0
    let ofParameters = 0
    const { places } = yield* findPlaceholders(input ?? params)
    for (const { placeholder } of places) {
      if (placeholder.kind === 'item' && placeholder.path === '' && placeholder.as === undefined) elements++
      if (placeholder.kind !== 'parameter' || !Object.hasOwn(this.#params, placeholder.name)) continue
      ofParameters += yield* parameterBytes(this.#params, placeholder.name)
    }
    return list.length * ofParameters + (elements === 0 ? 0 : elements * (yield* this.#listBytes(list)))
  }

  /** Without brackets and commas. */
  *#listBytes(list: readonly unknown[]): Steps<number> {
    const bytes = this.#known.get(list) ?? (yield* jsonBytes(list, Number.POSITIVE_INFINITY))! - list.length - 1
    this.#known.set(list, bytes)
    return bytes
  }
}
