/** The promises of docs/reliability.md are tried by the tests that it names. */
import { expect, test } from 'bun:test'
import { expectNamedTests, rowsOf } from './support/named-tests.ts'

const rows = rowsOf('reliability.md', 'promises')

test('the promises are in rows of three columns', () => {
  expect(rows.length).toBeGreaterThan(15)
  expect(rows.filter((cells) => cells.length !== 3 || cells.includes(''))).toEqual([])
})

test.each(rows.map((cells) => [cells[0]!, cells[2]!]))('is tried by tests that exist: %s', (_, tests) => {
  expectNamedTests(tests)
})
