/** Goal: as retry.test.ts, with many graphs. */
import { expect, test } from 'bun:test'
import { testKills, testRetries } from '../../support/retry-model.ts'

test('many graphs end as their rules say after any retries', async () => {
  const { retried, live, children } = await testRetries(300)
  expect(retried).toBeGreaterThan(60)
  expect(live).toBeGreaterThan(0)
  expect(children).toBeGreaterThan(0)
}, 300_000)

test('many kills leave all of a retry or nothing of it', () => testKills(100), 300_000)
