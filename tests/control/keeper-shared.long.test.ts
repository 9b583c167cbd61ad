/**
 * Goal: the keeper on PostgreSQL does what every keeper promises. Method: the common suite, on a real server. A kill cuts the
 * connections of a replica; then it is declared dead as after its lease.
 */
import { afterAll, beforeAll, test } from 'bun:test'
import { describeKeeper, type KeeperPlace } from '../support/keeper-contract.ts'
import { mustPostgres } from '../support/must-postgres.ts'
import { type Postgres, startPostgres } from '../support/postgres.ts'
import { type OpenShared, openShared } from '../support/shared-place.ts'

/** Random lives of a keeper: each makes a database. */
const WALKS = 8

let postgres: Postgres

async function newPlace(): Promise<KeeperPlace> {
  const database = await postgres.createDatabase()
  const opened: OpenShared[] = []
  return {
    async open() {
      const open = await openShared(postgres.url(database))
      opened.push(open)
      return open
    },
    async kill() {
      await opened.at(-1)!.rows.close()
      await postgres.run(`update taskmill.replica set state = 'dead', epoch = epoch + 1`, database)
    },
    refuse(isNow) {
      if (isNow) postgres.freeze()
      else postgres.thaw()
    },
    async [Symbol.asyncDispose]() {
      for (const open of opened) await open[Symbol.asyncDispose]()
    },
  }
}

const name = 'the keeper on PostgreSQL'
const missing = mustPostgres()
if (missing === undefined) {
  beforeAll(async () => {
    postgres = await startPostgres()
  })
  afterAll(async () => {
    await postgres[Symbol.asyncDispose]()
  })
  describeKeeper(name, newPlace, WALKS)
} else test.skip(`${name} (${missing})`, () => {})
