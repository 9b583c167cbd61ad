/** JSON values: which type one has, and a text as one. Pure. */

export type JsonObject = Record<string, unknown>

/** Whether `value` is an object in the sense of JSON: not null, not an array. */
export const isObject = (value: unknown): value is JsonObject =>
  value !== null && typeof value === 'object' && !Array.isArray(value)

/** The JSON type of `value` as error texts name it: `array`, `null`, `object`, `string`, ... */
export const jsonTypeOf = (value: unknown): string =>
  Array.isArray(value) ? 'array' : value === null ? 'null' : typeof value

/** Whether a field has a value: null means the same as absent in every request and answer. */
export const isGiven = (value: unknown): boolean => value !== undefined && value !== null

/** A copy of `given` without the fields that are null. A name like `__proto__` is one like any other. */
export const withoutNulls = (given: Readonly<JsonObject>): JsonObject =>
  Object.fromEntries(Object.entries(given).filter(([, value]) => value !== null))

/** The value that `text` holds, or undefined if it is not JSON. */
export function jsonOrUndefined(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
