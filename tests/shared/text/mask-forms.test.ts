/**
 * Goal: programs that print a secret escaped or encoded print its mask, wherever it stands in what they encode.
 * Method: what encoders of several languages make of values, alone and in the middle of other text.
 */
import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { Masker, MaskTexts } from '../../../shared/streams/masker.ts'
import { MAX_MASK_BYTES, MAX_MASKED_BYTES, MaskForms, MIN_MASKED_CHARACTERS } from '../../../shared/text/mask-forms.ts'

function masked(value: string | Buffer, printed: string): string {
  const forms = new MaskForms()
  expect(forms.add(Buffer.from(value))).toBeUndefined()
  const masker = new Masker(new MaskTexts(forms.all))
  return Buffer.concat([masker.push(Buffer.from(printed)), masker.end()]).toString()
}

const base64 = (text: string, encoding: 'base64' | 'base64url' = 'base64') => Buffer.from(text).toString(encoding)

const ODD = 'pä ss/wörd?>&"\\\'~+\u2028!'

describe('a value is masked', () => {
  test.each<[string, string, string, string]>([
    ['as it is', 'sesame', 'open sesame!', 'open ***!'],
    ['without the line break at the end of its file', 'sesame\n', 'sesame', '***'],
    ['without a line break of Windows', 'sesame\r\n', 'sesame', '***'],
    ['with four characters', 'ab12', 'xab12x', 'x***x'],
    ['not with three', 'abc\n', 'abc', 'abc'],
    ['not with three of many bytes', 'äöü', 'äöü', 'äöü'],
    ['with each of its lines', 'line one\n  line two\nxyz\n', 'line two\nline one\nxyz', '***\n***\nxyz'],
    ['as a whole, with its short lines', 'line one\nxyz\nline two\n', 'line one\nxyz\nline two', '***'],
    ['in base64', 'sesame', base64('sesame'), '***'],
    ['in base64 without padding', 'sesame1', base64('sesame1', 'base64url'), '***'],
    ['in JSON', ODD, JSON.stringify({ a: ODD }), '{"a":"***"}'],
    ['in JSON of ASCII', 'pä ss', '{"a": "p\\u00e4 ss"}', '{"a": "***"}'],
    ['in JSON for HTML', 'a<b>c&d', '{"a":"a\\u003cb\\u003ec\\u0026d"}', '{"a":"***"}'],
    ['in JSON with escaped slashes', 'a/b/c', '"a\\/b\\/c"', '"***"'],
    ['with its lines in JSON', 'line one\nline two', JSON.stringify('line one\nline two'), '"***"'],
    ['in a URL', ODD, `?a=${encodeURIComponent(ODD)}&b`, '?a=***&b'],
    ['in a URL, in lower case', 'a+b/c', 'a%2bb%2fc', '***'],
    ['in a URL with slashes', 'a+b/c', 'a%2Bb/c', '***'],
    ['in a form', ODD, new URLSearchParams({ a: ODD }).toString(), 'a=***'],
    ['in a path', ODD, encodeURI(ODD), '***'],
  ])('%s', (_, value, printed, expected) => {
    expect(masked(value, printed)).toBe(expected)
  })

  test('from the shortest length on', () => {
    const value = 'äöüßéñ'.slice(0, MIN_MASKED_CHARACTERS)
    expect([masked(value, value), masked(value.slice(1), value)]).toEqual(['***', value])
  })

  test('as bytes that are no text', () => {
    expect(masked(Buffer.from([255, 254, 0, 1, 2]), '%FF%FE%00%01%02 //4AAQI=')).toBe('*** ***=')
  })

  test('in base64, but for the characters that also hold bits of its surroundings', () => {
    const text = fc.string({ unit: 'binary', maxLength: 5 })
    const value = fc.string({ minLength: 4, maxLength: 20, unit: fc.constantFrom('a', 'Z', '?', '>', 'ÿ', '~', '0') })
    fc.assert(
      fc.property(
        text,
        value,
        text,
        fc.constantFrom('base64' as const, 'base64url' as const),
        (before, secret, after, as) => {
          const rest = masked(secret, base64(before + secret + after, as)).replaceAll('***', '')
          const around = Buffer.byteLength(before) + Buffer.byteLength(after)
          expect(rest.length).toBeLessThanOrEqual(Math.ceil((around * 8) / 6) + 4)
        },
      ),
    )
  })
})

test('a value of more than MAX_MASKED_BYTES is not masked; of others no form is too large for a launcher', () => {
  const forms = new MaskForms()
  expect(forms.add(Buffer.alloc(MAX_MASKED_BYTES + 1, 'a'))).toBeUndefined()
  expect(forms.all).toEqual([])
  // The character whose escapes are the longest.
  expect(forms.add(Buffer.alloc(MAX_MASKED_BYTES, 1))).toBeUndefined()
  const longest = Math.max(...forms.all.map(({ length }) => length))
  expect([longest, longest < 65_536]).toEqual([6 * MAX_MASKED_BYTES, true])
})

test('values whose forms together are too large are refused, with the remedy', () => {
  const forms = new MaskForms()
  const values = Array.from({ length: 60 }, (_, i) => Buffer.alloc(MAX_MASKED_BYTES, String.fromCharCode(65 + i)))
  expect(values.map((value) => forms.add(value)).find((fault) => fault !== undefined)).toBe(
    `brings what is to be masked in the output over ${MAX_MASK_BYTES} bytes (with {"name", "mask": false} it is not masked)`,
  )
  expect(forms.all.reduce((bytes, { length }) => bytes + length, 0)).toBeLessThanOrEqual(MAX_MASK_BYTES)
})
