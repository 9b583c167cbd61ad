/**
 * JSON Pointer (RFC 6901): names a place in a JSON value, such as `/result/items/0`. Pure.
 *
 * A pointer sees what the JSON text of the value would show: own properties of objects, and elements of arrays by
 * index. It never reaches `length`, `constructor` or anything else of a prototype.
 */

/** Characters of a pointer. Names of fields are rarely longer than a few dozen, and an error repeats the pointer. */
export const MAX_POINTER_CHARACTERS = 1_000

/** The index of an array element: no sign, no leading zero. */
const INDEX = /^(?:0|[1-9]\d*)$/

/** A `~` that begins neither `~0` nor `~1`. */
const LOOSE_TILDE = /~(?![01])/

/** The fault of `pointer`; undefined if it is well formed. */
export function pointerFault(pointer: string): string | undefined {
  if (pointer.length > MAX_POINTER_CHARACTERS) {
    return `expected at most ${MAX_POINTER_CHARACTERS} characters, got ${pointer.length}`
  }
  if (pointer !== '' && !pointer.startsWith('/')) return 'expected a JSON Pointer, which begins with "/"'
  return LOOSE_TILDE.test(pointer) ? 'expected a JSON Pointer, with "~0" for "~" and "~1" for "/" in a name' : undefined
}

export type Pointed = { readonly found: true; readonly value: unknown } | { readonly found: false }

const NOTHING: Pointed = { found: false }

/** The value at `pointer`, which is well formed, in the JSON value `value`. `""` is the whole value. */
export function pointerValue(value: unknown, pointer: string): Pointed {
  if (pointer === '') return { found: true, value }
  let at = value
  for (const name of pointer.slice(1).split('/')) {
    const key = name.includes('~') ? name.replaceAll('~1', '/').replaceAll('~0', '~') : name
    if (typeof at !== 'object' || at === null || !Object.hasOwn(at, key)) return NOTHING
    if (Array.isArray(at) && !INDEX.test(key)) return NOTHING
    at = (at as Record<string, unknown>)[key]
  }
  return { found: true, value: at }
}

/** The parts of `pointer` before and after its first name `*`; undefined if it has none. */
export function splitAtStar(pointer: string): { readonly before: string; readonly after: string } | undefined {
  const [, before, after = ''] = /^(.*?)\/\*(\/.*)?$/s.exec(pointer) ?? []
  return before === undefined ? undefined : { before, after }
}
