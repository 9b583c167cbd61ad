/** Valid values for the JSON Schemas of an OpenAPI document, and values that are nearly valid. */
import fc from 'fast-check'
import type { Schema } from '../../../shared/http/openapi/document.ts'
import { action, anyJson, type Json, numberNamed, odd, textNamed, work } from './safe-values.ts'

export type Schemas = Readonly<Record<string, Schema>>

/** Optional fields of an object that are there at a time. */
const MAX_OPTIONAL_FIELDS = 3

/** Fields without which a request is certain to be refused, although the schema does not require them. */
const NEEDED = new Set([
  ...['tasks', 'id', 'type', 'action', 'kind', 'execution', 'tool_name', 'who', 'jsonrpc', 'method', 'program'],
  ...['script', '$from', 'graph_id'],
])

const REF = '#/components/schemas/'

/** Values that fit `schema`, with meaningful ones where the name of the field tells. */
export function valuesOf(schema: Schema, schemas: Schemas, name = ''): fc.Arbitrary<Json> {
  const inner = (one: unknown, named = name) => (one === true ? anyJson : valuesOf(one as Schema, schemas, named)) // `true` allows any value
  if (typeof schema.$ref === 'string') return inner(schemas[schema.$ref.slice(REF.length)])
  if (name === 'action') return action
  if ('const' in schema) return fc.constant(schema.const as Json)
  if (Array.isArray(schema.enum)) return fc.constantFrom(...(schema.enum as Json[]))
  if (Array.isArray(schema.anyOf)) return fc.oneof(...schema.anyOf.map((one) => inner(one)))
  switch (schema.type) {
    case 'boolean':
      return fc.boolean()
    case 'integer':
    case 'number': {
      const { minimum = -1_000_000, maximum = Number.MAX_SAFE_INTEGER } = schema
      return numberNamed(name, minimum as number, maximum as number)
    }
    case 'string':
      return textNamed(name)
    case 'array':
      if (name === 'tasks') return fc.array(inner(schema.items ?? {}), { minLength: 1, maxLength: 4 }).map(asGraph)
      return fc.array(inner(schema.items ?? {}), { maxLength: 4 })
    case 'object':
      return objectsOf(schema, inner, name)
    default:
      return anyJson
  }
}

type Inner = (schema: unknown, name?: string) => fc.Arbitrary<Json>

function objectsOf(schema: Schema, inner: Inner, name: string): fc.Arbitrary<Json> {
  const properties = Object.entries((schema.properties ?? {}) as Record<string, Schema>)
  if (properties.length === 0) {
    const values = inner(schema.additionalProperties || {}, name)
    return fc.dictionary(fc.constantFrom('a', 'B', 'p', 'team', '__proto__'), values, { maxKeys: 3 })
  }
  const required = new Set((schema.required ?? []) as string[])
  const isNeeded = (field: string) => required.has(field) || NEEDED.has(field)
  const optional = properties.map(([field]) => field).filter((field) => !isNeeded(field))
  const isTask = 'depends_on' in (schema.properties as object)
  return fc
    .record({
      kept: fc.subarray(optional, { maxLength: Math.min(MAX_OPTIONAL_FIELDS, optional.length) }),
      values: fc.record(Object.fromEntries(properties.map(([field, one]) => [field, inner(one, field)]))),
      ...(isTask && { work }),
    })
    .map(({ kept, values, work: does }) => {
      const fields = Object.entries(values).filter(([field]) => isNeeded(field) || kept.includes(field))
      const plain = Object.fromEntries(fields) as Record<string, Json>
      if ('program' in plain && 'script' in plain) delete plain[plain.kind === 'script' ? 'program' : 'script']
      if (does === undefined) return plain
      const { type: _, tool_name: __, params: ___, input: ____, ...others } = plain
      return { ...others, ...does }
    })
}

/** Makes the ids of tasks distinct, and their dependencies tasks before them. */
function asGraph(tasks: Json[]): Json[] {
  return (tasks as Record<string, Json>[]).map((task, i) => {
    const { depends_on: wanted, when, max_parallel, fail_fast, dynamic, ...rest } = task
    const earlier = Array.isArray(wanted) ? [...new Set(wanted.map((_, n) => `t${(i * 7 + n) % Math.max(1, i)}`))] : []
    const hasCondition = i > 0 && typeof when === 'object' && when !== null && !Array.isArray(when)
    return {
      ...rest,
      ...('for_each' in rest && max_parallel !== undefined && { max_parallel }),
      ...('for_each' in rest && fail_fast !== undefined && { fail_fast }),
      ...(!['for_each', 'tasks', 'cache'].some((name) => name in rest) && dynamic !== undefined && { dynamic }),
      id: `t${i}`,
      ...(i > 0 && earlier.length > 0 && { depends_on: earlier }),
      ...(hasCondition && { depends_on: ['t0'], when: { ...when, $from: 't0' } }),
    }
  })
}

/** What is done to a valid value. */
interface Damage {
  /** Which member is taken at each level. */
  readonly path: readonly number[]
  readonly how: 'replace' | 'remove' | 'add' | 'repeat'
  readonly value: Json
  readonly name: string
}

const damage: fc.Arbitrary<Damage> = fc.record({
  path: fc.array(fc.nat(12), { minLength: 1, maxLength: 5 }),
  how: fc.constantFrom('replace', 'replace', 'replace', 'remove', 'add', 'repeat'),
  value: odd,
  name: fc.constantFrom(
    '__proto__',
    'depend_on',
    'x-note',
    '',
    'constructor',
    'profil',
    'retries',
    '$from',
    'a\u0000b',
  ),
})

/** Values of `arbitrary` with one to three faults. */
export const damaged = (arbitrary: fc.Arbitrary<Json>): fc.Arbitrary<Json> =>
  fc.tuple(arbitrary, fc.array(damage, { minLength: 1, maxLength: 3 })).map(([value, faults]) => {
    const whole = { value: structuredClone(value) }
    for (const fault of faults) harm(whole, structuredClone(fault)) // `odd` gives the same objects again
    return whole.value
  })

type Members = Record<string, Json>

function harm(whole: { value: Json }, { path, how, value, name }: Damage): void {
  let at = whole as Members
  let key = 'value'
  for (const step of path) {
    const next = at[key]
    if (typeof next !== 'object' || next === null) break
    const keys = Object.keys(next)
    if (keys.length === 0) break
    at = next as Members
    key = keys[step % keys.length]!
  }
  const found = at[key]
  if (how === 'replace') at[key] = value
  else if (how === 'remove') delete at[key]
  else if (how === 'repeat') at[key] = Array.from({ length: 50 }, () => structuredClone(found ?? null))
  else if (typeof found === 'object' && found !== null && !Array.isArray(found)) define(found, name, value)
  else define(at, name, value)
}

/** Also for `__proto__`, which an assignment would take for something else. */
const define = (object: object, name: string, value: Json): void => {
  Object.defineProperty(object, name, { value, enumerable: true, configurable: true, writable: true })
}
