/** Server-sent events are the same however the stream is cut. */
import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { eventData } from '../../../adapter/bridge/bridge.ts'

async function dataOf(text: string, cuts: readonly number[] = [], maxBytes = 10_000): Promise<string[]> {
  const bytes = new TextEncoder().encode(text)
  const chunks: Uint8Array[] = []
  let from = 0
  for (const cut of [...cuts, bytes.length]) {
    chunks.push(bytes.slice(from, from + cut))
    from += cut
  }
  const stream = new ReadableStream<Uint8Array>({
    start(controller) {
      for (const chunk of chunks) if (chunk.length > 0) controller.enqueue(chunk)
      controller.close()
    },
  })
  return await Array.fromAsync(eventData(stream, maxBytes))
}

test('the data of every event, wherever it is cut', async () => {
  const data = fc.string({ unit: 'grapheme', maxLength: 20 }).map((text) => `x${text.replace(/[\r\n]/g, ' ')}`)
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.array(data, { minLength: 1, maxLength: 3 })),
      fc.array(fc.nat(20)),
      async (events, cuts) => {
        const text = events
          .map((lines) => `event: message\n${lines.map((line) => `data: ${line}\n`).join('')}\n`)
          .join('')
        expect(await dataOf(text, cuts)).toEqual(events.map((lines) => lines.join('\n')))
      },
    ),
  )
})

test.each([
  ['comments, ids and names are no data', ': hello\nid: 7\nevent: x\n\ndata: a\n\n', ['a']],
  ['the space after the colon is optional', 'data:a\n\ndata:  b\n\n', ['a', ' b']],
  ['lines may end with a carriage return', 'data: a\r\n\r\n', ['a']],
  ['an event that is not complete is none', 'data: a\n\ndata: b\n', ['a']],
])('%s', async (_, text, data) => {
  expect(await dataOf(text)).toEqual(data)
})

test('an event has a limit, in one line or many', async () => {
  await expect(dataOf(`data: ${'x'.repeat(200)}\n\n`, [], 100)).rejects.toThrow('more than 100 bytes')
  await expect(dataOf(`${'data: 1234567890\n'.repeat(20)}\n`, [], 100)).rejects.toThrow('more than 100 bytes')
  expect(await dataOf('data: 1234567890\n\n'.repeat(20), [], 100)).toHaveLength(20)
})
