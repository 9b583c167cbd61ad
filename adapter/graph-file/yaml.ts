/**
 * Graphs in YAML 1.2, as JSON. Bun's parser reads them, so `on`, `no` and dates are text.
 *
 * JSON cannot hold everything that YAML can. What would be lost or changed is refused with its place: an alias that contains
 * itself, aliases that expand to more than a graph may have, numbers that are no JSON or too large to be exact.
 */
import { CallFailed } from '../../shared/http-client.ts'
import { isObject } from '../../shared/json.ts'

/** Bytes of a graph as JSON, about: four times what a service accepts by default. */
export const MAX_JSON_BYTES = 256 * 1024 * 1024

/** Values within values. The parser gives up at some 4,000. */
const MAX_DEPTH = 1_000

/** `name` is the file in errors. Throws `CallFailed`. */
export async function jsonOfYaml(text: string, name: string): Promise<string> {
  const value = await parsed(text, name)
  if (value === null) throw new CallFailed(`${name} holds nothing: expected an object with tasks`)
  if (Array.isArray(value)) {
    throw new CallFailed(`${name} is a list, or several documents: expected one object with tasks`)
  }
  if (!isObject(value)) throw new CallFailed(`${name} is a ${typeof value}: expected an object with tasks`)
  const fault = jsonFault(value, MAX_JSON_BYTES)
  if (fault !== undefined) throw new CallFailed(`${name}: ${fault}`)
  return JSON.stringify(value)
}

async function parsed(text: string, name: string): Promise<unknown> {
  try {
    return Bun.YAML.parse(text)
  } catch (error) {
    if (error instanceof RangeError) throw new CallFailed(`${name}: values are nested too deeply`)
    const { line, column, message } = await placeOfFault(text, error as Error)
    const place = line === undefined ? '' : ` line ${line}, column ${column}:`
    throw new CallFailed(`${name}:${place} ${message}`)
  }
}

interface Fault {
  readonly line?: number
  readonly column?: number
  readonly message: string
}

/** `Bun.YAML.parse` does not tell where it met a fault; the loader of modules, which has the same parser, does. */
async function placeOfFault(text: string, error: Error): Promise<Fault> {
  const message = error.message.replace(/^YAML Parse error: /, '')
  const url = URL.createObjectURL(new Blob([text]))
  try {
    await import(url, { with: { type: 'yaml' } })
    return { message }
  } catch (fault) {
    const { line, column } = (fault as { position?: { line?: number; column?: number } | null }).position ?? {}
    return line === undefined || column === undefined ? { message } : { line, column, message }
  } finally {
    URL.revokeObjectURL(url)
  }
}

/** What of `value` JSON cannot hold, with its place; undefined for nothing. */
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

/** Of a value and what separates it from the next one. */
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
