/** Goal: pauses grow to their limit, the oldest make room, and what is over a day old is tried once more, then given up. */
import { expect, test } from 'bun:test'
import {
  Deliveries,
  GIVE_UP_AFTER_MS,
  MAX_TRIES,
  MAX_WAITING,
  pauseBeforeTry,
  signatureOf,
} from '../../../control/callbacks/deliveries.ts'
import type { CallbackState, Delivery } from '../../../control/log/kept-callbacks.ts'
import { AddressGuard } from '../../../control/outbound/address-guard.ts'
import { SecretsDirectory } from '../../../shared/files/secrets-directory.ts'
import { freePort } from '../../support/free-port.ts'
import { memoryLog } from '../../support/memory-log.ts'
import { until } from '../../support/until.ts'

test('the pauses: 1 s, doubled up to 10 min', () => {
  expect([2, 3, 4, 5, 11, 12, 100].map(pauseBeforeTry)).toEqual([1_000, 2_000, 4_000, 8_000, 512_000, 600_000, 600_000])
})

test('the signature is that of OpenSSL', async () => {
  const openssl = Bun.spawn(['openssl', 'dgst', '-sha256', '-hmac', 'sesame'], {
    stdin: new TextEncoder().encode('1700000000.{"a":1}'),
    stdout: 'pipe',
  })
  const hex = (await new Response(openssl.stdout).text()).trim().split(' ').at(-1)
  expect(signatureOf('{"a":1}', 'sesame', 1_700_000_000)).toBe(`t=1700000000,v1=${hex}`)
})

function world() {
  const { log, lines } = memoryLog()
  const kept: CallbackState[] = []
  const guard = new AddressGuard({ policy: 'any', flag: 'callback-policy' })
  const deliveries = new Deliveries({
    ...{ kept: { keep: (callback: CallbackState) => void kept.push(callback) }, guard, secret: undefined, log },
    secrets: new SecretsDirectory(''),
    onOver: () => {},
  })
  return {
    ...{ deliveries, kept, lines },
    [Symbol.dispose]: () => deliveries.stop(),
  }
}

const delivery = (url: string, id: string, since = Date.now()): Delivery => ({
  ...{ id, graphId: 'g', event: 'graph_ended', url, body: '{}', since },
})

test('one that is older than a day is tried once more, then given up, and stays so', async () => {
  using each = world()
  const url = `http://127.0.0.1:${await freePort()}/`
  const old = delivery(url, 'old', Date.now() - GIVE_UP_AFTER_MS)
  each.deliveries.add(old)
  await until(
    () => each.deliveries.counts,
    ({ given_up }) => given_up === 1,
  )
  expect(each.deliveries.waitingCount).toBe(0)
  expect(each.lines().at(-1)).toMatchObject({ level: 'error', msg: 'callback given up', delivery_id: 'old', tries: 1 })
  expect(each.kept).toEqual([{ id: 'old', graphId: 'g', delivery: undefined }])
})

test('for more than may wait, the oldest are given up', async () => {
  using each = world()
  const url = `http://127.0.0.1:${await freePort()}/`
  for (let i = 0; i < MAX_WAITING + 2; i++) each.deliveries.add(delivery(url, String(i)))
  expect(each.deliveries.waitingCount).toBe(MAX_WAITING)
  expect(each.deliveries.counts.given_up).toBe(2)
  expect(['0', '1', '2'].map((id) => each.deliveries.isWaiting(id))).toEqual([false, false, true])
})

test('MAX_TRIES are under way at the same time, and a further one once one of them has ended', async () => {
  using each = world()
  const answers: (() => void)[] = []
  const receivers = Array.from({ length: MAX_TRIES + 8 }, () =>
    Bun.serve({
      ...{ hostname: '127.0.0.1', port: 0 },
      fetch: () => new Promise<Response>((resolve) => answers.push(() => resolve(new Response()))),
    }),
  )
  try {
    for (const [i, { url }] of receivers.entries()) each.deliveries.add(delivery(url.href, String(i)))
    const under = (tries: number) =>
      until(
        () => answers.length,
        (count) => count >= tries,
      )
    expect(await under(MAX_TRIES)).toBe(MAX_TRIES)
    answers[0]!()
    expect(await under(MAX_TRIES + 1)).toBe(MAX_TRIES + 1)
  } finally {
    for (const receiver of receivers) await receiver.stop(true)
  }
})
