/** The promises of docs/reliability.md are tried by the tests that it names. */
import { expect, test } from 'bun:test'
import { expectNamedTests, rowsOf } from './support/named-tests.ts'

const rows = rowsOf('reliability.md', 'promises')

test('the promises are in rows of four columns', () => {
  expect(rows.length).toBeGreaterThan(15)
  expect(rows.filter((cells) => cells.length !== 4 || cells.includes(''))).toEqual([])
})

test('the suite that is named is the one that has the tests', () => {
  const wrong = rows.flatMap(([promise = '', , tests = '', run = '']) => {
    const isLong = [...tests.matchAll(/\]\((\S+)\)/g)].map(([, path]) => path!.endsWith('.long.test.ts'))
    const suites = [
      ...(isLong.includes(false) ? ['`make test`'] : []),
      ...(isLong.includes(true) ? ['`make test-long`'] : []),
    ]
    return run.startsWith('part of') && run !== `part of ${suites.join(' and ')}, green` ? [promise] : []
  })
  expect(wrong).toEqual([])
})

test.each(rows.map((cells) => [cells[0]!, cells[2]!]))('is tried by tests that exist: %s', (_, tests) => {
  expectNamedTests(tests)
})
