/** Our schemas are those of TypeBox, to the order of their keys, which the documents made from them have. */
import { expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type TSchema, Type as TypeBox } from '@sinclair/typebox'
import { Check } from '@sinclair/typebox/value'
import fc from 'fast-check'
import { Type } from '../../../shared/contract/schema-builder.ts'

const ROOT = join(import.meta.dir, '../../..')
const sourceOf = (file: string): string => readFileSync(join(ROOT, file), 'utf8')

type Build = (type: Pick<typeof TypeBox, keyof typeof Type>) => TSchema

const options = fc.dictionary(fc.constantFrom('description', 'title', 'expected', 'examples'), fc.string())

/** How to make a schema with either builder. Each call makes its own options. */
const schemas = fc.letrec<{ any: Build }>((tie) => {
  const inner = tie('any')
  const named = (make: (type: Parameters<Build>[0], given: object | undefined) => TSchema) =>
    fc.option(options, { nil: undefined }).map(
      (given): Build =>
        (type) =>
          make(type, given && { ...given }),
    )
  const leaf = fc.oneof(
    named((type, given) => type.String(given)),
    named((type, given) => type.Integer(given)),
    named((type, given) => type.Number(given)),
    named((type, given) => type.Boolean(given)),
    named((type, given) => type.Null(given)),
    named((type, given) => type.Unknown(given)),
    fc.tuple(fc.oneof(fc.string(), fc.integer(), fc.boolean()), options).map(
      ([value, given]): Build =>
        (type) =>
          type.Literal(value, { ...given }),
    ),
  )
  const fields = fc.dictionary(fc.constantFrom('a', 'b', 'c'), inner)
  const made = (parts: Record<string, Build>, type: Parameters<Build>[0]) =>
    Object.fromEntries(Object.entries(parts).map(([name, part]) => [name, part(type)]))
  const node = fc.tuple(inner, fc.array(inner, { maxLength: 2 }), fields, options).chain(([one, some, parts, given]) =>
    fc.constantFrom<Build>(
      (type) => type.Array(one(type), { ...given }),
      (type) => type.Optional(one(type)),
      (type) =>
        type.Union(
          some.map((part) => part(type)),
          { ...given },
        ),
      (type) => type.Tuple(some.map((part) => part(type))),
      (type) => type.Record(type.String(), one(type), { ...given }),
      (type) => type.Record(type.String({ pattern: '^[a-z]$' }), one(type)),
      (type) => type.Object(made(parts, type), { ...given }),
      (type) => type.Partial(type.Object(made(parts, type)), { ...given }),
      (type) => type.Omit(type.Object(made(parts, type)), ['a']),
    ),
  )
  return { any: fc.oneof({ maxDepth: 2 }, leaf, node) }
}).any

test('a schema is the one that TypeBox makes', () => {
  fc.assert(
    fc.property(schemas, fc.jsonValue(), (build, value) => {
      const [ours, theirs] = [build(Type), build(TypeBox)]
      expect(ours).toEqual(theirs) // symbols, too
      expect(JSON.stringify(ours)).toBe(JSON.stringify(theirs))
      expect(Check(ours, value)).toBe(Check(theirs, value))
    }),
  )
})

test('two schemas with one object of options are refused', () => {
  const shared = { description: 'A name.' }
  Type.String(shared)
  expect(() => Type.Array(Type.String(), shared)).toThrow('copy them')
  expect(() => Type.Integer({ ...shared })).toThrow('copy them')
})

test('no other file of a service builds schemas with TypeBox', () => {
  const files = [...new Bun.Glob('{control,runtime,shared}/**/*.ts').scanSync(ROOT)]
  const building = files.filter((file) =>
    /^import \{[^}]*\bType\b[^}]*\} from '@sinclair\/typebox'/m.test(sourceOf(file)),
  )
  expect(building).toEqual(['shared/contract/schema-builder.ts'])
})
