/** Lines of the output of tasks, as a terminal may show them. */
import { expect, test } from 'bun:test'
import { MAX_LINE_CHARACTERS, OutputLines } from '../../../adapter/follow/output-lines.ts'

const bytes = (text: string) => new TextEncoder().encode(text)

test('are whole, also where a chunk ends in a character, and harmless', () => {
  const lines = new OutputLines()
  const text = bytes('é\r\n\x1b[2J\tx\nend')
  expect([...text.subarray(0, 1), ...text.subarray(1)].flatMap((byte) => lines.push(Uint8Array.of(byte)))).toEqual([
    'é',
    '\\e[2J\tx',
  ])
  expect(lines.end()).toEqual(['end'])
  expect(lines.end()).toEqual([])
})

test('are cut at MAX_LINE_CHARACTERS, but no character is', () => {
  const long = `${'x'.repeat(MAX_LINE_CHARACTERS - 1)}😀${'y'.repeat(MAX_LINE_CHARACTERS)}`
  for (const chunks of [[long], [...long.matchAll(/.{1,5000}/gsu)].map(([part]) => part)]) {
    const lines = new OutputLines()
    const found = chunks.flatMap((chunk) => lines.push(bytes(chunk)))
    expect(Math.max(...found.map(({ length }) => length))).toBeLessThanOrEqual(MAX_LINE_CHARACTERS)
    expect([...found, ...lines.end()].join('')).toBe(long)
    expect(found[0]).toBe('x'.repeat(MAX_LINE_CHARACTERS - 1))
  }
})
