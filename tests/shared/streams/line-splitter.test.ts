/** Lines are the same however the stream is cut into chunks. */
import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { LineSplitter, LineTooLong } from '../../../shared/streams/line-splitter.ts'

const bytes = (text: string) => new TextEncoder().encode(text)

test('any text, cut anywhere, gives its lines', () => {
  const line = fc.string({ unit: 'grapheme', maxLength: 20 }).map((text) => text.replace(/[\r\n]/g, ''))
  fc.assert(
    fc.property(fc.array(line, { maxLength: 10 }), line, fc.array(fc.nat(40)), (lines, rest, cuts) => {
      const all = bytes(lines.map((each) => `${each}\n`).join('') + rest)
      const splitter = new LineSplitter(1_000)
      const found: string[] = []
      const shared = new Uint8Array(64) // a reader may use its memory again
      let from = 0
      for (const cut of [...cuts, ...Array(all.length).fill(40)]) {
        const chunk = all.subarray(from, Math.min(from + cut, all.length))
        shared.set(chunk)
        found.push(...splitter.push(shared.subarray(0, chunk.length)))
        from += chunk.length
      }
      expect(found).toEqual(lines)
    }),
  )
})

test('a line may end with a carriage return', () => {
  expect([...new LineSplitter(100).push(bytes('a\r\nb\n\nc'))]).toEqual(['a', 'b', ''])
})

test('a line may be as long as the limit and no longer, in one chunk or many', () => {
  expect([...new LineSplitter(3).push(bytes('abc\ndef\n'))]).toEqual(['abc', 'def'])
  expect(() => [...new LineSplitter(3).push(bytes('abcd\n'))]).toThrow(LineTooLong)
  const splitter = new LineSplitter(3)
  expect([...splitter.push(bytes('ab'))]).toEqual([])
  expect(() => [...splitter.push(bytes('cd'))]).toThrow('a line of more than 3 bytes')
})
