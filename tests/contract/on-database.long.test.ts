/**
 * Goal: control keeps its contract with a database as it does without. Method: the same tests a second time, with each data
 * directory in the place of a database. The nightly size runs all that can apply, the others only what a database changes most.
 */
import { describe, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { EMBEDDED_TESTS } from '../support/embedded-only.ts'
import { mustPostgres } from '../support/must-postgres.ts'
import { filesOnDatabase, runOnDatabase } from '../support/run-on-database.ts'

const isNightly = process.env.TASKMILL_NIGHTLY === '1'
const missing = mustPostgres()

/** What every run tries: accepting, keys, ends, events, callbacks, shared outcomes, groups. */
const SOME = [
  'submit',
  'idempotency',
  'graphs-cancel-delete',
  'callbacks',
  'rerun',
  'cache',
  'event-clients.long',
  'ids-of-graphs',
  'graph-groups',
  'schedules',
].map((name) => `${name}.test.ts`)

/** Milliseconds on a busy machine. */
const PATIENCE_MS = 60 * 60_000

describe('the contract of control, with a database', () => {
  test.skipIf(missing !== undefined)(
    `is kept${missing === undefined ? '' : ` (${missing})`}`,
    async () => {
      const { exitCode, output } = await runOnDatabase(isNightly ? filesOnDatabase() : SOME)
      const failures = output.split('\n').filter((line) => line.startsWith('(fail)'))
      expect({ failures, end: output.trimEnd().split('\n').at(-1) }).toEqual({
        failures: [],
        end: expect.stringMatching(/^Ran \d+ tests across \d+ files/),
      })
      expect(exitCode).toBe(0)
    },
    PATIENCE_MS,
  )

  test('every test that cannot apply is there', () => {
    const sources = filesOnDatabase().map((name) => readFileSync(join(import.meta.dir, name), 'utf8'))
    const unknown = EMBEDDED_TESTS.flatMap(({ titles }) => titles).filter((title) => {
      const words = title.replace(/(: [a-z ]+| [A-Z_]+)$/, '').split(' ') // the name of a case comes last
      // The beginning is the title of the block around the test, if there is one.
      return !words.some((_, i) =>
        sources.some((source) => source.includes(words.slice(i).join(' ')) && i < words.length - 2),
      )
    })
    expect(unknown).toEqual([])
  })
})
