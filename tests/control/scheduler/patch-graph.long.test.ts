/** Goal: as patch-graph.test.ts, with many graphs. */
import { expect, test } from 'bun:test'
import { testKills, testPatches } from '../../support/patch-model.ts'

test('many patched graphs end as their tasks say', async () => {
  const { patched, refused } = await testPatches(300)
  expect(patched).toBeGreaterThan(60)
  expect(refused).toBeGreaterThan(30)
}, 300_000)

test('many kills leave all of a patch or nothing of it', () => testKills(60), 300_000)
