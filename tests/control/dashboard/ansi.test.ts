/** Goal: the output of a task is text, whatever is in it. */
import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { AnsiReader, type StyledLine } from '../../../control/dashboard/log/ansi.ts'
import { LogLines, MAX_LINE_CHARACTERS, MAX_LINES, textOf } from '../../../control/dashboard/log/log-lines.ts'

const line = (text: string): StyledLine => new AnsiReader().line(text)
const plainText = (pieces: StyledLine): string => pieces.map(({ text }) => text).join('')

test('no control character and no direction mark stays, and styles are names that we chose', () => {
  const nasty = fc.array(
    fc.oneof(fc.constantFrom('\x1b', '[', ']', '\x9b', '\x07', '31', 'm', ';', '\r', '\u202e', '0'), fc.string()),
  )
  fc.assert(
    fc.property(nasty, (parts) => {
      for (const { text, style } of line(parts.join('').replaceAll('\n', ''))) {
        // biome-ignore lint/suspicious/noControlCharactersInRegex: it looks for them
        expect(text).not.toMatch(/[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]/)
        expect(style).toMatch(/^((bold|dim|italic|underline|[fb]g-\d+)( |$))*$/)
      }
    }),
  )
})

test('text without control characters stays as it is', () => {
  fc.assert(
    fc.property(fc.string(), (text) => {
      // biome-ignore lint/suspicious/noControlCharactersInRegex: it leaves them out
      const plain = text.replace(/[\x00-\x1f\x7f-\x9f]/g, '')
      expect(plainText(line(plain))).toBe(plain)
    }),
  )
})

test.each<[string, StyledLine]>([
  [
    '\x1b[31mred\x1b[0m no',
    [
      { text: 'red', style: 'fg-1' },
      { text: ' no', style: '' },
    ],
  ],
  ['\x1b[1;92mbold\x1b[22m', [{ text: 'bold', style: 'bold fg-10' }]],
  ['\x1b[38;5;196mx', [{ text: 'x', style: 'fg-9' }]],
  ['\x1b[48;2;0;0;200mx', [{ text: 'x', style: 'bg-4' }]],
  ['\x1b]8;;http://evil\x07link\x1b]8;;\x07', [{ text: 'link', style: '' }]],
  [
    '\x1b]0;title\x1b\\a\x1b[2Jb\x1b[10;10Hc\x1b(Bd',
    [
      { text: 'a', style: '' },
      { text: 'b', style: '' },
      { text: 'c', style: '' },
      { text: 'd', style: '' },
    ],
  ],
  ['10 %\r50 %\r100 %', [{ text: '100 %', style: '' }]],
  ['a\x00b\x7f', [{ text: 'a␀b␡', style: '' }]],
  ['<b>&amp;</b>', [{ text: '<b>&amp;</b>', style: '' }]],
])('%j', (text, pieces) => expect(line(text)).toEqual(pieces))

test('colours last until they are ended, also over lines, for each stream on its own', () => {
  const log = new LogLines()
  log.push('stdout', '\x1b[32mone\ntw')
  log.push('stderr', 'plain\n')
  log.push('stdout', 'o\n')
  expect(log.lines.map(({ stream, pieces }) => [stream, pieces[0]!.style, textOf({ pieces })])).toEqual([
    ['stdout', 'fg-2', 'one'],
    ['stderr', '', 'plain'],
    ['stdout', 'fg-2', 'two'],
  ])
})

test('however a stream is cut into chunks, its lines are the same', () => {
  fc.assert(
    fc.property(fc.array(fc.string()), (chunks) => {
      const [whole, parts] = [new LogLines(), new LogLines()]
      whole.push('stdout', chunks.join(''))
      for (const chunk of chunks) parts.push('stdout', chunk)
      expect(parts.lines.map(textOf)).toEqual(whole.lines.map(textOf))
    }),
  )
})

test('the newest lines stay, and their numbers', () => {
  const log = new LogLines()
  log.push('stdout', Array.from({ length: MAX_LINES + 7 }, (_, index) => `${index}\n`).join(''))
  expect(log.lines.length).toBe(MAX_LINES)
  expect(log.dropped).toBe(7)
  expect([log.lines[0]!.number, textOf(log.lines[0]!)]).toEqual([8, '7'])
})

test('lines have the numbers of their streams, if they are known', () => {
  const log = new LogLines()
  log.restart('stdout', 4_999)
  log.restart('stderr', undefined)
  log.push('stdout', 'a\nb\nc')
  log.push('stderr', 'd\n')
  expect(log.lines.map(({ number, pieces }) => [textOf({ pieces }), number])).toEqual([
    ['a', 5_000],
    ['b', 5_001],
    ['d', undefined],
    ['c', 5_002],
  ])
  expect(new Set(log.lines.map(({ key }) => key)).size).toBe(4)
})

test('a stream that comes again takes the place of what was there', () => {
  const log = new LogLines()
  log.push('stdout', '\x1b[31mone\nhal')
  log.push('stderr', 'kept\n')
  log.restart('stdout', 0)
  log.push('stdout', 'one\nhalf\n')
  expect(log.lines.map(({ stream, pieces }) => `${stream} ${textOf({ pieces })}`)).toEqual([
    'stderr kept',
    'stdout one',
    'stdout half',
  ])
  expect(log.lines[1]!.pieces[0]!.style).toBe('')
})

test('a line without an end does not grow for ever', () => {
  const log = new LogLines()
  for (let count = 0; count < 5; count++) log.push('stdout', 'x'.repeat(MAX_LINE_CHARACTERS))
  expect(textOf(log.lines[0]!).length).toBeLessThan(MAX_LINE_CHARACTERS + 10)
})
