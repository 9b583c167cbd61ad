/** Goal: pauses grow to their limit, the oldest make room, and what is over a day old is tried once more, then given up. */
import { expect, test } from 'bun:test'
import { appendFileSync } from 'node:fs'
import { join } from 'node:path'
import { CallbackFile } from '../../../control/callbacks/callback-file.ts'
import {
  Deliveries,
  GIVE_UP_AFTER_MS,
  MAX_TRIES,
  MAX_WAITING,
  pauseBeforeTry,
  signatureOf,
} from '../../../control/callbacks/deliveries.ts'
import type { Delivery } from '../../../control/log/kept-callbacks.ts'
import { AddressGuard } from '../../../control/outbound/address-guard.ts'
import { freePort } from '../../support/free-port.ts'
import { memoryLog } from '../../support/memory-log.ts'
import { tempDir } from '../../support/temp.ts'
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
  const dir = tempDir()
  const { log, lines } = memoryLog()
  const path = join(dir.path, 'callbacks.jsonl')
  const file = new CallbackFile(path, (error) => {
    throw error
  })
  const guard = new AddressGuard({ policy: 'any', flag: 'callback-policy' })
  const deliveries = new Deliveries({ kept: file, guard, secret: undefined, log, onOver: () => {} })
  return {
    ...{ deliveries, file, lines },
    open: () => new CallbackFile(path, () => {}),
    path,
    [Symbol.dispose]() {
      deliveries.stop()
      dir[Symbol.dispose]()
    },
  }
}

const delivery = (url: string, id: string, since = Date.now()): Delivery => ({
  ...{ id, graphId: 'g', event: 'graph_ended', url, body: '{}', since },
})

test('one that is older than a day is tried once more, then given up, and stays so', async () => {
  using each = world()
  const url = `http://127.0.0.1:${await freePort()}/`
  const old = delivery(url, 'old', Date.now() - GIVE_UP_AFTER_MS)
  each.file.add(old)
  each.deliveries.add(old)
  await until(
    () => each.deliveries.counts,
    ({ given_up }) => given_up === 1,
  )
  expect(each.deliveries.waitingCount).toBe(0)
  expect(each.lines().at(-1)).toMatchObject({ level: 'error', msg: 'callback given up', delivery_id: 'old', tries: 1 })
  const { waiting, over } = each.open().read()
  expect([waiting.size, [...over]]).toEqual([0, [['old', 'g']]])
})

test('for more than may wait, the oldest are given up', async () => {
  using each = world()
  const url = `http://127.0.0.1:${await freePort()}/`
  for (let i = 0; i < MAX_WAITING + 2; i++) each.deliveries.add(delivery(url, String(i)))
  expect(each.deliveries.waitingCount).toBe(MAX_WAITING)
  expect(each.deliveries.counts.given_up).toBe(2)
  expect([...each.deliveries.waiting.keys()].slice(0, 2)).toEqual(['2', '3'])
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

test('a torn last line is left out, and the next line is whole', () => {
  using each = world()
  each.file.add(delivery('http://a', 'one'))
  appendFileSync(each.path, '{"id":"tw')
  const again = each.open()
  expect([...again.read().waiting.keys()]).toEqual(['one'])
  again.add(delivery('http://a', 'three'))
  expect([...each.open().read().waiting.keys()]).toEqual(['one', 'three'])
})

test('a rewrite keeps what counts, and what comes meanwhile', async () => {
  using each = world()
  for (let i = 0; i < 11_000; i++) each.file.addOver(delivery('http://a', String(i)))
  expect(each.file.mayShrink(10)).toBe(true)
  const counting = { waiting: new Map([['w', delivery('http://a', 'w')]]), over: new Map([['o', 'g']]) }
  const rewriting = each.file.rewrite(counting)
  each.file.add(delivery('http://a', 'late'))
  await rewriting
  expect(each.file.mayShrink(10)).toBe(false)
  const { waiting, over } = each.open().read()
  expect([[...waiting.keys()], [...over.keys()]]).toEqual([['w', 'late'], ['o']])
})
