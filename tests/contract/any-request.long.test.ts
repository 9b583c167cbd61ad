/** As `any-request.test.ts`, with many more requests: 10,000, and 100,000 nightly. */
import { expect, test } from 'bun:test'
import { fuzz } from '../support/fuzz/fuzz-run.ts'
import { roundsOf, SEED } from '../support/random.ts'

const CASES = roundsOf({ usual: 10_000, nightly: 100_000 })

test(
  `${CASES} generated requests get answers that are described (seed ${SEED})`,
  async () => {
    const figures = await fuzz({ cases: CASES, seed: SEED })
    process.stdout.write(`any request: ${JSON.stringify({ requests: CASES, ...figures })}\n`)
    for (const status of [200, 202, 204, 400, 404, 405, 409, 413]) {
      expect(figures.answersByStatus[status], String(status)).toBeGreaterThan(CASES / 2_000)
    }
  },
  60 * 60_000,
)
