/** Goal: as dynamic-tasks.test.ts, with many graphs and kills. */
import { expect, test } from 'bun:test'
import { testPlans } from '../../support/dynamic-model.ts'

test('what many plans add is added once, over many kills', async () => {
  expect(await testPlans(50, 4)).toBeGreaterThan(80)
}, 300_000)
