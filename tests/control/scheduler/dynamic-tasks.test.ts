/** Goal: dynamic tasks add what their results say, exactly once, over kills: a few graphs. More: dynamic-tasks.long.test.ts. */
import { expect, test } from 'bun:test'
import { testPlans } from '../../support/dynamic-model.ts'

test('what plans add is added once, and a kill leaves a plan with all that it adds or before its end', async () => {
  expect(await testPlans(6, 2)).toBeGreaterThan(0)
}, 60_000)
