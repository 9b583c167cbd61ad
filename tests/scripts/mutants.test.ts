/** A change of a rule that `make mutants` knows is noticed at once, not when the faults are tried next. */
import { describe, expect, test } from 'bun:test'
import { faultOf, MUTANTS } from '../../scripts/mutants.ts'

describe('the fault can be tried:', () => {
  test.each(MUTANTS.map((mutant) => [`${mutant.file}: ${mutant.rule}`, mutant] as const))('%s', (_, mutant) => {
    expect(faultOf(mutant)).toEqual([])
  })
})

const SOUND = MUTANTS[0]!

test.each([
  ['text that is gone', { text: 'no such text' }, [`its text stands 0 times in ${SOUND.file}`]],
  ['text that stands twice', { text: 'maxMs' }, [expect.stringMatching(/stands ([2-9]|\d\d) times/)]],
  ['a file that is gone', { file: 'control/gone.ts' }, ['its text stands 0 times in control/gone.ts']],
  ['a test that is gone', { tests: ['gone.test.ts'] }, ['there is no tests/gone.test.ts']],
])('%s is told', (_, change, faults) => {
  const told = faultOf({ ...SOUND, ...change })
  expect(told.map((each) => each.slice(`${SOUND.rule}: `.length))).toEqual(faults)
})
