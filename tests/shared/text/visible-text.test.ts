import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { visibleJson, visibleLine, visibleLines } from '../../../shared/text/visible-text.ts'

test.each([
  ['plain äöü 日本 👩‍👩‍👧', 'plain äöü 日本 👩‍👩‍👧'],
  ['\x1b[2Jgone', '\\e[2Jgone'],
  ['one\ntwo\ttab\rback', 'one\\ntwo\\ttab\\rback'],
  ['\x07\x7f\x9b', '\\u{7}\\u{7f}\\u{9b}'],
  ['gnp.\u202eexe', 'gnp.\\u{202e}exe'],
  ['a\u{e0041}b\ud800c', 'a\\u{e0041}b\\u{d800}c'],
])('%j is shown as %s', (text, shown) => {
  expect(visibleLine(text)).toBe(shown)
})

test('several lines keep their ends and tabs', () => {
  expect(visibleLines('a\tb\r\nc\x1b]0;title\x07\n')).toBe('a\tb\nc\\e]0;title\\u{7}\n')
})

/** What a terminal would obey. */
const CONTROL = /(?![\t\n])\p{Cc}|[\u202a-\u202e\u2066-\u2069]/u

const anyText = fc.string({ unit: 'binary' })

test('no text holds a control character afterwards', () => {
  fc.assert(
    fc.property(anyText, (text) => {
      expect(visibleLine(text)).not.toMatch(/[\t\n]/)
      for (const shown of [visibleLine(text), visibleLines(text)]) expect(shown).not.toMatch(CONTROL)
    }),
  )
})

test('indented JSON keeps its value', () => {
  fc.assert(
    fc.property(fc.dictionary(anyText, anyText), (value) => {
      const shown = visibleJson(JSON.stringify(value, null, 2))
      expect(JSON.parse(shown)).toEqual(value)
      expect(shown).not.toMatch(CONTROL)
    }),
  )
})
