/** Goal: a wrong value is refused, and the field is named as deep as the schema has words for it. */
import { describe, expect, test } from 'bun:test'
import { Type } from '@sinclair/typebox'
import fc from 'fast-check'
import { CHECKS_BEFORE_COMPILING, checkOf, SchemaCheck, withoutNullFields } from '../../../control/json/schema-check.ts'
import { TaskInput } from '../../../shared/contract/submission.ts'
import type { Schema } from '../../../shared/http/openapi/document.ts'
import { damaged, valuesOf } from '../../support/fuzz/schema-values.ts'

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

test('a schema has one check, whoever asks for it', () => {
  expect(checkOf(schema)).toBe(checkOf(schema))
  expect(checkOf(schema).accepts({ name: 'a', inner: { more: 1 } })).toBe(true)
})

test('a check says the same before and after the schema is compiled', () => {
  const compiled = new SchemaCheck(TaskInput)
  for (let i = 0; i <= CHECKS_BEFORE_COMPILING; i++) compiled.accepts({})
  const tasks = valuesOf(TaskInput as Schema, {})
  let accepted = 0
  const property = fc.property(fc.oneof(tasks, damaged(tasks)), (value) => {
    const answer = new SchemaCheck(TaskInput).accepts(value)
    expect(compiled.accepts(value)).toBe(answer)
    if (answer) accepted++
  })
  fc.assert(property, { numRuns: 300 })
  expect(accepted).toBeGreaterThan(0)
})

describe('null means absent', () => {
  test('in every object that the schema describes, and not below', () => {
    const given = { name: null, inner: { name: null, count: 1 }, map: { a: null }, names: [null] }
    expect(withoutNullFields(schema, given)).toEqual({ inner: { count: 1 }, map: { a: null }, names: [null] })
  })
})
