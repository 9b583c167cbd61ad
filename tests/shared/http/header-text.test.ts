/** Text in headers survives the way through them, whoever sends it. */
import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { headerText, headerValue } from '../../../shared/http/header-text.ts'

test('any text comes back, by characters that a header may have', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'grapheme' }), (text) => {
      const value = headerValue(text)
      expect([...value].every((character) => character.charCodeAt(0) <= 0xff)).toBe(true)
      expect(headerText(value)).toBe(text)
    }),
  )
})

test('Latin-1 that is no UTF-8 is what it looks like', () => {
  expect(headerText('caf\xe9')).toBe('café')
  expect(headerText('plain')).toBe('plain')
})
