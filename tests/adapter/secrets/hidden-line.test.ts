import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { Interrupted } from '../../../adapter/envelope.ts'
import { MAX_TYPED_CHARACTERS, TypedLine } from '../../../adapter/secrets/hidden-line.ts'

describe('TypedLine', () => {
  test('is what was typed, however it comes, with corrections made', () => {
    const character = fc.string({ unit: 'grapheme-composite', minLength: 1, maxLength: 1 })
    const isPlain = (text: string) => ![...'\x03\x04\b\x15\x7f\r\n'].some((key) => text.includes(key))
    fc.assert(
      fc.property(fc.array(character.filter(isPlain)), fc.array(character.filter(isPlain)), (lost, kept) => {
        const line = new TypedLine()
        expect(line.add(`${lost.join('')}\x15`)).toBe(false)
        for (const each of kept) expect(line.add(`${each}y\x7f`)).toBe(false)
        expect(line.add('\r')).toBe(true)
        expect(line.text).toBe(kept.join(''))
      }),
    )
  })

  test.each(['\r', '\n', '\x04'])('ends with %j', (end) => {
    const line = new TypedLine()
    expect([line.add(`a${end}`), line.text]).toEqual([true, 'a'])
  })

  test('Ctrl-C interrupts; several lines and more than MAX_TYPED_CHARACTERS are refused', () => {
    expect(() => new TypedLine().add('a\x03')).toThrow(Interrupted)
    expect(() => new TypedLine().add('a\rb')).toThrow('a prompt takes one line')
    const line = new TypedLine()
    expect(line.add('é'.repeat(MAX_TYPED_CHARACTERS))).toBe(false)
    expect(() => line.add('b')).toThrow(`at most ${MAX_TYPED_CHARACTERS} characters: give more on standard input`)
  })
})
