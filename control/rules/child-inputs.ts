/**
 * How much the inputs of the children of tasks with `for_each` will store, as far as that is certain before a task runs. Pure.
 *
 * Only a small input is stored itself. So a child counts only if its input is certain to be small: all its values are known.
 */
import type { Steps } from '../../shared/process/steps.ts'
import type { Parameters } from './parameters.ts'
import { findPlaceholders } from './placeholders.ts'
import { aboutCharacters, LARGE_RESULT_CHARACTERS } from './result-file.ts'
import type { ValidTask } from './validate.ts'

export class ChildInputs {
  readonly #params: Parameters
  /** Sizes of the elements of lists. Many tasks may have the same parameter for a list. */
  readonly #known = new Map<readonly unknown[], readonly number[]>()

  constructor(params: Parameters = {}) {
    this.#params = params
  }

  /** Bytes of the whole elements and parameters in the inputs that are stored, which is the least that they have. */
  *bytes({ input, params }: Pick<ValidTask, 'input' | 'params'>, list: readonly unknown[]): Steps<number> {
    const given = input ?? params
    let ofParameters = 0
    let elements = 0
    let wholeElements = 0
    const { places } = yield* findPlaceholders(given)
    for (const { placeholder } of places) {
      if (placeholder.kind === 'reference') return 0
      if (placeholder.kind === 'parameter' && Object.hasOwn(this.#params, placeholder.name)) {
        ofParameters += sizeOf(this.#params[placeholder.name])
        if (ofParameters >= LARGE_RESULT_CHARACTERS) return 0
      }
      if (placeholder.kind !== 'item') continue
      const { path, as = 'text' } = placeholder
      if (as !== 'text') return 0 // the text of a value may be longer than the value
      elements++
      if (path === '' && placeholder.as === undefined) wholeElements++
    }
    const left = LARGE_RESULT_CHARACTERS - sizeOf(given) - ofParameters
    if (elements === 0) return left > 0 ? list.length * ofParameters : 0
    let bytes = 0
    for (const size of yield* this.#sizesOf(list))
      if (elements * size < left) bytes += ofParameters + wholeElements * size
    yield
    return bytes
  }

  *#sizesOf(list: readonly unknown[]): Steps<readonly number[]> {
    const known = this.#known.get(list)
    if (known !== undefined) return known
    const sizes: number[] = []
    for (const element of list) {
      sizes.push(sizeOf(element))
      yield
    }
    this.#known.set(list, sizes)
    return sizes
  }
}

/** As inputs are measured. Stops counting where an input is large. */
const sizeOf = (value: unknown): number => aboutCharacters(value, LARGE_RESULT_CHARACTERS)
