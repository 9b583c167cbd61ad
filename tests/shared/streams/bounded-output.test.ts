/** Goal: the first bytes of a stream, as text, and the truth about the rest. Method: random chunks against a model. */
import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { BoundedOutput, lastLinesStart, readBounded, textOf } from '../../../shared/streams/bounded-output.ts'

/** A stream that gives `chunks` one by one as they are asked for, and counts what became of it. */
function streamOf(chunks: readonly Uint8Array[]) {
  const seen = { pulled: 0, isCancelled: false }
  const stream = new ReadableStream<Uint8Array>(
    {
      pull(controller) {
        const chunk = chunks[seen.pulled]
        if (chunk === undefined) controller.close()
        else {
          seen.pulled++
          controller.enqueue(chunk)
        }
      },
      cancel() {
        seen.isCancelled = true
      },
    },
    { highWaterMark: 0 },
  )
  return { stream, seen }
}

/** `bytes` cut into pieces at random places. */
const piecesOf = (bytes: Uint8Array, cuts: readonly number[]): Uint8Array[] => {
  const places = [0, ...cuts.map((cut) => cut % (bytes.length + 1)).sort((a, b) => a - b), bytes.length]
  return places.slice(1).map((end, i) => bytes.slice(places[i], end))
}

const bytesOf = (text: string) => new TextEncoder().encode(text)
const cuts = fc.array(fc.nat(), { maxLength: 6 })

describe('the bounded reader', () => {
  test('keeps as many whole characters as fit, however the stream was cut', async () => {
    const texts = fc.string({ unit: fc.constantFrom('a', 'é', '€', '😀', '\n') })
    await fc.assert(
      fc.asyncProperty(texts, cuts, fc.nat(60), async (text, places, maxBytes) => {
        const bytes = bytesOf(text)
        let fitting = ''
        for (const character of text) {
          if (bytesOf(fitting + character).length > maxBytes) break
          fitting += character
        }
        const kept = await readBounded(streamOf(piecesOf(bytes, places)).stream, maxBytes)
        expect(kept).toEqual({ text: fitting, truncated: bytes.length > maxBytes })
      }),
    )
  })

  test('replaces what is not UTF-8 and never fails on it', async () => {
    await fc.assert(
      fc.asyncProperty(fc.uint8Array(), cuts, async (bytes, places) => {
        const kept = await readBounded(streamOf(piecesOf(bytes, places)).stream, bytes.length)
        expect(kept).toEqual({ text: new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes), truncated: false })
      }),
    )
  })

  test('keeps a byte order mark as the character that it is', () => {
    expect(textOf(bytesOf('\ufeffx'), false)).toBe('\ufeffx')
  })

  test('reads the rest and drops it, so that the writer never blocks', async () => {
    const { stream, seen } = streamOf(Array.from({ length: 50 }, () => bytesOf('0123456789')))
    expect(await readBounded(stream, 15)).toEqual({ text: '012345678901234', truncated: true })
    expect(seen).toEqual({ pulled: 50, isCancelled: false })
  })

  test('cancels the stream at the limit when asked to', async () => {
    const { stream, seen } = streamOf(Array.from({ length: 50 }, () => bytesOf('0123456789')))
    expect(await readBounded(stream, 15, { stopAtLimit: true })).toEqual({ text: '012345678901234', truncated: true })
    expect(seen).toEqual({ pulled: 2, isCancelled: true })
  })

  test('does not cancel a stream that ends exactly at the limit', async () => {
    const { stream, seen } = streamOf([bytesOf('0123'), bytesOf('4567')])
    expect(await readBounded(stream, 8, { stopAtLimit: true })).toEqual({ text: '01234567', truncated: false })
    expect(seen.isCancelled).toBe(false)
  })

  test('answers with what came until its signal fired', async () => {
    const gone = new AbortController()
    let pulls = 0
    const stream = new ReadableStream<Uint8Array>(
      {
        pull(controller) {
          // The second time means that the first chunk was taken and more is awaited.
          if (++pulls === 1) controller.enqueue(bytesOf('so far'))
          else gone.abort()
        },
      },
      { highWaterMark: 0 },
    )
    expect(await readBounded(stream, 100, { signal: gone.signal })).toEqual({ text: 'so far', truncated: false })

    const before = streamOf([bytesOf('never read')])
    expect(await readBounded(before.stream, 100, { signal: AbortSignal.abort() })).toEqual({
      text: '',
      truncated: false,
    })
    expect(before.seen.isCancelled).toBe(true)
  })

  test('fails as the stream fails', async () => {
    const stream = new ReadableStream<Uint8Array>({
      pull: (controller) => controller.error(new Error('the pipe broke')),
    })
    await expect(readBounded(stream, 10)).rejects.toThrow('the pipe broke')
  })
})

describe('an output that is read while it is written', () => {
  const anyBytes = fc.uint8Array({ maxLength: 40 })

  test('gives each reader the first bytes in order, whenever it reads, and never changes what it gave', async () => {
    await fc.assert(
      fc.property(fc.array(fc.tuple(anyBytes, fc.boolean())), fc.nat(300), (chunks, maxBytes) => {
        const output = new BoundedOutput(maxBytes)
        const all = Buffer.concat(chunks.map(([chunk]) => chunk))
        const given: [bytes: Uint8Array, at: number][] = []
        let position = 0
        for (const [chunk, isRead] of chunks) {
          output.push(chunk)
          if (!isRead) continue
          const bytes = output.read(position)
          given.push([bytes, position])
          position += bytes.length
        }
        given.push([output.read(position), position])
        const kept = all.subarray(0, maxBytes)
        expect(Buffer.concat(given.map(([bytes]) => bytes))).toEqual(kept)
        for (const [bytes, at] of given) expect(Buffer.from(bytes)).toEqual(kept.subarray(at, at + bytes.length))
        expect(Buffer.from(output.read(0))).toEqual(kept)
        expect(output.truncated).toBe(all.length > maxBytes)
      }),
    )
  })

  test('tells those who wait, once, that it has grown or ended', () => {
    const output = new BoundedOutput(3)
    const told: string[] = []
    output.add(() => told.push('a'))
    output.add(() => told.push('b'))()
    output.push(bytesOf('12'))
    output.push(bytesOf('345'))
    expect(told).toEqual(['a'])
    output.add(() => told.push('end'))
    output.push(bytesOf('6'))
    expect(told).toEqual(['a'])
    output.end()
    expect(told).toEqual(['a', 'end'])
    expect(output.isComplete).toBe(true)
  })
})

test('the last lines are those that splitting at line ends gives', () => {
  const text = fc.string({ unit: fc.constantFrom('a', 'é', '\n') })
  fc.assert(
    fc.property(text, fc.nat(8), (whole, count) => {
      const lines = whole.split(/(?<=\n)/).filter((line) => line !== '')
      const expected = count === 0 ? '' : lines.slice(-count).join('')
      const bytes = bytesOf(whole)
      expect(textOf(bytes.subarray(lastLinesStart(bytes, count)), false)).toBe(expected)
    }),
  )
})
