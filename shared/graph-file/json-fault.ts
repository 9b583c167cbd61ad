/** Finds values that JSON cannot represent, or would change. Pure. */

/** Bytes of a graph as JSON, about: four times what a service accepts by default. */
export const MAX_JSON_BYTES = 256 * 1024 * 1024

/** Depth of nesting. The YAML parser fails at about 4,000. */
const MAX_DEPTH = 1_000

/** The first value that JSON cannot represent, with its path. Undefined if there is none. */
export function jsonFault(value: unknown, maxBytes: number): string | undefined {
  const path: (string | number)[] = []
  let bytes = 0
  const visit = (part: unknown): string | undefined => {
    bytes += MIN_VALUE_BYTES
    if (typeof part === 'string') bytes += part.length
    if (bytes > maxBytes) return `its aliases expand to more than ${maxBytes} bytes of JSON`
    if (typeof part === 'number') return numberFault(part)
    if (typeof part !== 'object' || part === null) return undefined
    if (path.length === MAX_DEPTH) return `values are nested more than ${MAX_DEPTH} deep, or an alias contains itself`
    const entries = Array.isArray(part) ? part.entries() : Object.entries(part)
    for (const [key, inner] of entries) {
      if (typeof key === 'string') bytes += key.length
      path.push(key)
      const fault = visit(inner)
      if (fault !== undefined) return fault
      path.pop()
    }
    return undefined
  }
  const fault = visit(value)
  if (fault === undefined) return undefined
  return path.length === 0 || path.length === MAX_DEPTH ? fault : `${pathText(path)}: ${fault}`
}

/** Least bytes of a value with its separator. */
const MIN_VALUE_BYTES = 2

function numberFault(number: number): string | undefined {
  if (!Number.isFinite(number)) return `${number} is no number of JSON`
  const isExact = !Number.isInteger(number) || Number.isSafeInteger(number)
  return isExact ? undefined : `${number} is too large to be exact: write it as text, in quotes`
}

/** `tasks[0].params.args`. */
const pathText = (path: readonly (string | number)[]): string =>
  path
    .map((key) => (typeof key === 'number' ? `[${key}]` : `.${key}`))
    .join('')
    .replace(/^\./, '')
