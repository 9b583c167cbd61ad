/**
 * Graphs in YAML 1.2, as JSON. Bun's parser reads them, so `on`, `no` and dates are text.
 *
 * JSON cannot hold everything that YAML can. What would be lost or changed is refused with its place: an alias that contains
 * itself, aliases that expand to more than a graph may have, numbers that are no JSON or too large to be exact, a key that is
 * given twice.
 */
import { CallFailed } from '../http/client.ts'
import { isObject } from '../text/json.ts'
import { jsonFault, MAX_JSON_BYTES } from './json-fault.ts'
import { placeInYaml, yamlKeyFault } from './yaml-keys.ts'

/** `name` is the file in errors, `shape` what it should hold. Throws `CallFailed`. */
export const jsonOfYaml = async (text: string, name: string, shape?: string): Promise<string> =>
  JSON.stringify(await objectOfYaml(text, name, shape))

/** As `jsonOfYaml`, as a value. */
export async function objectOfYaml(
  text: string,
  name: string,
  shape = 'object with tasks',
): Promise<Record<string, unknown>> {
  const value = await parsed(text, name)
  if (value === null) throw new CallFailed(`${name} holds nothing: expected an ${shape}`)
  if (Array.isArray(value)) throw new CallFailed(`${name} is a list, or several documents: expected one ${shape}`)
  if (!isObject(value)) throw new CallFailed(`${name} is a ${typeof value}: expected an ${shape}`)
  const keyFault = yamlKeyFault(text)
  if (keyFault !== undefined) throw new CallFailed(`${name}: line ${keyFault.line}: ${keyFault.message}`)
  const fault = jsonFault(value, MAX_JSON_BYTES)
  if (fault !== undefined) throw new CallFailed(`${name}: ${fault}`)
  return value
}

/** Characters of a value in an error. */
const MAX_SHOWN_VALUE = 60

/**
 * A refusal of the service in the terms of the file: `invalid JSON: tasks[0].timeout: expected …` names the line, the column
 * and the value, or those of the key if that is unknown. Another text stays as it is.
 */
export function refusalInYaml(message: string, text: string, name: string): string {
  const [, at, detail] = /^invalid JSON: ([^\s:]+): (.*)$/s.exec(message) ?? []
  if (at === undefined) return message
  const path = Array.from(at.matchAll(/\[(\d+)\]|([^.[\]]+)/g), ([, index, key]) => (index ? Number(index) : key!))
  const [, unknownKey] = /^unknown field "([^"]+)"/.exec(detail!) ?? []
  const place =
    unknownKey === undefined ? placeInYaml(text, path) : placeInYaml(text, [...path, ...unknownKey.split('.')], 'key')
  const where = place === undefined ? '' : ` line ${place.line}, column ${place.column}:`
  const value = JSON.stringify(valueAt(Bun.YAML.parse(text), path))?.slice(0, MAX_SHOWN_VALUE)
  const isShown = value !== undefined && unknownKey === undefined && !/\bgot\b/.test(detail!)
  return `${name}:${where} ${at}: ${detail}${isShown ? `, got ${value}` : ''}`
}

const valueAt = (value: unknown, path: readonly (string | number)[]): unknown =>
  path.reduce<unknown>((inner, key) => (inner as Readonly<Record<string, unknown>> | undefined | null)?.[key], value)

async function parsed(text: string, name: string): Promise<unknown> {
  try {
    return Bun.YAML.parse(text)
  } catch (error) {
    if (error instanceof RangeError) throw new CallFailed(`${name}: values are nested too deeply`)
    const { line, column, message } = await placeOfFault(text, error as Error)
    const place = line === undefined ? '' : ` line ${line}, column ${column}:`
    throw new CallFailed(`${name}:${place} invalid YAML: ${message}`)
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
