/**
 * Goal: no request makes a service fail. Method: generated requests to every route of both services, valid, nearly valid
 * and hostile (`support/fuzz/`). `any-request.long.test.ts` sends many more.
 */
import { expect, test } from 'bun:test'
import { fuzz } from '../support/fuzz/fuzz-run.ts'
import { SEED } from '../support/random.ts'

const CASES = 600

test(
  `${CASES} generated requests get answers that are described (seed ${SEED})`,
  async () => {
    const { answersByStatus } = await fuzz({ cases: CASES, seed: SEED })
    for (const status of [200, 202, 400, 404]) expect(answersByStatus[status], String(status)).toBeGreaterThan(0)
  },
  5 * 60_000,
)
