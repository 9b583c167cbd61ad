/** The end of a text, however it came. */
import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { MAX_TAIL_BYTES, TextTail, tailOf } from '../../../shared/text/text-tail.ts'

test('the last bytes are kept, and no more', () => {
  fc.assert(
    fc.property(
      fc.array(fc.string({ unit: fc.constantFrom('a', 'b', 'c'), maxLength: 3_000 }), { maxLength: 6 }),
      (parts) => {
        const tail = new TextTail()
        for (const part of parts) tail.push(new TextEncoder().encode(part))
        expect(tail.text()).toBe(parts.join('').slice(-MAX_TAIL_BYTES))
      },
    ),
  )
})

test('a tail is the last whole lines, at most as long as it may be, and the same in chunks', () => {
  const texts = fc.array(fc.string({ unit: fc.constantFrom('a', '\n', '\u00e9', '\u{1f600}'), maxLength: 1_500 }), {
    maxLength: 4,
  })
  fc.assert(
    fc.property(texts, fc.nat(), (parts, cut) => {
      const text = parts.join('')
      const tail = tailOf(text)
      const bytes = new TextEncoder().encode(text)
      expect(new TextEncoder().encode(tail).length).toBeLessThanOrEqual(MAX_TAIL_BYTES)
      expect(text.trimEnd().endsWith(tail)).toBe(true)
      expect(tail).not.toContain('\ufffd')
      if (new TextEncoder().encode(text.trimEnd()).length <= MAX_TAIL_BYTES) expect(tail).toBe(text.trimEnd())

      const chunks = new TextTail()
      const at = cut % (bytes.length + 1)
      chunks.push(bytes.subarray(0, at))
      chunks.push(bytes.subarray(at))
      expect(tail.endsWith(chunks.lines())).toBe(true) // the space at the end takes some of its room
      if (bytes.length <= MAX_TAIL_BYTES) expect(chunks.lines()).toBe(tail)
    }),
  )
})

test.each([
  ['one\ntwo\n', 'one\ntwo'],
  ['', ''],
  [` \n`, ''],
  [`${'a'.repeat(2_040)}\n${'b'.repeat(10)}`, 'b'.repeat(10)],
  ['c'.repeat(3_000), 'c'.repeat(2_048)],
  [`x${'\u00e9'.repeat(2_000)}`, '\u00e9'.repeat(1_024)],
])('the tail of a text (%#)', (text, tail) => {
  expect(tailOf(text)).toBe(tail)
})
