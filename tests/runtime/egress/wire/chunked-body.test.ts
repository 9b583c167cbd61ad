/** Chunked bodies: where they end, however they are cut. */
import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import {
  ChunkedBody,
  MAX_CHUNK_LINE_BYTES,
  MAX_PIECES,
  MAX_TRAILER_BYTES,
} from '../../../../runtime/egress/wire/chunked-body.ts'
import { Malformed } from '../../../../runtime/egress/wire/malformed.ts'

function allOf(body: ChunkedBody, bytes: Uint8Array): Uint8Array[] {
  const found: Uint8Array[] = []
  for (let rest = bytes; rest.length > 0 && !body.isDone; rest = rest.subarray(body.taken))
    found.push(...body.read(rest))
  return found
}

function read(text: string, cuts: readonly number[] = []) {
  const bytes = Buffer.from(text, 'latin1')
  const body = new ChunkedBody()
  const places = [0, ...cuts.map((cut) => cut % (bytes.length + 1)).toSorted((a, b) => a - b), bytes.length]
  const found = places.slice(1).flatMap((end, i) => allOf(body, bytes.subarray(places[i], end)))
  return { data: Buffer.concat(found).toString('latin1'), isDone: body.isDone }
}

describe('a body', () => {
  test.each([
    ['0\r\n\r\n', ''],
    ['3\r\nabc\r\n0\r\n\r\n', 'abc'],
    ['3\r\nabc\r\n00001\r\nd\r\n0\r\n\r\n', 'abcd'],
    ['a;name="x"\r\n0123456789\r\n0;y\r\n\r\n', '0123456789'],
    ['5 \r\na\r\nbc\r\n0\r\n\r\n', 'a\r\nbc'],
    ['0\r\nTrailer: x\r\nOther: y\r\n\r\n', ''],
    ['1\r\na\r\n0\r\n\r\nGET / HTTP/1.1\r\n\r\n', 'a'],
  ])('%j has %j', (text, data) => {
    expect(read(text)).toEqual({ data, isDone: true })
  })

  test.each(['', '3', '3\r\n', '3\r\nab', '3\r\nabc', '3\r\nabc\r\n', '0\r\n', '0\r\nA: b\r\n', '0\r\n\r'])(
    '%j goes on',
    (text) => {
      expect(read(text).isDone).toBe(false)
    },
  )

  test.each([
    ...[
      '\r\n',
      'x\r\n',
      '-1\r\n',
      '+1\r\n',
      '0x1\r\n',
      ' 1\r\n',
      '1 1\r\n',
      '1\na\r\n',
      '1\r\na\n',
      '1\r\nab\r\n',
      '1\r\na0\r\n',
    ],
    ...['fffffffffffff\r\n', '1\r\r\na', '0\r\nA: b\n\r\n', ';x\r\n', '1;a\rb\r\na'],
    ...[`${'0'.repeat(MAX_CHUNK_LINE_BYTES)}1\r\n`, `1;${'a'.repeat(MAX_CHUNK_LINE_BYTES)}`],
    `0\r\n${'A: b\r\n'.repeat(MAX_TRAILER_BYTES)}`,
  ])('%.20j is malformed', (text) => {
    expect(() => read(text)).toThrow(Malformed)
  })

  test('of many small chunks is read in steps', () => {
    const bytes = Buffer.from(`${'1\r\na\r\n'.repeat(MAX_PIECES + 1)}0\r\n\r\nmore`)
    const body = new ChunkedBody()
    expect(body.read(bytes)).toHaveLength(MAX_PIECES)
    expect(body.isDone).toBe(false)
    const rest = bytes.subarray(body.taken)
    expect(Buffer.concat(body.read(rest)).toString()).toBe('a')
    expect(body.isDone).toBe(true)
    expect(rest.subarray(body.taken).toString()).toBe('more')
  })

  test('has the same data however it is cut', () => {
    const chunk = fc.tuple(
      fc.string({ unit: 'binary-ascii', minLength: 1, maxLength: 40 }),
      fc.constantFrom('', ';x=1', ' '),
    )
    fc.assert(
      fc.property(fc.array(chunk, { maxLength: 6 }), fc.array(fc.nat(), { maxLength: 20 }), (chunks, cuts) => {
        const text = `${chunks.map(([data, more]) => `${data.length.toString(16)}${more}\r\n${data}\r\n`).join('')}0\r\n\r\n`
        expect(read(`${text}rest`, cuts)).toEqual({ data: chunks.map(([data]) => data).join(''), isDone: true })
      }),
    )
  })
})
