/** Goal: a wrong value is refused, and the field is named as deep as the schema has words for it. */
import { describe, expect, test } from 'bun:test'
import { Type } from '@sinclair/typebox'
import { checkOf, withoutNullFields } from '../../../control/json/schema-check.ts'

const text = Type.String({ expected: 'string' })
const schema = Type.Object(
  {
    name: Type.Optional(text),
    names: Type.Optional(Type.Array(Type.String(), { expected: 'array of strings' })),
    list: Type.Optional(Type.Array(text, { expected: 'list' })),
    map: Type.Optional(Type.Record(Type.String(), text, { expected: 'object of strings' })),
    inner: Type.Optional(Type.Object({ name: Type.Optional(text), count: Type.Optional(Type.Integer()) })),
  },
  { expected: 'object' },
)

test.each([
  [{ name: 1 }, 'name', 'string', 1],
  [{ names: ['a', 7] }, 'names', 'array of strings', ['a', 7]],
  [{ list: ['a', 7] }, 'list[1]', 'string', 7],
  [{ list: 'a' }, 'list', 'list', 'a'],
  [{ map: { 'a/b~c': 1 } }, 'map.a/b~c', 'string', 1],
  [{ inner: { name: [] } }, 'inner.name', 'string', []],
  [{ inner: [] }, 'inner', 'object', []],
  [[], '', 'object', []],
])('%j', (value, path, expected, found) => {
  expect(checkOf(schema).accepts(value)).toBe(false)
  expect(checkOf(schema).faultOf(value)).toMatchObject({ path, expected, found })
})

test('a schema without words is named by the checker', () => {
  const wordless = Type.Object({ inner: Type.Object({ count: Type.Integer() }) })
  expect(checkOf(wordless).faultOf({ inner: { count: 'x' } })).toMatchObject({
    path: 'inner.count',
    expected: 'integer',
  })
})

test('an unknown field of the only object among several forms is named', () => {
  const count = Type.Object({ count: Type.Integer() }, { additionalProperties: false })
  const nullable = Type.Union([count, Type.Null()], { expected: 'object with count' })
  const { text } = checkOf(Type.Object({ a: nullable })).faultOf({ a: { zzz: 1 } })
  expect(text).toBe('unknown field "zzz"')
})

test('a choice of constants is named', () => {
  const choice = Type.Object({ fruit: Type.Union([Type.Literal('apple'), Type.Literal('pear')]) })
  expect(checkOf(choice).faultOf({ fruit: 'aple' })).toEqual({
    ...{ path: 'fruit', expected: 'one of apple, pear', isOneOf: true, found: 'aple' },
    text: 'expected one of apple, pear',
  })
  expect(checkOf(schema).faultOf({ name: 1 }).isOneOf).toBe(false)
})

test('a field that an object does not have is named', () => {
  const strict = Type.Object({ count: Type.Integer() }, { additionalProperties: false, expected: 'object with count' })
  const { path, text } = checkOf(Type.Object({ a: strict })).faultOf({ a: { count: 1, cuont: 2 } })
  expect({ path, text }).toEqual({ path: 'a', text: 'unknown field "cuont" (did you mean "count"?)' })
})

test('a schema is compiled once, whoever asks for its check', () => {
  expect(checkOf(schema)).toBe(checkOf(schema))
  expect(checkOf(schema).compile()).toBe(checkOf(schema).compile())
  expect(checkOf(schema).accepts({ name: 'a', inner: { more: 1 } })).toBe(true)
})

describe('null means absent', () => {
  test('in every object that the schema describes, and not below', () => {
    const given = { name: null, inner: { name: null, count: 1 }, map: { a: null }, names: [null] }
    expect(withoutNullFields(schema, given)).toEqual({ inner: { count: 1 }, map: { a: null }, names: [null] })
  })
})
