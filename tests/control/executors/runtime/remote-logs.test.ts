/** Goal: a reader of a log sees all of it and its end, whatever becomes of a connection. */
import { expect, test } from 'bun:test'
import { RemoteLogs } from '../../../../control/executors/runtime/remote-logs.ts'

test('a follower does not wait for a connection that has died without a word', async () => {
  let output = 'first\n'
  let isOver = false
  const logs = new RemoteLogs(
    {
      async openLog(_, { offset = 0, follow }) {
        const stream = follow ? new ReadableStream<Uint8Array>() : new Blob([output.slice(offset)]).stream()
        return { offset, stream }
      },
    },
    50,
  )
  const reading = logs.read('a', {
    ...{ stream: 'stdout', start: { offset: 0 }, onStart: () => {}, traceId: 'trace' },
    ...{ signal: new AbortController().signal, untilOver: () => isOver },
  })
  const next = async () => {
    const { value } = await reading.next()
    return value && new TextDecoder().decode(value)
  }
  expect(await next()).toBe('first\n')
  const second = next()
  output += 'second\n'
  expect(await second).toBe('second\n')
  const last = next()
  isOver = true
  expect(await last).toBeUndefined()
})
