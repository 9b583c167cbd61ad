import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { EventSplitter } from '../../../shared/streams/server-sent-events.ts'

const bytes = (text: string) => new TextEncoder().encode(text)
const TEXT =
  ': open\n\nevent: a\nid: 7\ndata: {"x":1}\n\n: keep-alive\n\ndata: one\r\ndata:two\r\n\r\nevent: b\n\nid: 9\ndata: z\n\n'

test('gives type, data and the last id; comments and events without data are none', () => {
  expect([...new EventSplitter(1_000).events(bytes(TEXT))]).toEqual([
    { type: 'a', data: '{"x":1}', id: '7' },
    { type: 'message', data: 'one\ntwo', id: '7' },
    { type: 'message', data: 'z', id: '9' },
  ])
})

test('gives the data of messages alone', () => {
  expect([...new EventSplitter(1_000).push(bytes(TEXT))]).toEqual(['one\ntwo', 'z'])
})

test('does not depend on where chunks begin', () => {
  const whole = [...new EventSplitter(1_000).events(bytes(TEXT))]
  fc.assert(
    fc.property(fc.array(fc.nat(TEXT.length)), (cuts) => {
      const splitter = new EventSplitter(1_000)
      const at = [0, ...cuts.toSorted((a, b) => a - b), TEXT.length]
      const parts = at.slice(1).flatMap((end, i) => [...splitter.events(bytes(TEXT).subarray(at[i]!, end))])
      expect(parts).toEqual(whole)
    }),
  )
})

test('refuses an event that is too large', () => {
  const splitter = new EventSplitter(20)
  expect(() => [...splitter.events(bytes('data: 123456789\ndata: 123456789\n\n'))]).toThrow('more than 20 bytes')
})

test('the id to resume after is that of the last event which has arrived as a whole', () => {
  const text = 'id: 6\n\nid: 7\nevent: a\ndata: one\n\nid: 8\ndata: two\n\n'
  for (let cut = 0; cut <= text.length; cut++) {
    const splitter = new EventSplitter(1_000)
    const arrived = [...splitter.events(bytes(text.slice(0, cut)))].map(({ id }) => id)
    expect(splitter.lastId).toBe(arrived.at(-1) ?? (cut < 'id: 6\n\n'.length ? undefined : '6'))
  }
})
