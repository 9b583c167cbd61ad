/** Goal: parameters are taken as given or refused with the text of the contract. Method: a schema with every kind. */
import { describe, expect, test } from 'bun:test'
import { Type } from '@sinclair/typebox'
import { ExecutionError } from '../../../control/executors/executor.ts'
import { ToolParams } from '../../../control/executors/params.ts'

const params = new ToolParams(
  'http',
  Type.Object({
    url: Type.String({ missing: 'url is required', expected: 'string' }),
    method: Type.Optional(Type.String({ expected: 'string' })),
    headers: Type.Optional(Type.Record(Type.String(), Type.String(), { expected: 'object of strings' })),
    attempts: Type.Optional(Type.Integer({ minimum: 1 })),
    body: Type.String({ expected: 'string' }),
  }),
)

const whole = { url: 'http://x/', body: '' }

function refusal(input: unknown): string {
  try {
    params.parse(input)
  } catch (error) {
    if (error instanceof ExecutionError && error.code === 'invalid_input') return error.message
    throw error
  }
  throw new Error(`${JSON.stringify(input)} was accepted`)
}

describe('parameters', () => {
  test('come out as they were given, those that nobody knows too', () => {
    const given = { ...whole, method: 'PUT', headers: { a: 'b' }, attempts: 2, more: [1] }
    expect(params.parse(given)).toEqual(given)
  })

  test('that are null are absent', () => {
    expect(params.parse({ ...whole, method: null, headers: null, more: null })).toEqual(whole)
    expect(refusal({ url: null, body: '' })).toBe('url is required')
  })

  test.each<[unknown, string]>([
    [undefined, 'url is required'],
    [null, 'url is required'],
    [{}, 'url is required'],
    [{ url: '', body: 1 }, 'url is required'],
    ['http://x/', 'parse http params: expected object'],
    [7, 'parse http params: expected object'],
    [true, 'parse http params: expected object'],
    [['url'], 'parse http params: expected object'],
    [{ ...whole, url: 7 }, 'parse http params: url: expected string'],
    [{ ...whole, method: ['GET'] }, 'parse http params: method: expected string'],
    [{ ...whole, headers: { a: 1 } }, 'parse http params: headers: expected object of strings'],
    [{ ...whole, headers: ['a'] }, 'parse http params: headers: expected object of strings'],
    [{ url: 'http://x/' }, 'parse http params: body: expected string'],
  ])('%j are refused with %j', (input, message) => {
    expect(refusal(input)).toBe(message)
  })

  test('without words of their own are refused in those of the schema', () => {
    expect(refusal({ ...whole, attempts: 0 })).toMatch(/^parse http params: attempts: expected .*1/)
  })

  test('are never found in a prototype', () => {
    expect(refusal(JSON.parse('{"__proto__":{"url":"http://x/","body":""}}'))).toBe('url is required')
    expect(refusal(Object.create(whole))).toBe('url is required')
  })

  test('are checked anew each time', () => {
    expect(params.parse(whole)).toEqual(whole)
    expect(refusal({ ...whole, url: 1 })).toBe('parse http params: url: expected string')
    expect(params.parse(whole)).toEqual(whole)
  })
})
