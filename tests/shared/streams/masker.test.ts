/**
 * Goal: what comes out of a masker depends on the stream alone, holds none of the texts, and comes as early as it can.
 * Method: random texts and streams of few letters, so that texts overlap, contain each other and begin again, against a rule that
 * looks at the whole stream.
 */
import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { Masker, MaskTexts } from '../../../shared/streams/masker.ts'
import { maskedWhole } from '../../support/masked-whole.ts'

const word = (maxLength: number) => fc.string({ unit: fc.constantFrom('a', 'b', 'c'), minLength: 1, maxLength })

const cases = fc.record({
  texts: fc.array(word(6), { minLength: 1, maxLength: 6 }),
  chunks: fc.array(word(9), { maxLength: 12 }),
})

const buffers = (texts: readonly string[]) => texts.map((text) => Buffer.from(text))

const maskedIn = (texts: readonly string[], chunks: readonly string[]): string[] => {
  const masker = new Masker(new MaskTexts(buffers(texts)))
  return [...buffers(chunks).map((chunk) => masker.push(chunk)), masker.end()].map((part) =>
    Buffer.from(part).toString(),
  )
}

/** Characters of the longest end of `whole` with which one of `texts` begins. */
const longestBegun = (texts: readonly string[], whole: string): number =>
  Math.max(...texts.flatMap((text) => [...text].map((_, i) => (whole.endsWith(text.slice(0, i + 1)) ? i + 1 : 0))))

describe('a masker', () => {
  test('gives the same for every cut of a stream, and leaves no text in it', () => {
    fc.assert(
      fc.property(cases, ({ texts, chunks }) => {
        const whole = chunks.join('')
        const masked = maskedIn(texts, chunks).join('')
        expect(masked).toBe(maskedWhole(texts, whole))
        expect(maskedIn(texts, [whole]).join('')).toBe(masked)
        expect(maskedIn(texts, [...whole]).join('')).toBe(masked)
        for (const text of texts) expect(masked).not.toContain(text)
      }),
      { numRuns: 3_000 },
    )
  })

  test('holds back only what may be the beginning of a text', () => {
    fc.assert(
      fc.property(cases, ({ texts, chunks }) => {
        const parts = maskedIn(texts, chunks)
        let whole = ''
        let out = ''
        for (const [i, chunk] of chunks.entries()) {
          whole += chunk
          out += parts[i]
          expect(out).toBe(maskedWhole(texts, whole, whole.length - longestBegun(texts, whole)))
        }
      }),
    )
  })

  test.each<[string, string[], string[], string]>([
    ['a value that contains another', ['secret', 'secretly'], ['a secretly kept secret'], 'a *** kept ***'],
    ['one value right after another', ['first', 'second'], ['firstsecond'], '***'],
    ['values that overlap', ['abcd', 'cdef'], ['xabcdefx'], 'x***x'],
    ['a value that begins again within itself', ['aab'], ['aa', 'ab'], 'a***'],
    ['the beginning of a value at the end', ['secret'], ['sec'], 'sec'],
    ['nothing to mask', [], ['secret'], 'secret'],
  ])('masks %s', (_, texts, chunks, expected) => {
    expect(maskedIn(texts, chunks).join('')).toBe(expected)
    expect(maskedIn(texts, [...chunks.join('')]).join('')).toBe(expected)
  })

  test('keeps bytes that are no text', () => {
    const masker = new Masker(new MaskTexts([Buffer.from([0, 255, 128, 7])]))
    const parts = [[1, 0], [255], [128, 7, 0, 255], [200]].map((bytes) => Buffer.from(masker.push(Buffer.from(bytes))))
    expect(Buffer.concat([...parts, masker.end()])).toEqual(Buffer.from([1, 42, 42, 42, 0, 255, 200]))
  })
})
