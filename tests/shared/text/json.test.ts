/** What counts as an object, and what a text is that is not JSON. */
import { expect, test } from 'bun:test'
import { isGiven, isObject, jsonOrUndefined, jsonTypeOf } from '../../../shared/text/json.ts'

test('an object of JSON is neither null nor an array', () => {
  expect([{}, { a: 1 }, Object.create(null)].map(isObject)).toEqual([true, true, true])
  expect([null, [], 'text', 1, true, undefined].some(isObject)).toBe(false)
})

test('types have the names of JSON', () => {
  expect([null, [], {}, '', 0, false].map(jsonTypeOf)).toEqual([
    'null',
    'array',
    'object',
    'string',
    'number',
    'boolean',
  ])
})

test('a field that is null counts as absent', () => {
  expect([undefined, null, 0, '', false].map(isGiven)).toEqual([false, false, true, true, true])
})

test('a text that is not JSON is undefined', () => {
  expect(['{"a":1}', 'null', '"', ''].map(jsonOrUndefined)).toEqual([{ a: 1 }, null, undefined, undefined])
})
