/** Goal: a graph gives its callbacks no header that changes the request around it. */
import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { callbackHeadersFault } from '../../../control/rules/callback-headers.ts'
import { MAX_CALLBACK_HEADER_CHARACTERS, MAX_CALLBACK_HEADERS } from '../../../shared/contract/callbacks.ts'

const headers = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, i) => [`X-${i}`, 'v']))

test.each<[unknown, string | undefined]>([
  [undefined, undefined],
  [null, undefined],
  [{ 'X-Key': 'value', Authorization: { $secret: 'token', prefix: 'Bearer ', suffix: '', mask: false } }, undefined],
  [headers(MAX_CALLBACK_HEADERS), undefined],
  [headers(MAX_CALLBACK_HEADERS + 1), `callback.headers: expected at most ${MAX_CALLBACK_HEADERS} headers, got 17`],
  [{ a: 'x'.repeat(MAX_CALLBACK_HEADER_CHARACTERS - 1) }, undefined],
  [
    { a: 'x'.repeat(MAX_CALLBACK_HEADER_CHARACTERS) },
    'callback.headers.a: expected at most 4096 characters with its name',
  ],
  [['a'], 'callback.headers: expected object'],
  [{ 'a b': 'x' }, 'callback.headers: "a b" is no name of a header'],
  [{ 'Content-Length': '0' }, 'callback.headers.Content-Length: each callback has one of its own (leave it out)'],
  [{ 'X-Taskmill-Event': 'x' }, 'callback.headers.X-Taskmill-Event: each callback has one of its own (leave it out)'],
  [{ A: '1', a: '2' }, 'callback.headers.a: given twice'],
  [{ a: 1 }, 'callback.headers.a: expected string, or object with $secret'],
  [{ a: { $secret: 'token', prefix: 'x\n' } }, 'callback.headers.a: expected printable ASCII in one line'],
  [
    { a: { $secret: 'a/b' } },
    'callback.headers.a.$secret: expected the name of a secret (1 to 128 letters, digits, "-", "_" and ".")',
  ],
  [{ a: { $secret: 't', preffix: '' } }, 'callback.headers.a.preffix: unknown field (did you mean "prefix"?)'],
])('%j', (given, fault) => {
  expect(callbackHeadersFault(given)).toBe(fault)
})

test('a fault has the name of the field', () => {
  expect(callbackHeadersFault({ a: 1 }, 'on_failure')).toBe(
    'on_failure.headers.a: expected string, or object with $secret',
  )
})

test('what is accepted stays one line', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), fc.string({ unit: 'binary' }), (name, value) => {
      if (callbackHeadersFault({ [name]: value }) === undefined)
        expect(`${name}: ${value}`).toMatch(/^[\x21-\x7e]+: [\x20-\x7e]*$/)
    }),
    {
      examples: [
        ['a', 'x\r\nb: y'],
        ['a\r\nb', 'y'],
        ['a', '\u0000'],
        ['', 'v'],
      ],
    },
  )
})
