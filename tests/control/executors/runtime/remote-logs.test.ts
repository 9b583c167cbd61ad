/** Goal: a reader of a log sees all of it and its end, whatever becomes of a connection. */
import { expect, test } from 'bun:test'
import { RemoteLogs } from '../../../../control/executors/runtime/remote-logs.ts'
import { until } from '../../../support/until.ts'

test.each([
  ['has died without a word', () => new ReadableStream<Uint8Array>()],
  ['a proxy has ended', () => new Blob([]).stream()],
])('a follower sees what comes after a connection that %s', async (_, followed) => {
  let output = 'first\n'
  let pages = 0
  let isOver = false
  const logs = new RemoteLogs(
    {
      async openLog(_, { offset = 0, follow }) {
        if (!follow) pages++
        const stream = follow ? followed() : new Blob([output.slice(offset)]).stream()
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
  await until(
    () => pages,
    (count) => count > 1,
  )
  output += 'second\n'
  expect(await second).toBe('second\n')
  const last = next()
  isOver = true
  expect(await last).toBeUndefined()
})
