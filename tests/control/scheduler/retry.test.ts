/** Goal: after any retries in place, a graph ends as its rules say, also over kills: a few graphs. More: retry.long.test.ts. */
import { expect, test } from 'bun:test'
import { testKills, testRetries } from '../../support/retry-model.ts'

test('a graph ends as its rules say after any retries', async () => {
  expect((await testRetries(20)).retried).toBeGreaterThan(0)
}, 60_000)

test('a kill leaves all of a retry or nothing of it, and the graph goes on from there', () => testKills(4), 60_000)
