/**
 * Goal: one key and body have one answer, for a day and up to the limits; a refusal never counts.
 * Method: the table on its own, with the time passed in, and makers of answers that are counted.
 */
import { describe, expect, test } from 'bun:test'
import { IdempotencyKeys, KEY_LIFETIME_MS, type KeptKey, MAX_KEYS } from '../../../control/log/idempotency.ts'
import type { ServiceError } from '../../../shared/contract/errors.ts'

const body = (text: string) => new TextEncoder().encode(text)
const request = (key: string | null, text = 'body', scope = 'tasks') => ({ scope, key, body: body(text) })

/** Makes `answer-1`, `answer-2` ... */
function counted() {
  let count = 0
  return Object.assign(async () => `answer-${++count}`, { made: () => count })
}

describe('the same key', () => {
  test('with another body is refused with 422, also while the first answer is being made', async () => {
    const keys = new IdempotencyKeys()
    const { promise, resolve } = Promise.withResolvers<string>()
    const first = keys.once(request('k', 'one'), () => promise)
    const refusal = (thrown: unknown) => [(thrown as ServiceError).status, (thrown as ServiceError).message]
    const expected = [422, 'idempotency key reused with a different body']
    expect(await keys.once(request('k', 'two'), counted()).catch(refusal)).toEqual(expected as never)
    resolve('answer')
    await first
    expect(await keys.once(request('k', 'two'), counted()).catch(refusal)).toEqual(expected as never)
  })
})

test('no key is no key', async () => {
  const kept = new Map<string, KeptKey>()
  const keys = new IdempotencyKeys(kept)
  const make = counted()
  for (const key of [null, '']) await keys.once(request(key), make)
  expect(make.made()).toBe(2)
  expect(kept.size).toBe(0)
})

test('a key is kept for 24 hours', async () => {
  const kept = new Map<string, KeptKey>()
  const keys = new IdempotencyKeys(kept)
  const make = counted()
  await keys.once(request('k'), make, 1_000)
  expect(await keys.once(request('k'), make, 1_000 + KEY_LIFETIME_MS - 1)).toBe('answer-1')
  expect(await keys.once(request('k'), make, 1_000 + KEY_LIFETIME_MS)).toBe('answer-2')
  expect(kept.size).toBe(1)
  new IdempotencyKeys(kept, 1_000 + 3 * KEY_LIFETIME_MS)
  expect(kept.size).toBe(0)
})

test('at most 100,000 are kept: the oldest go first', async () => {
  const kept = new Map<string, KeptKey>()
  const keys = new IdempotencyKeys(kept)
  const make = counted()
  for (let i = 0; i < MAX_KEYS + 10; i++) await keys.once(request(`k${i}`), make)
  expect(kept.size).toBe(MAX_KEYS)
  const made = make.made()
  await keys.once(request(`k${MAX_KEYS + 9}`), make)
  expect(make.made()).toBe(made)
  await keys.once(request('k0'), make)
  expect(make.made()).toBe(made + 1)
})

test('the hash of a large body gives way to the event loop, and is that of all of it', async () => {
  const keys = new IdempotencyKeys()
  const body = new Uint8Array(64 * 1024 * 1024).fill(65)
  let turns = 0
  const count = setInterval(() => turns++, 0)
  try {
    const hash = await new Promise<string>((resolve) => {
      void keys.once({ scope: 'tasks', key: 'k', body }, async (sent) => {
        resolve(sent!.hash)
        return 'answer'
      })
    })
    expect(hash).toBe(new Bun.CryptoHasher('sha256').update(body).digest('hex'))
    expect(turns).toBeGreaterThan(0)
  } finally {
    clearInterval(count)
  }
})
