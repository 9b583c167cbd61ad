/** The input of a tool: nulls are absent, and a fault names its field. */
import { expect, test } from 'bun:test'
import { Type } from '@sinclair/typebox'
import { checkToolInput } from '../../../control/mcp-server/tool.ts'
import { TOOLS } from '../../../control/mcp-server/tools.ts'

const schema = Type.Object({
  id: Type.String({ expected: 'string' }),
  count: Type.Optional(Type.Integer({ minimum: 1, expected: 'integer from 1' })),
})

test.each<[unknown, string]>([
  [undefined, 'invalid input: id is required'],
  [{}, 'invalid input: id is required'],
  [{ id: '' }, 'invalid input: id is required'],
  [{ id: null }, 'invalid input: id is required'],
  [{ id: 7 }, 'invalid input: id: expected string, got number'],
  [{ id: 'a', count: 0 }, 'invalid input: count: expected integer from 1, got number'],
  ['text', 'invalid input: expected object, got string'],
  [[], 'invalid input: expected object, got array'],
])('%j is refused: %s', (input, message) => {
  expect(() => checkToolInput(schema, input, 'refuse')).toThrow(message)
})

test('nulls are left out, fields of the caller are left alone', () => {
  expect(checkToolInput(schema, { id: 'a', count: null, 'x-more': 1 }, 'refuse')).toEqual({ id: 'a', 'x-more': 1 })
})

test('unknown fields are refused, unless they are to be ignored', () => {
  const message = 'invalid input: unknown field "coumt" (did you mean "count"?)'
  expect(() => checkToolInput(schema, { id: 'a', coumt: 1 }, 'refuse')).toThrow(message)
  expect(checkToolInput(schema, { id: 'a', coumt: 1 }, 'ignore')).toEqual({ id: 'a', coumt: 1 })
})

test('every field that can be wrong has words for it', () => {
  const mute = TOOLS.flatMap(({ name, input }) =>
    Object.entries(input.properties)
      .filter(([, property]) => property.expected === undefined && property.anyOf === undefined)
      .map(([field]) => `${name}.${field}`),
  )
  expect(mute).toEqual([])
})
