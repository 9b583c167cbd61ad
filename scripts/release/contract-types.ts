/**
 * client/contract.ts for programs without the schema library: each type that is derived from a schema is written out, with
 * the descriptions of the schema.
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { EVENT_KINDS } from '../../shared/contract/events.ts'

const CLIENT = join(import.meta.dir, '../../client')

interface Schema {
  readonly type?: string
  readonly title?: string
  readonly description?: string
  readonly const?: unknown
  readonly anyOf?: readonly Schema[]
  readonly items?: Schema | readonly Schema[]
  readonly properties?: Readonly<Record<string, Schema>>
  readonly required?: readonly string[]
  readonly patternProperties?: Readonly<Record<string, Schema>>
}

/** The text of the declarations. */
export async function contractTypes(): Promise<string> {
  const text = readFileSync(join(CLIENT, 'contract.ts'), 'utf8')
  const modules: Record<string, Readonly<Record<string, unknown>>> = {}
  for (const [, name, path] of text.matchAll(/^import type \* as (\w+) from '(.+)'$/gm))
    modules[name!] = await import(join(CLIENT, path!))
  const named = (helper: string, module: string, name: string): Schema => {
    const value = modules[module]![name]
    return helper === 'OneOf' ? literals(value as readonly string[]) : (value as Schema)
  }
  const names = new Map<string, string>()
  for (const [, type, helper, module, name] of text.matchAll(
    /^export type (\w+) = (OneOf|Sent|Taken)<typeof (\w+)\.(\w+)>/gm,
  ))
    names.set(keyOf(named(helper!, module!, name!)), type!)
  const declarations = text.slice(text.indexOf('/** State of a task. */'))
  return declarations
    .replaceAll(/(OneOf|Sent|Taken)<typeof (\w+)\.(\w+)>/g, (_, helper, module, name) =>
      new Writer(names, helper === 'Taken').whole(named(helper, module, name)),
    )
    .replace('Payloads<typeof events.EVENT_KINDS>', payloads(new Writer(names, false)))
}

const literals = (values: readonly string[]): Schema => ({ anyOf: values.map((value) => ({ const: value })) })

/** What decides whether two schemas are the same type. A choice is its values; where it is used says what it is about. */
const keyOf = ({ description: _, title: __, ...schema }: Schema): string => {
  const values = schema.anyOf?.map(({ const: value }) => value)
  return JSON.stringify(values === undefined || values.includes(undefined) ? schema : values)
}

function payloads(writer: Writer): string {
  const kinds = Object.entries(EVENT_KINDS).map(
    ([kind, { when, payload }]) => `/** ${when} */\nreadonly ${kind}: EventHeader & ${writer.whole(payload as Schema)}`,
  )
  return block(kinds)
}

class Writer {
  /** Names of schemas, by what decides about them. */
  readonly #names: ReadonlyMap<string, string>
  /** Whether a field that may be absent may also be undefined. */
  readonly #isTaken: boolean

  constructor(names: ReadonlyMap<string, string>, isTaken: boolean) {
    this.#names = names
    this.#isTaken = isTaken
  }

  /** The type of a schema, without its name. */
  whole(schema: Schema): string {
    const { type, anyOf, items, properties, required = [], patternProperties } = schema
    if (schema.const !== undefined) return typeof schema.const === 'string' ? `'${schema.const}'` : String(schema.const)
    if (anyOf !== undefined) return [...new Set(anyOf.map((each) => this.#type(each)))].join(' | ')
    if (Array.isArray(items)) return `readonly [${items.map((each) => this.#type(each)).join(', ')}]`
    if (type === 'array') return `readonly ${bracketed(this.#type(items as Schema))}[]`
    if (properties !== undefined)
      return block(Object.entries(properties).map(([name, field]) => this.#field(name, field, required.includes(name))))
    const [values] = Object.values(patternProperties ?? {})
    if (values !== undefined) return `Readonly<Record<string, ${this.#type(values)}>>`
    if (type === 'integer' || type === 'number') return 'number'
    if (type === 'string' || type === 'boolean' || type === 'null') return type
    if (type === undefined) return 'unknown'
    throw new Error(`no type for ${JSON.stringify(schema)}`)
  }

  #type(schema: Schema): string {
    return this.#names.get(keyOf(schema)) ?? this.whole(schema)
  }

  #field(name: string, schema: Schema, isRequired: boolean): string {
    const comment = schema.description === undefined ? '' : `/** ${schema.description.replaceAll('*/', '* /')} */\n`
    const type = this.#type(schema)
    const absent = this.#isTaken && !isRequired && type !== 'unknown' ? ' | undefined' : ''
    return `${comment}readonly ${name}${isRequired ? '' : '?'}: ${type}${absent}`
  }
}

const block = (members: readonly string[]): string =>
  members.length === 0 ? '{}' : `{\n${members.join('\n').replaceAll(/^(?=.)/gm, '  ')}\n}`

const bracketed = (type: string): string => (/^\w+$/.test(type) ? type : `(${type})`)
