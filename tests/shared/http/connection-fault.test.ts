/** Goal: whoever gets no answer is told the same, by whichever client. Method: what fetch really throws, and its codes. */
import { expect, test } from 'bun:test'
import { CallFailed, NoAnswerInTime, ServiceClient } from '../../../shared/http/client.ts'
import { type CalledService, faultText, isTimeout, neverConnected } from '../../../shared/http/connection-fault.ts'
import { freePort } from '../../support/free-port.ts'

const service: CalledService = {
  ...{ name: 'control', start: 'start-it', urlVariable: 'ITS_URL', urlFlag: '--its-url' },
  tokenVariable: 'ITS_TOKEN',
}

const coded = (code: string) => Object.assign(new Error(`what ${code} means`), { code })

test.each([
  ['ECONNREFUSED', 'connection refused', ' (is it running? start it with start-it, or set ITS_URL)', true],
  ['ConnectionRefused', 'connection refused', ' (is it running? start it with start-it, or set ITS_URL)', true],
  ['ENOTFOUND', 'no such host', ' (check ITS_URL or --its-url)', true],
  ['EAI_AGAIN', 'the resolver is unavailable, try again', ' (check ITS_URL or --its-url)', true],
  ['ECONNRESET', 'the connection was closed before the answer was complete', '', false],
  ['ConnectionClosed', 'the connection was closed before the answer was complete', '', false],
  ['EHOSTDOWN', 'what EHOSTDOWN means', '', false],
])('%s, bare or wrapped', (code, text, remedy, isBeforeConnection) => {
  for (const error of [coded(code), new Error('wrapped', { cause: coded(code) })]) {
    expect(faultText(error)).toBe(text)
    expect(faultText(error, { service })).toBe(text + remedy)
    expect(neverConnected(error)).toBe(isBeforeConnection)
    expect(isTimeout(error)).toBe(false)
  }
})

test.each([undefined, null, 'thrown', 7])('%p that is thrown is no fault that we know', (thrown) => {
  expect(faultText(thrown)).toBe(String(thrown))
  expect([neverConnected(thrown), isTimeout(thrown)]).toEqual([false, false])
})

test('what fetch throws is among them', async () => {
  const refused = await fetch(`http://127.0.0.1:${await freePort()}`).catch((error) => error)
  expect(faultText(refused)).toBe('connection refused')
  expect(neverConnected(refused)).toBe(true)

  const mute = Bun.listen({ hostname: '127.0.0.1', port: 0, socket: { data() {} } })
  const late = await fetch(`http://127.0.0.1:${mute.port}`, { signal: AbortSignal.timeout(1) }).catch((error) => error)
  mute.stop(true)
  expect(isTimeout(late)).toBe(true)
  expect(faultText(late, { service, timeoutMs: 1.2 })).toBe('no answer within 1 ms')

  const closing = Bun.listen({
    hostname: '127.0.0.1',
    port: 0,
    socket: { open: (socket) => void socket.end(), data() {} },
  })
  const closed = await fetch(`http://127.0.0.1:${closing.port}`).catch((error) => error)
  closing.stop(true)
  expect(faultText(closed)).toBe('the connection was closed before the answer was complete')
  expect(neverConnected(closed)).toBe(false)
})

test('a client says whether its request can have arrived', async () => {
  const url = `http://127.0.0.1:${await freePort()}`
  const call = (client: ServiceClient, timeoutMs = 20_000) =>
    client.call({ method: 'GET', path: '/health', timeoutMs }).catch((error) => error)
  const refused = await call(new ServiceClient(service, { url, token: undefined }))
  expect(refused).toBeInstanceOf(CallFailed)
  expect([refused.message, refused.wasSent]).toEqual([
    `cannot reach the control service at ${url}: connection refused (is it running? start it with start-it, or set ITS_URL)`,
    false,
  ])

  const mute = Bun.listen({ hostname: '127.0.0.1', port: 0, socket: { data() {} } })
  const late = await call(new ServiceClient(service, { url: `http://127.0.0.1:${mute.port}`, token: undefined }), 50)
  mute.stop(true)
  expect(late).toBeInstanceOf(NoAnswerInTime)
  expect(late.wasSent).toBe(true)
})
