/** Goal: after any patches, a graph ends as its tasks say, also over kills: a few graphs. More: patch-graph.long.test.ts. */
import { expect, test } from 'bun:test'
import { testKills, testPatches } from '../../support/patch-model.ts'

test('a patched graph ends as its tasks say, and a restart finds it so', async () => {
  expect((await testPatches(12)).patched).toBeGreaterThan(0)
}, 60_000)

test('a kill leaves all of a patch or nothing of it, and the graph goes on from there', () => testKills(3), 60_000)
